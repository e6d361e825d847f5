"""Options that callers can pass to a writer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...base.errors import StallscopeError
from ...base.safefile import PRIVATE
from ...base.units import counted
from ...model.losses import divided

if TYPE_CHECKING:
    from ...model import Kind, Profile


@dataclass(frozen=True)
class WriteOptions:
    """Options that all writers accept; a writer ignores those that do not apply to its format."""

    value: str = ""
    """Name of the `ValueType` to show; "" is the profile's default."""
    per_thread: bool = False
    """One root (or profile) per thread instead of one per process."""
    roots: tuple[str, ...] | None = None
    """Labels whose values are shown below the stacks, outermost first; None: process, and thread if ``per_thread``."""
    marks: frozenset[Kind] = frozenset({"kernel", "jit"})
    """Kinds of frames that folded text marks (``_[k]``, ``_[j]``)."""
    microseconds: bool = True
    """Folded text: nanoseconds become microseconds."""
    title: str = ""
    """Replaces ``Profile.title``; "" keeps it."""
    subtitle: str = ""
    """Shown below the title; "" makes one of host, start, duration and total."""
    notes: tuple[str, ...] = ()
    """Lines shown with the picture, before the profile's own comments."""
    unit: str = ""
    """Unit of the values; "" is the unit of the value type."""
    width: int = 1200
    """Width of a static picture, in px; scripts fit it to the window."""
    min_width: float = 0.1
    """Narrower branches are left out (and counted), in px of ``width``."""
    min_share: float = 0.0
    """Branches with a smaller share of the total are left out, too (0 to 1)."""
    inverted: bool = False
    """Icicles: roots on top."""
    flamechart: bool = False
    """Calls in time order, from ``Profile.timeline``, not merged by name."""
    total: float = 0.0
    """The value that the whole width represents, in units of the value; 0 is the profile's total."""
    factor: float = 1.0
    """Values are multiplied by this for display."""
    reverse: bool = False
    """Innermost frames next to the root, callers further out, processes at the tips."""
    palette: str = ""
    """A name of `writers.colors.palette.PALETTES`; "" chooses one by what is measured."""
    both: bool = False
    """Sizes of a comparison are those of the larger side, not of the value that is shown."""
    negate: bool = False
    """Colours of a comparison are exchanged: blue has grown, red has shrunk."""
    background: str = ""
    """One of `writers.colors.background.TINTS`, or ``#rrggbb``; "" is white."""
    font: str = ""
    """Font family of the labels; "" is a monospaced one."""
    font_size: int = 12
    """Font size of the labels, in px."""
    height: int = 0
    """Height of a row of frames, in px; 0 is what the labels need."""
    format: str = ""
    """Name of the format for outputs whose path does not determine it: standard output, an unknown suffix."""
    form: str = ""
    """Form of a table: functions, top-down or bottom-up; "" is all of them."""
    rows: int = 40
    """Maximum number of rows in a table."""
    by: str = "thread"
    """Kind of the nodes of a wait-for graph: a thread or a process."""
    mode: int = PRIVATE
    """Mode of the file."""
    idle: bool = False
    """Drawings of a wait-for graph also show what idle threads wait for."""


def value_index(profile: Profile, options: WriteOptions) -> int:
    """Index of the value type requested by ``options``, or else of the profile's default.

    Only sums make a flame graph: a parent's width is the sum of its children. Raises
    StallscopeError (exit code 2) for an unknown name and for a minimum or maximum.
    """
    summable = [value_type.name for value_type in profile.value_types if value_type.aggregate == "sum"]
    if not summable:
        raise StallscopeError("the profile has no value that can be added up", "record it again", exit_code=2)
    default = profile.default_value if profile.default_value in summable else summable[0]
    wanted = options.value or default
    if wanted not in summable:
        raise StallscopeError(
            f"the profile has no value called {wanted!r} that can be added up",
            f"choose one of: {', '.join(summable)}",
            exit_code=2,
        )
    return next(i for i, v in enumerate(profile.value_types) if v.name == wanted and v.aggregate == "sum")


NEGATIVE = "samples with a negative value"


def missing(profile: Profile, options: WriteOptions) -> dict[str, int]:
    """Number of items missing from a picture, by kind: the profile's losses, and samples with a negative value.

    Such samples come from subtracting one profile from another: a negative width cannot be drawn.
    """
    column = value_index(profile, options)
    negative = sum(sample.values[column] < 0 for sample in profile.samples)
    return {**profile.lost, NEGATIVE: negative} if negative else profile.lost


def said_to_be_missing(profile: Profile, options: WriteOptions) -> tuple[str, bool]:
    """``lost: 12 events``, and whether it is a warning: stacks that are not complete lose no time."""
    lost = missing(profile, options)
    gone, incomplete = ([counted(number, kind) for kind, number in each.items()] for each in divided(lost))
    if gone:
        return f"lost: {', '.join(gone + incomplete)}", True
    if incomplete:
        return f"lost: 0; {', '.join(incomplete)}", False
    return ("lost: 0" if lost else "lost: not recorded"), False
