"""The function in which the samples of one place mostly are: what a place that ends at a library's entry hides.

A place names the program's function and what it calls (`DS.__getitem__ → __Pyx_CyFunction_CallAsMethod`); where most of
its samples are in one function further inside (`inflate`), that one says what the time goes to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ..model import Stack
from . import thresholds
from .frame_names import is_named, label
from .plumbing import is_plumbing
from .wait_sites import GAP

Names = tuple[str, ...]
Inner = dict[Names, int]
"""Samples of a place by the functions of their stacks, see `functions`."""


def functions(stack: Stack) -> Names:
    """Functions of user space that have names, and do not only call others; outermost first."""
    return tuple(
        label(frame) for frame in stack if frame.kind != "kernel" and is_named(frame) and not is_plumbing(frame)
    )


def with_inner(frames: Names, inner: Mapping[Names, int], samples: int) -> Names:
    """``frames`` of a place (without lines), and behind them the innermost function in which most of its ``samples``
    are, if it is further inside."""
    weights: dict[str, int] = defaultdict(int)
    depths: dict[str, int] = defaultdict(int)
    for names, number in inner.items():
        for depth, name in enumerate(_behind(names, frames)):
            weights[name] += number
            depths[name] += depth * number
    much = [name for name, weight in weights.items() if 0 < thresholds.MOSTLY_INSIDE * samples <= weight]
    name = max(much, key=lambda each: (depths[each] / weights[each], each), default="")
    return (*frames, GAP, name) if name else frames


def _behind(names: Names, frames: Names) -> list[str]:
    """Names further inside than the last of ``frames``, each once."""
    last = frames[-1] if frames else ""
    begin = max((i for i, name in enumerate(names) if name == last), default=len(names) - 1) + 1
    return list(dict.fromkeys(name for name in names[begin:] if name not in frames))
