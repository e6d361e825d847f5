"""The table of what the calling threads of each process wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import share
from ..facts.identity import whose
from .call_time import CallTime
from .tables import table

if TYPE_CHECKING:
    from rich.console import RenderableType


def times_table(times: Sequence[CallTime], top: int) -> RenderableType:
    """A row per process."""
    headers = ("GPU: blocked", "polling", "Driver", "Other calls", "Outside: runs", "waits")
    made = table(*headers, last="Process (shares of the time of its calling threads)")
    for each in times[:top]:
        outside = each.outside.blocked + each.outside.runnable
        parts = (
            each.gpu.blocked + each.gpu.runnable,
            each.gpu.on_cpu,
            each.driver.blocked,
            each.driver.on_cpu + each.driver.runnable + each.other.sum,
            each.outside.on_cpu,
            outside,
        )
        made.add_row(*(share(part, each.wall) for part in parts), printable(whose(each.process, each.pid)))
    return made
