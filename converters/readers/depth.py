"""Bounds the depth of stacks: a few kilobytes of packed text can be a stack of millions of frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ..base.units import count
from ..model import Frame, Profile, Sample, Stack
from ..model.losses import cut
from ..model.timeline import Span
from ..transforms.samples import add_up

DEEPEST: Final = 4096
"""Frames of a stack that are kept, one that stands for the others included. CPython's own limit of recursion is 1,000,
perf's and eBPF's of a stack's depth is 127; what is drawn costs memory for each frame."""
_OUTER: Final = DEEPEST // 2 - 1
_INNER: Final = DEEPEST // 2
CUT: Final = cut("in the middle")
"""The kind of loss."""


def bounded(profile: Profile) -> Profile:
    """``profile`` with at most `DEEPEST` frames in each stack: the middle of a deeper one is left out, and counted.

    Changed in place, if there is one: stacks that became equal are added up, and of a timeline the outermost
    levels stay.
    """
    if max((len(sample.stack) for sample in profile.samples), default=0) > DEEPEST:
        cut = 0
        for i, (stack, values, labels) in enumerate(profile.samples):
            if len(stack) > DEEPEST:
                profile.samples[i] = Sample(_without_middle(stack), values, labels)
                cut += 1
        profile.samples = add_up(profile.samples, profile.value_types)
        profile.lost[CUT] = profile.lost.get(CUT, 0) + cut
        for track in profile.timeline.tracks if profile.timeline else ():
            track.spans = list(_outermost(track.spans))
    if profile.scheduling is not None:
        profile.scheduling.stacks = list(map(_without_middle, profile.scheduling.stacks))
    return profile


def _without_middle(stack: Stack) -> Stack:
    if len(stack) <= DEEPEST:
        return stack
    left_out = Frame(f"[{count(len(stack) - _OUTER - _INNER)} frames left out]", "other")
    return (*stack[:_OUTER], left_out, *stack[-_INNER:])


def _outermost(spans: Iterable[Span]) -> Iterator[Span]:
    """The innermost calls of a timeline come and go while the outer ones stay: these are kept."""
    ends: list[int] = []
    for span in spans:
        while ends and ends[-1] <= span.start:
            ends.pop()
        ends.append(span.end)
        if len(ends) <= DEEPEST:
            yield span
