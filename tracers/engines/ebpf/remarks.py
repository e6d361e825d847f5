"""Remarks on a trace: what was lost, which option would have helped, how stacks were taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ....converters.base.units import plural
from ....converters.model import losses as kinds
from ....converters.model.calls import WITHOUT_PROBE
from ....converters.model.remarks import (
    BufferFull,
    Comment,
    FramesNameless,
    SwitchesUnseen,
    TablesFull,
    UnwindTablesFull,
)
from ...base import capabilities, descriptors
from ...base.file_locks import LOST_LOOKS, LOST_REQUESTS
from ...base.launch import ending
from ...kernel.records import ENDS, LOST, MAX_FRAMES
from ..limits import MOST_OBJECTS
from .capture import Capture
from .measures.answers import LOSSES as OF_QUESTIONS
from .measures.calls import TOO_DEEP
from .measures.gil import UNREAD
from .measures.ioctl_records import UNREPORTED
from .measures.lock_records import UNREADABLE, UNSEEN
from .measures.probed import NOT_LOOKED_INTO
from .measures.step_hits import LOST_WRITES, MISSED_CHANGES, UNREADABLE_THREADS
from .retransmissions import LOST as LOST_SEGMENTS
from .stacks import Stacks

_NARROW = ENDS.index("32-bit code")
WITHOUT_ACCOUNT = "accounts of threads"
"""Kind of loss: the last record was lost, or the kernel hides the thread from its task iterator."""
_WORTH_A_NOTE = 0.01
"""Share of the time in user code."""
_INCOMPLETE = {end: kinds.not_complete(end) for end in ENDS} | {"too deep": kinds.cut(f"at {MAX_FRAMES} frames")}

_OTHERWISE = frozenset(
    (
        *(UNREADABLE, UNSEEN, UNREAD, NOT_LOOKED_INTO, WITHOUT_PROBE, TOO_DEEP, UNREPORTED),
        *(LOST_WRITES, MISSED_CHANGES, UNREADABLE_THREADS, *OF_QUESTIONS.values()),
        *(LOST_REQUESTS, LOST_LOOKS, LOST_SEGMENTS),
    )
)
"""Losses of measures that larger tables would not prevent."""
_MODULES = 3
"""Maximum number of modules named in a remark."""


def losses(capture: Capture, stacks: Stacks) -> dict[str, int]:
    counters = capture.counters
    lost = {
        **capture.losses,
        "stacks": stacks.missing,
        "threads": counters["lost_threads"],
        "exit and exec records": counters["lost_records"],
        "address space records": capture.lost_process_events,
        kinds.UNREADABLE: counters["stacks_failed"],
        **{_INCOMPLETE[end]: stacks.ends[end] for end in ENDS[1:]},
        kinds.NAMELESS: stacks.unnamed.total(),
    }
    more = {
        LOST_REQUESTS: counters["lost_refusals"] + capture.losses.get(LOST_REQUESTS, 0),
        LOST_SEGMENTS: counters["lost_retransmissions"],
        "Python stacks that could not be read": counters["python_stacks_failed"],
        "Python stacks cut": counters["python_stacks_cut"],
        "Python functions without a name": stacks.nameless,
        **capture.spaces.lost,
        WITHOUT_ACCOUNT: _without_account(capture),
    }
    return lost | {kind: count for kind, count in more.items() if count}


def _without_account(capture: Capture) -> int:
    """Number of threads (lives, if they executed programs) that have rows, and no account."""
    known = capture.lives.threads
    return len({row.origin.life for row in capture.rows if row.origin.ustack != LOST} - known.keys())


def missed_switches(counters: Mapping[str, int]) -> int:
    """Number of switches that the kernel did not report to the probes."""
    return counters["missed_ins"] + counters["missed_outs"] + counters["missed_waits"]


def details(capture: Capture) -> list[str]:
    """Details on how the stacks were taken: how many were recognised, how often that was checked, what the tables
    took."""
    counters = capture.counters
    lines = []
    for whose, name in (("user", "user_memo"), ("kernel", "memo")):
        hits, checks, wrong = (counters[f"{name}_{what}"] for what in ("hits", "checks", "wrong"))
        lines.append(
            f"{whose} stacks recognised without unwinding: {hits:,}; checked: {checks:,}, of these wrong: {wrong:,}"
        )
    tables = capture.tables
    lines.append(f"user stacks walked again while their threads waited: {counters['late_stacks']:,}")
    if tables is not None:
        files = plural(tables.files, "file")
        lines.append(f"unwind tables: {tables.bytes >> 20} MB for {files}; compiled now: {tables.compiled:,}")
        lines += [f"files without a table: {count} ({why})" for why, count in sorted(tables.refused.items())]
        if tables.evicted or tables.no_room:
            lines.append(f"tables that left for want of room: {tables.evicted:,}; that found none: {tables.no_room:,}")
        if tables.problem:
            lines.append(f"no more memory for tables: {tables.problem}")
    return lines


def completeness(reached: Counter[int], cut: Counter[str], of: str = "the time") -> list[str]:
    """``reached``: time by `Stacks.end_of`. ``cut``: time by `Stacks.cut_in`. ``of``: what was summed instead."""
    del reached[-1], cut[""]
    if not (total := reached.total()) or reached[0] == total:
        return []
    rest = [f"{ENDS[end]} {time / total:.2%}" for end, time in reached.most_common() if end and time]
    whole = min(reached[0] / total, 0.9999)  # "100.00%" only for all
    said = f"{whole:.2%} of {of} in user code is in complete stacks; others: {', '.join(rest)}"
    modules = [f"{module} {time / total:.2%}" for module, time in cut.most_common(_MODULES) if time]
    notes = [f"{said}; they end in {', '.join(modules)}" if modules else said]
    if reached[_NARROW] >= _WORTH_A_NOTE * total:
        notes.append(
            "32-bit code is walked by frame pointers: callers of code without them are missing (most libraries); "
            "gcc -fno-omit-frame-pointer keeps them"
        )
    return notes


def comments(capture: Capture, lost: dict[str, int], stacks: Stacks) -> list[Comment]:
    """Comments for the reader, and which option would have helped."""
    comments: list[Comment] = [
        *capture.notes,
        *capture.python.remarks,
        *stacks.problems,
        *capture.spaces.readings.remarks(),
    ]
    comments += capture.spaces.remarks()
    if capture.exit_status:
        comments.append(ending(capture.exit_status))
    counters = capture.counters
    if unseen := missed_switches(counters):
        comments.append(SwitchesUnseen(unseen))
    for whose, name in (("user", "user_memo"), ("kernel", "memo")):
        if wrong := counters[f"{name}_wrong"]:
            checked = counters[f"{name}_checks"]
            comments.append(f"{wrong} of {checked} {whose} stacks that were recognised, and checked, were others")
    if counters["lost_objects"]:
        comments.append(f"threads waited on more than {MOST_OBJECTS:,} files and sockets: the others are not told")
    if number := counters["lost_makers"]:
        comments.append(f"where {plural(number, 'thread')} were created is not known: others were, on the same core")
    comments += _shortages(capture, lost)
    if stacks.unnamed:
        where = tuple(stacks.unnamed.most_common(_MODULES))
        comments.append(FramesNameless(where, stacks.unnamed.total() - sum(count for _, count in where)))
    return comments


def _shortages(capture: Capture, lost: dict[str, int]) -> list[Comment]:
    """Comments on what was too small, and on how to enlarge it."""
    comments: list[Comment] = []
    if not capabilities.held().effective & 1 << capabilities.Capability.SYS_PTRACE:
        comments.append(
            "CAP_SYS_PTRACE is not there: what processes of other users, or with more rights, have mapped cannot be "
            "read, so that their functions have no names (docs/privileges.md)"
        )
    if refused := capture.spaces.descriptors.refused:
        files = f"only {descriptors.limit():,} files may be open at a time, and {refused:,} more were needed"
        comments.append(f"{files}: stacks are cut short, and names missing; {descriptors.REMEDY}")
    if capture.tables and capture.tables.left_out:
        files = plural(capture.tables.left_out, "file")
        comments.append(f"unwind tables of {files} are missing: their processes map very many, or the trace was ended")
    if capture.tables and capture.tables.no_room:
        comments.append(UnwindTablesFull())
    if any(number and kind not in _OTHERWISE for kind, number in capture.losses.items()):
        comments.append(TablesFull())
    if lost["stacks"] or lost["exit and exec records"] or lost.get(LOST_WRITES):
        comments.append(BufferFull())
    elif number := lost.get(WITHOUT_ACCOUNT):
        comments.append(f"{plural(number, 'thread')} without an account: hidden from the kernel's task iterator")
    return comments
