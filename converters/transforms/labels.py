"""What the labels of samples are for: telling whose they are, standing under the stacks, or being forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import StallscopeError
from ..model import Labels, Profile, Sample
from .samples import with_samples

_WHO = ("pid", "tid")
_NUMBERS = {"process": "pid", "thread": "tid"}
"""Labels that stand under the stacks with a number behind them: ``python3-4711``."""


def merge_processes(profile: Profile) -> Profile:
    """Without process and thread ids: processes of one name, such as the ranks of a training job, share one root."""
    shorter = Without(_WHO)
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


def root_name(labels: Labels, key: str) -> str:
    """What stands under the stacks for one label, "" for nothing: ``python3-4711`` for process, ``D`` for state."""
    values = dict(labels)
    number = values.get(_NUMBERS.get(key, ""))
    name = str(values.get(key, ""))
    return name if number is None else f"{name or '[unknown]'}-{number}"


def check_roots(profile: Profile, keys: Sequence[str]) -> None:
    """StallscopeError (exit code 2) when a label that shall stand under the stacks is nowhere in the profile."""
    all_labels = {sample.labels for sample in profile.samples}
    for key in keys:
        if not any(root_name(labels, key) for labels in all_labels):
            there = sorted({name for labels in all_labels for name, _ in labels})
            remedy = f"choose among: {', '.join(there)}" if there else "the samples have no labels"
            raise StallscopeError(f"no sample has the label {key!r}", remedy, exit_code=2)
