"""What a caller may ask of a writer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import StallscopeError

if TYPE_CHECKING:
    from .model import Kind, Profile


@dataclass(frozen=True)
class WriteOptions:
    """Choices that every writer understands (or ignores where its format has no use for them)."""

    value: str = ""
    """Name of the `ValueType` to show; "" is the first one that can be added up."""
    per_thread: bool = False
    """One root (or profile) per thread instead of one per process."""
    roots: tuple[str, ...] | None = None
    """Labels whose values stand under the stacks, outermost first; None: process, and thread if ``per_thread``."""
    marks: frozenset[Kind] = frozenset({"kernel", "jit"})
    """Kinds of frames that folded text marks (``_[k]``, ``_[j]``)."""
    title: str = ""
    """Replaces ``Profile.title``; "" keeps it."""
    subtitle: str = ""
    """Under the title; "" makes one of host, start, duration and total."""
    notes: tuple[str, ...] = ()
    """Lines that go with the picture, before the profile's own comments."""
    unit: str = ""
    """What the values are counted in; "" is the unit of the value type."""
    width: int = 1200
    """Of a static picture, in px; scripts fit it to the window."""
    min_width: float = 0.1
    """Branches that are narrower are left out (and counted), in px of ``width``."""
    min_share: float = 0.0
    """Branches with a smaller share of the total are left out too (0 to 1)."""
    inverted: bool = False
    """Icicles: roots on top."""
    flamechart: bool = False
    """Calls in the order of time, from ``Profile.timeline``, not merged by name."""
    total: float = 0.0
    """What the whole width stands for, in units of the value; 0 is what the profile has."""
    factor: float = 1.0
    """What values are multiplied by where they are told."""
    reverse: bool = False
    """Innermost frames next to the root, callers further out, processes at the tips."""
    palette: str = ""
    """A name of `writers.svg_palette.PALETTES`; "" chooses one by what is measured."""
    negate: bool = False
    """Of a comparison: blue has grown, red has shrunk."""
    background: str = ""
    """A name of `writers.svg_background.TINTS`, or ``#rrggbb``; "" is white."""
    font: str = ""
    """Family of the labels' font; "" is a monospaced one."""
    font_size: int = 12
    """Of the labels, in px."""
    height: int = 0
    """Of a row of frames, in px; 0 is what the labels need."""
    format: str = ""
    """The name of one, for outputs whose path tells none: standard output, an unknown suffix."""
    form: str = ""
    """Of a table: functions, top-down or bottom-up; "" is all of them."""
    rows: int = 40
    """Of a table, at most."""


def value_index(profile: Profile, options: WriteOptions) -> int:
    """Index of the value type that ``options`` asks for.

    Only sums make a flame graph: a parent's width is what its children add up to. Raises
    StallscopeError (exit code 2) for an unknown name and for a minimum or maximum.
    """
    summable = [value_type.name for value_type in profile.value_types if value_type.aggregate == "sum"]
    if not summable:
        raise StallscopeError("the profile has no value that can be added up", "record it again", exit_code=2)
    wanted = options.value or summable[0]
    if wanted not in summable:
        raise StallscopeError(
            f"the profile has no value called {wanted!r} that can be added up",
            f"choose one of: {', '.join(summable)}",
            exit_code=2,
        )
    return next(i for i, v in enumerate(profile.value_types) if v.name == wanted and v.aggregate == "sum")
