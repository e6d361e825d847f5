"""Records of calls with their arguments, and the table of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .....converters.collectives.records import ARGUMENTS, FIELDS, OPEN, CallTable
from .gloo_calls import joined
from .open_calls import Open

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECORD = np.dtype(
    [
        ("length", "<u4"),  # struct bpf_ringbuf_hdr
        ("page", "<u4"),
        ("began", "<i8"),
        ("arguments", "<u8", (ARGUMENTS,)),
        ("pid", "<i4"),
        ("life", "<u4"),
        ("function", "<i4"),
        ("level", "<u4"),
        ("ended", "<i8"),
        ("ustack", "<u8"),
        ("blocked", "<i8"),
        ("runnable", "<i8"),
        ("result", "<i8"),
        ("made", "<u8"),
        ("tid", "<i4"),
        ("unread", "<u4"),
    ]
)
"""struct call_arguments of bpf/include/call_arguments.bpf.h, behind the header of the ring buffer."""


def table(
    blocks: Sequence[NDArray[np.void]],
    still: Sequence[tuple[Open, tuple[int, ...]]],
    named: Callable[[int], str],
    began: int,
    lost: int,
) -> CallTable:
    """All calls in the order in which they began, without those that another one of them makes; for those of Gloo, see
    `gloo_calls`. ``still``: those that go on, each with its arguments, process, life, function and depth."""
    kept = np.concatenate([*blocks, np.zeros(len(still), RECORD)])
    for row, (call, rest) in zip(kept[len(kept) - len(still) :], still, strict=True):
        *arguments, pid, life, function, level = rest
        row["began"], row["ended"], row["arguments"] = call.began, OPEN, arguments
        row["pid"], row["life"], row["function"], row["level"], row["tid"] = pid, life, function, level, call.tid
        row["blocked"], row["runnable"], row["ustack"] = call.blocked, call.runnable, call.ustack
    kept = joined(kept[kept["level"] == 0], named)
    found = np.zeros(len(kept), np.dtype(list(FIELDS)))
    for name in set(found.dtype.names or ()) & set(kept.dtype.names or ()):
        found[name] = kept[name]
    found["began"] -= began
    found["ended"][found["ended"] != OPEN] -= began
    numbers, found["function"] = np.unique(kept["function"], return_inverse=True)
    found = found[np.argsort(found["began"], kind="stable")]
    return CallTable(found, tuple(named(int(number)) for number in numbers), lost)
