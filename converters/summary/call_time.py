"""Waits of the threads that call CUDA, or another library: for the GPU, the driver, or neither."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..base.text import json_text
from ..base.units import share
from ..facts import thresholds
from ..facts.identity import kernel_id
from ..model import Profile, ThreadTimes
from .call_places import NO_TIME, Place, Places, Times, times_of

_SYNC = re.compile(r"cu(?:da)?(?:Ctx|Device|Event|Stream|Thread)Synchronize(?:_|$)")
"""Functions in which a thread waits until the GPU has done something."""
_OF_CUDA = re.compile(r"cu(?:da)?[A-Z]")


@dataclass(slots=True)
class CallTime:
    """Time of the calling threads of one process. The parts sum to ``wall``."""

    pid: int
    process: str
    threads: int = 0
    wall: int = 0
    gpu: Times = NO_TIME
    """Time in synchronisation calls. On a core, the threads poll."""
    driver: Times = NO_TIME
    """Time in ioctls of other calls."""
    other: Times = NO_TIME
    """Time in other calls, outside of ioctls."""
    outside: Times = NO_TIME

    def to_json(self) -> dict[str, Any]:
        """Plain data, times in ns."""
        parts = {"gpu": self.gpu, "driver": self.driver, "other_calls": self.other, "outside": self.outside}
        return {
            "pid": kernel_id(self.pid) or None,
            "process": json_text(self.process),
            "threads": self.threads,
            "wall_ns": self.wall,
            **{
                name: {"on_cpu_ns": part.on_cpu, "blocked_ns": part.blocked, "runnable_ns": part.runnable}
                for name, part in parts.items()
            },
        }


def call_times(profile: Profile) -> tuple[CallTime, ...]:
    """Times by process, the most time of calling threads first. Empty if stacks have no functions, or a thread's
    account is missing: then what is outside of calls is not known. Empty, too, if none of the functions is CUDA's."""
    if not any(_OF_CUDA.match(call.name) for call in profile.calls):
        return ()
    inside = _inside(profile)
    accounts: dict[tuple[Any, Any], ThreadTimes] = {(each.pid, each.tid): each for each in profile.threads}
    if not inside or len(accounts) != len(profile.threads) or not inside.keys() <= accounts.keys():
        return ()
    found: dict[int, CallTime] = {}
    for key, parts in inside.items():
        account = accounts[key]
        made = found.setdefault(account.pid, CallTime(account.pid, account.process))
        within = parts["gpu"].plus(parts["driver"]).plus(parts["other"])
        blocked = sum(account.blocked.values())
        outside = Times(account.on_cpu - within.on_cpu, blocked - within.blocked, account.runnable - within.runnable)
        # A little can be on the wrong side: a switch that the kernel did not report is a wait of the thread alone.
        outside = Times._make(max(part, 0) for part in outside)
        made.threads += account.count
        made.wall += within.sum + outside.sum
        made.gpu, made.driver = made.gpu.plus(parts["gpu"]), made.driver.plus(parts["driver"])
        made.other, made.outside = made.other.plus(parts["other"]), made.outside.plus(outside)
    return tuple(sorted(found.values(), key=lambda each: (-each.wall, each.pid)))


def _inside(profile: Profile) -> dict[tuple[Any, Any], dict[str, Times]]:
    """Parts of the time in calls, by process and thread. Empty if no stack has a function."""
    found: dict[tuple[Any, Any], dict[str, Times]] = defaultdict(
        lambda: {"gpu": Times(), "driver": Times(), "other": Times()}
    )
    places, named = Places(), False
    for sample in profile.samples:
        place = places.of(sample.stack)
        named = named or bool(place.functions)
        if place.is_outside:
            continue
        parts = found[sample.label("pid"), sample.label("tid")]
        kind = _kind(place)
        parts[kind] = parts[kind].plus(times_of(sample))
    return dict(found) if named else {}


def _kind(place: Place) -> str:
    if any(_SYNC.match(name) for name in place.functions):
        return "gpu"
    return "driver" if place.ioctl else "other"


def answer_of_times(times: Sequence[CallTime]) -> tuple[str, ...]:
    """Sentence on what the calling threads of all processes wait for."""
    wall = sum(each.wall for each in times)
    if not wall:
        return ()
    gpu, driver, other, outside = (
        _sum(getattr(each, name) for each in times) for name in ("gpu", "driver", "other", "outside")
    )
    parts = [
        (gpu.sum, f"for the GPU (synchronisation: {_polling(gpu)})"),
        (driver.blocked, "for the driver (blocked in ioctls of other calls)"),
    ]
    waits = [f"{share(ns, wall)} {text}" for ns, text in parts if ns >= thresholds.CALL_TIME_PART * wall]
    rest = [
        (driver.on_cpu + driver.runnable + other.sum, "otherwise in calls"),
        (outside.on_cpu, "on a core outside of them"),
        (outside.blocked + outside.runnable, "waiting outside of them"),
    ]
    others = [f"{share(ns, wall)} {text}" for ns, text in rest if ns >= thresholds.CALL_TIME_PART * wall]
    told = f"The calling threads wait {' and '.join(waits)}; " if waits else "The calling threads are "
    return (f"{told}{', '.join(others)}." if others else f"{told.rstrip('; ')}.",)


def _polling(times: Times) -> str:
    return f"{share(times.blocked, times.sum)} of it blocked, {share(times.on_cpu, times.sum)} polling"


def _sum(parts: Any) -> Times:
    found = Times()
    for part in parts:
        found = found.plus(part)
    return found
