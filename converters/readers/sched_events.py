"""Lines of ``perf script`` for the tracepoints sched:*: who was switched out or in, who was woken, who slept how long.

The fields as the kernel prints them (include/trace/events/sched.h) and, shorter, as libtraceevent's plugin for them
does: ``comm:pid [prio] S ==> comm:pid [prio]``, ``comm:pid [prio] CPU:002``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

EVENTS = ("sched_switch", "sched_wakeup", "sched_wakeup_new", "sched_waking", "sched_stat_")

_HEADER = re.compile(
    rb"(?P<comm>\S.{0,200}?)\s+(?:(?P<pid>-?\d{1,10})/+)?(?P<tid>-?\d{1,10})\s+(?:\[(?P<cpu>\d{1,6})\]\s+)?(?:[a-zA-Z0-9.]{4,8}\s+)?"
    rb"(?P<seconds>\d{1,12})\.(?P<part>\d{1,9}):\s+(?:\d{1,18}\s+)?sched:(?P<event>\w{1,40}):\s*(?P<fields>.*)",
    re.DOTALL,
)
_SWITCH = re.compile(
    rb"prev_comm=(?P<comm>.*) prev_pid=(?P<tid>-?\d{1,10}) prev_prio=-?\d+ prev_state=(?P<state>\S+) ==> "
    rb"next_comm=(?P<next_comm>.*) next_pid=(?P<next>-?\d{1,10}) next_prio=-?\d+\s*\Z",
    re.DOTALL,
)
_SHORT_SWITCH = re.compile(
    rb"(?P<comm>.*):(?P<tid>\d{1,10}) \[-?\d+\] (?P<state>\S+) ==> (?P<next_comm>.*):(?P<next>\d{1,10}) \[-?\d+\]\s*\Z",
    re.DOTALL,
)
_WOKEN = re.compile(rb"comm=(?P<comm>.*) pid=(?P<tid>\d{1,10})(?: .*)?\Z", re.DOTALL)
_SHORT_WOKEN = re.compile(rb"(?P<comm>.*):(?P<tid>\d{1,10}) \[-?\d+\].*\Z", re.DOTALL)
_DELAY = re.compile(rb"delay=(\d{1,18})")
_MAX_LINE = 4096
_STATES = {
    b"S": "interruptible",
    b"D": "uninterruptible",
    b"K": "uninterruptible",
    b"T": "stopped",
    b"t": "traced",
    b"I": "idle",
    b"P": "other",
}
_ENDED = (b"X", b"x", b"Z")


class Event(NamedTuple):
    """One line. ``tid`` is the thread that it is about, not always the one that it happened in."""

    name: str
    """switch, wakeup, waking or stat_…, without ``sched_``."""
    time: int
    """ns."""
    pid: int | None
    """Of the process in which it happened, where perf printed it; not for one that has gone (-1)."""
    tid: int
    comm: str
    state: str = ""
    """Of the thread switched out: "" preempted, "ended", or a state of `model.ThreadTimes`."""
    next_tid: int = 0
    next_comm: str = ""
    delay: int = 0
    """ns, of stat_…"""


def parse(line: bytes) -> Event | None:
    """None for a line that is no header of an event sched:*; one of another event has the name "other"."""
    match = _HEADER.match(line[:_MAX_LINE])
    if match is None:
        return None
    comm, pid_text, tid, _, seconds, part, event, fields = match.groups()
    time = int(seconds + part.ljust(9, b"0"))
    pid = int(pid_text) if pid_text and pid_text[:1] != b"-" else None
    name = event.decode().removeprefix("sched_")
    if name == "switch":
        found = _SWITCH.match(fields) or _SHORT_SWITCH.match(fields)
        if found is None:
            return Event("other", time, pid, int(tid), _text(comm))
        comm, tid, state, next_comm, next_tid = found.groups()
        return Event(name, time, pid, int(tid), _text(comm), _state(state), int(next_tid), _text(next_comm))
    if name in ("wakeup", "wakeup_new", "waking") or name.startswith("stat_"):
        found = _WOKEN.match(fields) or _SHORT_WOKEN.match(fields)
        if found is None:
            return Event("other", time, pid, int(tid), _text(comm))
        delay = _DELAY.search(fields) if name.startswith("stat_") else None
        return Event(
            "wakeup" if name == "wakeup_new" else name, time, pid, int(found["tid"]), _text(found["comm"]),
            delay=int(delay[1]) if delay else 0,
        )  # fmt: skip
    return Event("other", time, pid, int(tid), _text(comm))


def _state(text: bytes) -> str:
    if text.startswith(b"R"):
        return ""
    first = text.split(b"|")[0].rstrip(b"+")
    return "ended" if first in _ENDED else _STATES.get(first, "other")


def _text(name: bytes) -> str:
    return name.decode(errors="surrogateescape")
