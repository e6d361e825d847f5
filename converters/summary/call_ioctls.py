"""The ioctls that functions' calls made: those of all processes together, and where they were blocked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..base.text import json_text, printable
from ..base.units import count, duration, share
from ..facts import thresholds
from ..model import Profile
from ..model.call_ioctls import CallIoctls
from .call_places import Places, times_of


@dataclass(frozen=True, slots=True)
class Made:
    """One command on one device, in the calls of one function. ``each``: by process (names are hostile)."""

    each: tuple[CallIoctls, ...]
    blocked_in: str = ""
    """The kernel function in which it was blocked longest; "" if it was not, or that is not known."""

    @property
    def time(self) -> int:
        """Time in ns, also that of ioctls that had not ended."""
        return sum(one.total + one.open_time for one in self.each)

    def line(self) -> str:
        """Line for the table."""
        of, total = self.each[0], sum(one.total for one in self.each)
        number, going_on = sum(one.count for one in self.each), sum(one.open_count for one in self.each)
        what = f"{count(number)} × {printable(of.frame)}"
        if total:
            what += f": {duration(total)}, {share(sum(one.on_cpu for one in self.each), total)} on a core"
            what += f", {share(sum(one.blocked for one in self.each), total)} blocked"
        what += f" in {printable(self.blocked_in)}" if self.blocked_in else ""
        return what + (f"; {count(going_on)} not ended" if going_on else "")


def made_by_calls(profile: Profile) -> dict[tuple[str, str], tuple[Made, ...]]:
    """Ioctls of each function by its name and library, the longest time first."""
    groups: dict[tuple[str, str], dict[str, list[CallIoctls]]] = defaultdict(lambda: defaultdict(list))
    for one in profile.call_ioctls:
        groups[one.name, one.library][one.frame].append(one)
    blocked = _blocked_in(profile) if groups else {}
    found = {}
    for function, commands in groups.items():
        made = [
            Made(
                tuple(sorted(each, key=lambda one: (-one.total - one.open_time, one.pid))),
                max(places := blocked.get((function[0], frame), {}), key=lambda at: (places[at], at), default=""),
            )
            for frame, each in commands.items()
        ]
        found[function] = tuple(sorted(made, key=lambda one: (-one.time, one.each[0].frame)))
    return found


def _blocked_in(profile: Profile) -> dict[tuple[str, str], dict[str, int]]:
    """Kernel functions in which threads were blocked, and for how long, by function and frame of the ioctl."""
    found: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    places = Places()
    for sample in profile.samples:
        place = places.of(sample.stack)
        if place.ioctl and place.kernel and (blocked := times_of(sample).blocked):
            for function in set(place.functions):
                found[function, place.ioctl][place.kernel] += blocked
    return found


def lines(made: Sequence[Made]) -> list[str]:
    """Lines under a function's row."""
    shown = [f"ioctl {one.line()}" for one in made[: thresholds.IOCTLS_NAMED]]
    rest = made[thresholds.IOCTLS_NAMED :]
    return [*shown, f"{count(len(rest))} more ioctls"] if rest else shown


def to_json(made: Sequence[Made], pid: int) -> list[dict[str, Any]]:
    """Entries for the ioctls of one process. Times in ns."""
    return [
        {
            "name": json_text(one.command),
            "device": json_text(one.device),
            "count": one.count,
            "total_ns": one.total,
            "on_cpu_ns": one.on_cpu,
            "blocked_ns": one.blocked,
            "runnable_ns": one.runnable,
            "open_count": one.open_count,
            "open_ns": one.open_time,
            "blocked_in": json_text(each.blocked_in) or None,
        }
        for each in made
        for one in each.each
        if one.pid == pid
    ]
