"""Python's interpreter lock (GIL): the waits of each process for it, beside the time of its threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..base.text import json_text
from ..model import ThreadTimes
from ..model.gil import GilThread, GilTimes


class GilShare(NamedTuple):
    """The waits of one process, and the time of its threads."""

    gil: GilTimes
    process: str
    threads: int
    wall: int
    """ns; 0 if not known."""
    main: int = 0
    """Part of ``wall`` that is the main thread's."""

    def to_json(self) -> dict[str, Any]:
        """Times in ns, the share as a fraction of 1, null when unknown."""
        gil = self.gil
        return {
            "process": json_text(self.process),
            "pid": gil.pid,
            "threads": self.threads,
            "threads_ns": self.wall,
            "time_ns": gil.time,
            "share": round(gil.time / self.wall, 6) if self.wall else None,
            "waits": gil.waits,
            "max_ns": gil.max,
            "open_count": gil.open_count,
            "unknown_ns": gil.unknown,
            "waiters": [_thread_json(thread) for thread in gil.waiters],
            "more_waiters": gil.more_waiters,
            "holders": [
                {**_thread_json(thread), "frames": [json_text(frame) for frame in thread.frames]}
                for thread in gil.holders
            ],
            "more_holders": gil.more_holders,
        }


def gil_shares(gils: Sequence[GilTimes], threads: Iterable[ThreadTimes]) -> tuple[GilShare, ...]:
    """Most time first. ``threads``: all that were traced."""
    of: dict[int, list[ThreadTimes]] = {}
    for times in threads:
        of.setdefault(times.pid, []).append(times)
    found = []
    for gil in sorted(gils, key=lambda gil: (-gil.time, gil.pid)):
        own = of.get(gil.pid, [])
        process = own[0].process if own else gil.process
        main = sum(times.wall for times in own if times.tid == gil.pid)
        found.append(GilShare(gil, process, sum(times.count for times in own), sum(times.wall for times in own), main))
    return tuple(found)


def _thread_json(thread: GilThread) -> dict[str, Any]:
    return {
        "thread": json_text(thread.thread),
        "tid": thread.tid,
        "time_ns": thread.time,
        "waits": thread.waits,
    }
