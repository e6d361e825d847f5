"""Shared by the transforms: patterns matched once per distinct frame, equal samples added up.

A profile may have 200,000 stacks of a dozen frames each, but few distinct frames. A regular expression is therefore
applied to a frame once, and work for every frame of every stack is left to C: map, any, compress, the hash of a tuple.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from ..base.errors import StallscopeError
from ..model import Frame, Labels, Profile, Sample, Stack, ValueType

Pattern = re.Pattern[str]
_Value = TypeVar("_Value")


def compiled(option: str, text: str) -> Pattern:
    """The regular expression ``text`` (Python's syntax) of ``option``. StallscopeError (exit code 2) for a bad one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about syntax that other versions of Python may read differently
            return re.compile(text)
    except re.error as error:
        place = "" if error.pos is None else f" at position {error.pos} of {text!r}"
        cause = f"{option}: {error.msg}{place}"
    except (RecursionError, OverflowError) as error:
        cause = f"{option}: the regular expression is too large ({error})"
    raise StallscopeError(cause, "a \\ before . * + ? ( ) [ ] { } | ^ $ takes it as it is", exit_code=2)


class ByFrame(dict[Frame, _Value]):
    """Frame → the result of a function, called once per distinct frame."""

    def __init__(self, of: Callable[[Frame], _Value]) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, frame: Frame) -> _Value:
        value = self[frame] = self._of(frame)
        return value


def matching(pattern: Pattern) -> ByFrame[bool]:
    """Whether a frame matches as in pprof (profile/filter.go): by its name, its source file or its module's path."""

    def matches(frame: Frame) -> bool:
        texts = (frame.name, frame.file, frame.module.path if frame.module else "")
        return any(pattern.search(text) for text in texts if text)

    return ByFrame(matches)


def with_stacks(profile: Profile, change: Callable[[Stack], Stack]) -> Profile:
    """``profile`` with other stacks, equal samples added up. Samples that lose all frames are left out."""
    samples = []
    for sample in profile.samples:
        stack = change(sample.stack)
        if stack or not sample.stack:
            samples.append(sample if stack is sample.stack else Sample(stack, sample.values, sample.labels))
    return with_samples(profile, samples)


def with_samples(profile: Profile, samples: Sequence[Sample]) -> Profile:
    """``profile`` with other samples, equal ones added up, and without its timeline and its scheduler events."""
    return replace(profile, samples=add_up(samples, profile.value_types), timeline=None, scheduling=None, critical=None)


def add_up(samples: Sequence[Sample], value_types: Sequence[ValueType]) -> list[Sample]:
    """One sample per stack and labels, in order of first occurrence; values joined as their columns say."""
    joins = [value_type.joined for value_type in value_types]
    places: dict[tuple[Stack, Labels], int] = {}
    joined: list[Sample] = []
    for sample in samples:
        stack, values, labels = sample
        place = places.setdefault((stack, labels), len(joined))
        if place == len(joined):
            joined.append(sample)
        else:
            known = joined[place]
            values = tuple([join(a, b) for join, a, b in zip(joins, known.values, values, strict=True)])
            joined[place] = Sample(known.stack, values, known.labels)
    return joined
