"""Python's interpreter lock (GIL): the share of a process's time that waits for it, and who has it meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..base.text import json_text
from ..base.units import plural, share
from ..facts.frame_names import without_line
from ..facts.thread_names import thread_pattern
from ..model import ThreadTimes
from ..model.gil import GilThread, GilTimes

_MATTERS = 0.05
"""A process is worth a sentence if its threads wait for this share of their time."""
_MUCH = 0.1
"""A thread that has the lock is named if it is so for this share of the waits, and its functions if they are for
this share of these."""
_MOST = 2
_MAINLY = 0.5
"""A main thread that waits for this share of its time is held up by it, whatever else happens."""


class GilShare(NamedTuple):
    """The waits of one process, and the time of its threads."""

    gil: GilTimes
    process: str
    threads: int
    wall: int
    """ns; 0 if not known."""
    main: int = 0
    """Of it, the main thread's."""

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


def gil_sentence(shares: Sequence[GilShare]) -> str:
    """About the process whose threads wait for it most, if that matters; else "". Names are unescaped (hostile)."""
    mattering = [each for each in shares if each.wall and each.gil.time >= _MATTERS * each.wall]
    if not mattering:
        return ""
    first, others = mattering[0], len(mattering) - 1
    whose, wait = ("its", "waits") if first.threads == 1 else ("their", "wait")
    text = (
        f"For {share(first.gil.time, first.wall)} of {whose} time, {plural(first.threads, 'thread')} of "
        f"{first.process} (pid {first.gil.pid}) {wait} for Python's interpreter lock (GIL)"
    )
    if told := _holders(first.gil):
        text += f", {told[0][0]} of that {' and '.join([told[0][1], *map(' '.join, told[1:])])}"
    waits = "waits for its own" if others == 1 else "wait for theirs"
    also = f" {plural(others, 'other process')} {waits}, too." if others else ""
    return f"{text}.{also}"


class HeldUp(NamedTuple):
    """A main thread that waits for it for most of its time."""

    sentence: str
    """Names are unescaped (hostile)."""
    pid: int


def held_up_main(shares: Sequence[GilShare]) -> HeldUp | None:
    """The main thread that waits longest of those that do so for most of their time; None if there is none."""
    mains = [(main.time, each) for each in shares if (main := _main_of(each.gil))]
    found = [(time, each) for time, each in mains if time >= _MAINLY * each.main > 0]
    if not found:
        return None
    time, first = max(found, key=lambda entry: (entry[0], -entry[1].gil.pid))
    text = (
        f"For {share(time, first.main)} of its time, the main thread of {first.process} (pid {first.gil.pid}) waits "
        "for Python's interpreter lock (GIL)"
    )
    if told := _holders(first.gil):
        # Holders are known of the waits of all threads.
        text += "; of all such waits of this process, " if len(first.gil.waiters) > 1 else ", "
        first_much, first_told = told[0]
        of = "" if len(first.gil.waiters) > 1 else "of that "
        text += " and ".join([f"{first_much} {of}{first_told}", *map(" ".join, told[1:])])
    return HeldUp(f"{text}.", first.gil.pid)


def _main_of(gil: GilTimes) -> GilThread | None:
    return next((thread for thread in gil.waiters if thread.tid == gil.pid), None)


def _holders(gil: GilTimes) -> list[tuple[str, str]]:
    """``58.2 %`` and ``while thread loader (tid 12) has it, most often in train.py:14 load``, of those with most.

    Threads of one name that mostly have it in one function are told together.
    """
    by_thread: dict[int, list[GilThread]] = {}
    for entry in gil.holders:
        by_thread.setdefault(entry.tid, []).append(entry)
    groups: dict[object, list[GilThread]] = {}
    for tid, entries in by_thread.items():
        name = thread_pattern(entries[0].thread, tid == gil.pid)
        groups.setdefault((tid == gil.pid, name, _mostly(entries)[0]), []).extend(entries)
    told = []
    for entries in groups.values():
        time = sum(entry.time for entry in entries)
        if time >= _MUCH * gil.time:
            told.append((time, share(time, gil.time), f"while {_whose(entries, gil.pid)}{_where(entries, time)}"))
    told.sort(key=lambda each: -each[0])
    return [(much, text) for _, much, text in told[:_MOST]]


def _whose(entries: Sequence[GilThread], pid: int) -> str:
    tids = {entry.tid for entry in entries}
    if len(tids) > 1:
        return f"{len(tids)} {thread_pattern(entries[0].thread, main=False)} threads have it"
    name = "the main thread" if tids == {pid} else f"thread {entries[0].thread} (tid {entries[0].tid})"
    return f"{name} has it"


def _mostly(entries: Sequence[GilThread]) -> tuple[tuple[str, ...], int]:
    """The functions with most of the time, without lines, and that time: a function runs in many of its lines."""
    times: dict[tuple[str, ...], int] = {}
    for entry in entries:
        if entry.frames:
            functions = tuple(map(without_line, entry.frames))
            times[functions] = times.get(functions, 0) + entry.time
    return max(times.items(), key=lambda of: (of[1], of[0]), default=((), 0))


def _where(entries: Sequence[GilThread], time: int) -> str:
    functions, most = _mostly(entries)
    if not functions or most < _MUCH * time:
        return ""
    lines = {entry.frames for entry in entries if tuple(map(without_line, entry.frames)) == functions}
    return f", most often in {' → '.join(lines.pop() if len(lines) == 1 else functions)}"


def _thread_json(thread: GilThread) -> dict[str, Any]:
    return {
        "thread": json_text(thread.thread),
        "tid": thread.tid,
        "time_ns": thread.time,
        "waits": thread.waits,
    }
