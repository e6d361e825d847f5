"""Uses of the samples' labels: identifying their owner, naming the roots below the stacks, or being dropped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..base.errors import StallscopeError
from ..model import Labels, Profile, Sample
from ..model.states import RUNNING
from ..model.wait_objects import LABEL as OBJECT
from .samples import with_samples

_WHO = ("pid", "tid", "pid-life", "tid-life")
_NUMBERS = {"process": "pid", "thread": "tid"}
"""Labels that are shown below the stacks with a number: ``python3-4711``."""

_ALONE = re.compile(r"(?<![\w.+-])\d+(?![\w.])")
"""A number that is no part of a word: 7 in ``stream 7``, and none in ``python3.8`` or ``worker-7``."""


def merge_processes(profile: Profile) -> Profile:
    """Removes process and thread ids, and what waits are on: processes of one name, such as those of a training job,
    share one root. Ranks and GPUs stay labels of the samples: viewers of pprof choose by them."""
    shorter = Without((*_WHO, OBJECT))
    samples = [Sample(stack, values, shorter[labels]) for stack, values, labels in profile.samples]
    return with_samples(profile, samples)


class Without(dict[Labels, Labels]):
    """Labels → labels without some keys."""

    def __init__(self, keys: Iterable[str]) -> None:
        super().__init__()
        self._keys = frozenset(keys)

    def __missing__(self, labels: Labels) -> Labels:
        shorter = self[labels] = tuple(pair for pair in labels if pair[0] not in self._keys)
        return shorter


def root_name(labels: Labels, key: str, *, always: bool = False) -> str:
    """Name of the root below the stacks for one label, "" for none: ``python3-4711`` for process, ``D`` for state.

    The id is left out if it is the only number in the name already, as in ``stream 7``, unless ``always`` is set.
    """
    values = dict(labels)
    number = shown_id(values, _NUMBERS.get(key, ""))
    name = str(values.get(key, ""))
    if not number:
        return name
    if not always and _ALONE.findall(name) == [number]:
        return name.strip()
    return f"{name}-{number}" if name.strip() else f"[unknown]{' ' if number.startswith('-') else '-'}{number}"


def shown_id(labels: Mapping[str, str | int], key: str) -> str:
    """``4711``, or ``4711#2`` for the second process (or thread of a process) that has this ``pid`` (or ``tid``); ""
    without the label."""
    number = labels.get(key)
    if number is None:
        return ""
    life = labels.get(f"{key}-life")
    return str(number) if life is None else f"{number}#{life}"


def runs_and_waits(profile: Profile) -> bool:
    """Whether it has samples of running threads and of others, according to the label ``state``."""
    states = {dict(labels).get("state") for labels in {sample.labels for sample in profile.samples}}
    return RUNNING in states and len(states - {RUNNING, None}) > 0


def check_roots(profile: Profile, keys: Sequence[str]) -> None:
    """StallscopeError (exit code 2) when a label requested as a root does not occur in the profile."""
    all_labels = {sample.labels for sample in profile.samples}
    for key in keys:
        if not any(root_name(labels, key) for labels in all_labels):
            there = sorted({name for labels in all_labels for name, _ in labels})
            remedy = f"choose among: {', '.join(there)}" if there else "the samples have no labels"
            raise StallscopeError(f"no sample has the label {key!r}", remedy, exit_code=2)
