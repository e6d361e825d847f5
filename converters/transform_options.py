"""Turns the options of ``trace-convert`` into transforms, in an order independent of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .base.errors import StallscopeError
from .model.remarks import Kept
from .transforms import labels, names, samples, select, stacks
from .transforms.weight import value_name
from .writers.base.options import WriteOptions, value_index

if TYPE_CHECKING:
    from .model import Profile

_ALL = "all"
GROUPS = {
    "Selection": ["--keep", "--drop", "--focus", "--ignore"],
    "Transforms": [
        "--begin-at", "--end-at", "--hide", "--show", "--simplify", "--collapse", "--callers", "--max-depth", "--merge",
    ],
}  # fmt: skip
"""Heading of the help → `options`."""


MERGE = "--merge"


class Step(NamedTuple):
    """One transform, and the options that asked for it."""

    told: str
    apply: Callable[[Profile], Profile]


def _several(name: str, metavar: str, text: str) -> Callable[[Any], Any]:
    return click.option(name, multiple=True, metavar=metavar, help=text)


_OPTIONS = [
    _several("--keep", "KEY=REGEX", "Keep samples whose label KEY (process, thread, state, …; or frame) matches."),
    _several("--drop", "KEY=REGEX", "Drop samples whose label KEY matches."),
    _several("--focus", "REGEX", "Keep samples with a frame that matches (name, source file or module)."),
    _several("--ignore", "REGEX", "Drop samples with a frame that matches."),
    _several("--begin-at", "REGEX", "Begin stacks at the first frame that matches, if there is one."),
    _several("--end-at", "REGEX", "End stacks at the first frame that matches, if there is one."),
    _several("--hide", "REGEX", "Leave out the frames that match."),
    _several("--show", "REGEX", "Leave out the frames that do not match."),
    _several("--simplify", "WHAT[,WHAT]", f"Shorten names: {', '.join(names.KINDS)}, or {_ALL}."),
    click.option(
        "--collapse",
        type=click.Choice(["direct", "cycles"]),
        help="Show recursion once: a;a;a becomes a (direct), and a;b;a;b becomes a;b (cycles).",
    ),
    click.option(
        "--callers", is_flag=True, help="Reverse the stacks in every output: each function, and who called it."
    ),
    click.option("--max-depth", type=click.IntRange(min=1), metavar="N", help="Keep the first N frames of each stack."),
    click.option("--merge", is_flag=True, help="Remove process and thread ids from samples: ranks in one picture."),
]


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the options that `plan` understands, in the order in which they are applied."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def plan(given: Mapping[str, Any]) -> list[Step]:
    """The steps that the values of `options` ask for. StallscopeError (exit code 2) for an invalid one."""
    steps = [*_by_label("--keep", given["keep"], select.keep), *_by_label("--drop", given["drop"], select.drop)]
    for option, transform in _BY_PATTERN.items():
        for text in given[option.strip("-").replace("-", "_")]:
            pattern = samples.compiled(option, text)
            steps.append(Step(f"{option} {text}", partial(transform, pattern=pattern)))
    if what := _kinds(given["simplify"]):
        steps.append(Step("--simplify", partial(names.simplify, what=what)))
    if given["collapse"]:
        cycles = given["collapse"] == "cycles"
        steps.append(Step("--collapse", partial(stacks.collapse_recursion, cycles=cycles)))
    if given["callers"]:
        steps.append(Step("--callers", stacks.invert))
    if given["max_depth"]:
        steps.append(Step("--max-depth", partial(stacks.limit_depth, depth=given["max_depth"])))
    if given["merge"]:
        steps.append(Step(MERGE, labels.merge_processes))
    return steps


def asks_for(given: Mapping[str, Any], label: str) -> bool:
    """Whether samples are to be selected by this label."""
    return any(rule.startswith(f"{label}=") for rule in (*given["keep"], *given["drop"]))


_BY_PATTERN = {
    "--focus": select.focus,
    "--ignore": select.ignore,
    "--begin-at": stacks.begin_at,
    "--end-at": stacks.end_at,
    "--hide": stacks.hide,
    "--show": stacks.show,
}


def apply(profile: Profile, steps: Sequence[Step], value: str = "") -> Profile:
    """The profile after all steps. A comment says how much of ``value`` they left, if not all of it.

    Raises StallscopeError for an unknown value or label.
    """
    column = value_index(profile, WriteOptions(value=value_name(profile, value)))
    name = profile.value_types[column].name
    whole = left = profile.total(name)
    narrowed = []
    for step in steps:
        profile = step.apply(profile)
        total = profile.total(name)
        if total != left:
            narrowed.append(step.told)
        left = total
    if steps and profile.answered:
        profile = replace(profile, answered=None)  # it tells of what was there before
    if narrowed:
        profile.comments = [*profile.comments, Kept(left, whole, name, tuple(narrowed))]
    return profile


def _by_label(option: str, rules: Iterable[str], transform: Callable[..., Profile]) -> list[Step]:
    """One step per label: several expressions for one label are alternatives."""
    by_key: dict[str, list[str]] = {}
    for rule in rules:
        key, separator, text = rule.partition("=")
        if not separator or not key:
            raise StallscopeError(
                f"{option} {rule}: expected KEY=REGEX", f"as in: {option} process=python3", exit_code=2
            )
        by_key.setdefault(key, []).append(text)
    steps = []
    for key, texts in by_key.items():
        patterns = [samples.compiled(f"{option} {key}", text) for text in texts]
        told = " ".join(f"{option} {key}={text}" for text in texts)
        steps.append(Step(told, partial(transform, key=key, patterns=patterns)))
    return steps


def _kinds(given: Iterable[str]) -> frozenset[names.What]:
    asked = {word for text in given for word in text.split(",")}
    known = {kind: frozenset([kind]) for kind in names.KINDS} | {_ALL: frozenset(names.KINDS)}
    for word in sorted(asked):
        if word not in known:
            raise StallscopeError(f"--simplify {word}: no such names", f"choose among: {', '.join(known)}", exit_code=2)
    return frozenset[names.What]().union(*(known[word] for word in asked))
