"""Python's interpreter lock (GIL) in words: who waits for it, and who has it. Names are unescaped (hostile)."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.units import plural, share
from ..facts import thresholds
from ..facts.frame_names import without_line
from ..facts.gil import GilShare
from ..facts.thread_names import thread_pattern
from ..model.gil import GilThread, GilTimes
from ..rules.gil_main import main_of


def gil_sentence(shares: Sequence[GilShare]) -> str:
    """Sentence about the process whose threads wait for the GIL most, if that matters; else ""."""
    mattering = [each for each in shares if each.wall and each.gil.time >= thresholds.GIL_MATTERS * each.wall]
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


def held_up_main(found: GilShare) -> str:
    """``For 73.1 % of its time, the main thread of app (pid 7) waits for Python's interpreter lock (GIL), …``"""
    main = main_of(found.gil)
    assert main
    text = (
        f"For {share(main.time, found.main)} of its time, the main thread of {found.process} (pid {found.gil.pid}) "
        "waits for Python's interpreter lock (GIL)"
    )
    if told := _holders(found.gil):
        # Holders are known of the waits of all threads.
        text += "; of all such waits of this process, " if len(found.gil.waiters) > 1 else ", "
        first_much, first_told = told[0]
        of = "" if len(found.gil.waiters) > 1 else "of that "
        text += " and ".join([f"{first_much} {of}{first_told}", *map(" ".join, told[1:])])
    return f"{text}."


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
        if time >= thresholds.GIL_HOLDER * gil.time:
            told.append((time, share(time, gil.time), f"while {_whose(entries, gil.pid)}{_where(entries, time)}"))
    told.sort(key=lambda each: -each[0])
    return [(much, text) for _, much, text in told[: thresholds.GIL_NAMED]]


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
    if not functions or most < thresholds.GIL_HOLDER * time:
        return ""
    lines = {entry.frames for entry in entries if tuple(map(without_line, entry.frames)) == functions}
    return f", most often in {' → '.join(lines.pop() if len(lines) == 1 else functions)}"
