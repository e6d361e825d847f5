"""Waits for locks with a limit of time that begin again when it has passed: for whoever waits, they are one wait, and
who ends the last of them ends it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from ..model import Profile, Sample, Stack
from ..model.waits_for import COLUMN
from ..model.wakers import has_waker, own_part
from .wait_kinds import LOCK
from .waits import Waits
from .wakers import NOBODY

_TIMER = "[timer]"
_Wait = tuple[object, object, Stack]
"""Process and thread that wait, and the stack."""


def with_waits_joined(profile: Profile) -> Profile:
    """The profile in which the time of waits for locks that a timer has ended belongs to those who have ended others
    of the same thread in the same place, by their parts of these. What only timers have ended stays as it is."""
    if profile.value_types[0].name != COLUMN or not (timed := _timed(profile)):
        return profile
    ended: dict[_Wait, list[int]] = defaultdict(list)
    for i, sample in enumerate(profile.samples):
        if has_waker(sample.stack) and sample.label("waker") not in (_TIMER, *NOBODY) and sample.values[0]:
            key = _wait(sample)
            if key in timed:
                ended[key].append(i)
    samples: list[Sample | None] = list(profile.samples)
    for key, members in ended.items():
        _join(samples, timed[key], members, profile)
    return replace(profile, samples=[sample for sample in samples if sample])


def _timed(profile: Profile) -> dict[_Wait, list[int]]:
    """The samples of waits for locks that a timer has ended."""
    waits, parts = Waits(), []
    found: dict[_Wait, list[int]] = defaultdict(list)
    for i, sample in enumerate(profile.samples):
        if has_waker(sample.stack) and sample.label("waker") == _TIMER:
            parts.append(own_part(sample.stack))  # waits are known by the identity of their stacks
            if waits.of(parts[-1], str(sample.label("state"))).kind == LOCK:
                found[_wait(sample)].append(i)
    return found


def _wait(sample: Sample) -> _Wait:
    return sample.label("pid"), sample.label("tid"), own_part(sample.stack)


def _join(samples: list[Sample | None], timed: list[int], members: list[int], profile: Profile) -> None:
    """Gives the time of ``timed`` to ``members``. How long the longest wait was is not known: at least as the mean."""
    count, most = profile.index("count"), profile.index("max")
    more = sum(sample.values[0] for i in timed if (sample := samples[i]))
    whole = sum(sample.values[0] for i in members if (sample := samples[i]))
    given = 0
    for i in members:
        sample = samples[i]
        assert sample
        part = more - given if i == members[-1] else more * sample.values[0] // whole
        given += part
        values = list(sample.values)
        values[0] += part
        values[most] = max(values[most], values[0] // max(values[count], 1))
        samples[i] = sample._replace(values=tuple(values))
    for i in timed:
        samples[i] = None
