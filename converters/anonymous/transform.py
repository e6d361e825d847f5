"""The profile without what is private: each field of `Profile` is in one of the tables here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..base.units import plural
from ..model import Frame, Labels, Profile, Sample, ValueType
from ..model.parts import NAMES
from ..model.ranks import LABELS
from ..model.remarks import Comment, names_nothing
from . import public
from .fields import without_private
from .pseudonyms import Pseudonyms

PARTS = NAMES
"""Lists of parts, see `fields`."""
NUMBERS = ("start_ns", "duration_ns")
DROPPED = ("timeline", "scheduling", "critical", "details", "display", "answered")
"""Left out: single events with their times, what other programs wrote for themselves, and a command line."""
CHANGED = ("value_types", "samples", "title", "host", "lost", "comments", "default_value")


def anonymised(profile: Profile, *, keep_functions: bool = False) -> Profile:
    """Hosts, processes, threads, files, functions of private programs, scripts and other texts get pseudonyms."""
    names = Pseudonyms(keep_functions=keep_functions)
    _name_processes(profile, names)
    frames = dict.fromkeys(frame for sample in profile.samples for frame in sample.stack)
    for frame in frames:
        names.learn(frame)
    for frame in frames:
        names.unlearn(frame)
    shared: dict[Frame, Frame] = {}
    changed: dict[Frame, Frame] = {}
    for frame in frames:
        made = names.frame(frame)
        changed[frame] = shared.setdefault(made, made)
    labels = {given: _labels(names, given) for given in dict.fromkeys(sample.labels for sample in profile.samples)}
    samples = [
        Sample(tuple(map(changed.__getitem__, stack)), values, labels[given])
        for stack, values, given in profile.samples
    ]
    parts: dict[str, Any] = {part: [without_private(names, each) for each in getattr(profile, part)] for part in PARTS}
    return Profile(
        [ValueType(names.value(each.name), names.value(each.unit), each.aggregate) for each in profile.value_types],
        samples,
        title=_title(profile, names),
        host=names.made("host", profile.host) if profile.host else "",
        start_ns=profile.start_ns,
        duration_ns=profile.duration_ns,
        lost=_lost(profile.lost),
        comments=_comments(profile),
        default_value=names.value(profile.default_value),
        **parts,
    )


def _name_processes(profile: Profile, names: Pseudonyms) -> None:
    """Processes come before threads, whose main ones have the same names."""
    for process in (*(each.process for each in profile.processes), *(each.process for each in profile.threads)):
        names.process(process)
    for labels in dict.fromkeys(sample.labels for sample in profile.samples):
        for key, value in labels:
            if key == "process":
                names.process(str(value))


def _labels(names: Pseudonyms, labels: Labels) -> Labels:
    changed = [_label(names, key, value) for key, value in labels]
    return tuple(sorted(changed, key=lambda pair: pair[0]))


_NUMBERS = frozenset({"pid", "tid", "pid-life", "tid-life", "waker_tid", "object"})
"""Labels whose values are numbers, and stay as they are."""
_TEXTS: dict[str, Callable[[Pseudonyms, str], str]] = {
    "host": lambda names, value: names.made("host", value),
    "input": lambda names, value: names.made("input", value),
    "process": Pseudonyms.process,
    **dict.fromkeys(("thread", "waker_thread", "chain_thread"), Pseudonyms.program),
    "waker": Pseudonyms.numbered,
    **dict.fromkeys(("state", "open"), Pseudonyms.state),
    **dict.fromkeys((*LABELS, "chain_tids"), Pseudonyms.number),
}


def _label(names: Pseudonyms, key: str, value: str | int) -> tuple[str, str | int]:
    if isinstance(value, int):
        return (key if key in _NUMBERS else names.made("label", key)), value
    if key in _TEXTS:
        return key, _TEXTS[key](names, value)
    return names.made("label", key), names.made("value", value)


def _title(profile: Profile, names: Pseudonyms) -> str:
    what = public.what_of(profile.title) or "anonymised profile"
    processes = dict.fromkeys(names.process(each.process) for each in profile.processes or profile.threads)
    if not processes:
        return what
    return f"{what} of {', '.join(processes) if len(processes) <= 3 else plural(len(processes), 'program')}"


def _lost(lost: dict[str, int]) -> dict[str, int]:
    """Kinds of losses are plain words of ours; others are added up."""
    told: dict[str, int] = {}
    for kind, number in lost.items():
        name = kind if re.fullmatch(r"[A-Za-z][a-z' ,:-]*(?:[A-Z]{2,6}|ELF|[a-z])?[a-z' ,:-]*", kind) else "others"
        told[name] = told.get(name, 0) + number
    return told


def _comments(profile: Profile) -> list[Comment]:
    kept = [comment for comment in profile.comments if names_nothing(comment)]
    number = len(profile.comments) - len(kept)
    return [*kept, f"anonymised; {plural(number, 'remark')} left out" if number else "anonymised"]
