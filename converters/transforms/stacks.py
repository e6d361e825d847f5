"""Changes stacks: removes frames, cuts ends, folds recursion, reverses the order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import compress

from ..model import Frame, Profile, Sample, Stack
from .samples import ByFrame, Pattern, matching, with_stacks


def hide(profile: Profile, pattern: Pattern) -> Profile:
    """Removes the frames that match, as pprof does. A sample whose frames are all hidden is left out."""
    matched = matching(pattern)
    return _visible(profile, ByFrame(lambda frame: not matched[frame]))


def show(profile: Profile, pattern: Pattern) -> Profile:
    """Keeps only the frames that match, as pprof does. A sample that has none is left out."""
    return _visible(profile, matching(pattern))


def begin_at(profile: Profile, pattern: Pattern) -> Profile:
    """Cuts stacks to begin at their outermost frame that matches; those without one stay whole."""
    return _cut(profile, pattern, lambda stack, place: stack[place:])


def end_at(profile: Profile, pattern: Pattern) -> Profile:
    """Cuts stacks to end at their outermost frame that matches; those without one stay whole."""
    return _cut(profile, pattern, lambda stack, place: stack[: place + 1])


def limit_depth(profile: Profile, depth: int) -> Profile:
    """Keeps at most the ``depth`` (> 0) outermost frames of each stack."""
    return with_stacks(profile, lambda stack: stack[:depth])


def invert(profile: Profile) -> Profile:
    """The caller view: innermost frames first. Applied twice, it restores the original."""
    samples = [Sample(stack[::-1], values, labels) for stack, values, labels in profile.samples]
    return replace(profile, samples=samples, timeline=None, scheduling=None, critical=None)


def collapse_recursion(profile: Profile, *, cycles: bool = False) -> Profile:
    """Reduces a function that calls itself to one frame: a;a;a;b becomes a;b.

    ``cycles`` also covers a function that is called again through others: the frames between the two are removed, so
    a;b;a;b;c becomes a;b;c, and no stack contains a function twice.
    """
    numbers: dict[tuple[str, str, str, str], int] = {}
    number = ByFrame(lambda frame: numbers.setdefault(_function(frame), len(numbers))).__getitem__
    collapse = _without_cycles if cycles else _without_repeats

    def change(stack: Stack) -> Stack:
        functions = list(map(number, stack))
        return stack if len(set(functions)) == len(functions) else collapse(stack, functions)

    return with_stacks(profile, change)


def _function(frame: Frame) -> tuple[str, str, str, str]:
    """Key that is equal for all call sites of one function."""
    return frame.name, frame.kind, frame.module.path if frame.module else "", frame.file


def _without_repeats(stack: Stack, functions: list[int]) -> Stack:
    return stack[:1] + tuple(stack[i] for i in range(1, len(stack)) if functions[i] != functions[i - 1])


def _without_cycles(stack: Stack, functions: list[int]) -> Stack:
    path: dict[int, Frame] = {}
    for frame, function in zip(stack, functions, strict=True):
        if function in path:
            while next(reversed(path)) != function:
                path.popitem()
        else:
            path[function] = frame
    return tuple(path.values())


def _visible(profile: Profile, visible: ByFrame[bool]) -> Profile:
    verdict = visible.__getitem__

    def change(stack: Stack) -> Stack:
        verdicts = list(map(verdict, stack))
        return stack if all(verdicts) else tuple(compress(stack, verdicts))

    return with_stacks(profile, change)


def _cut(profile: Profile, pattern: Pattern, part: Callable[[Stack, int], Stack]) -> Profile:
    verdict = matching(pattern).__getitem__

    def change(stack: Stack) -> Stack:
        verdicts = list(map(verdict, stack))
        return part(stack, verdicts.index(True)) if True in verdicts else stack

    return with_stacks(profile, change)
