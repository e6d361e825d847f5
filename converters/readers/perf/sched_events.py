"""Lines of ``perf script`` for the tracepoints sched:*: switches, wakeups and sleeping times.

The fields are as printed by the kernel (include/trace/events/sched.h) or, shorter, by libtraceevent's plugin for
them: ``comm:pid [prio] S ==> comm:pid [prio]``, ``comm:pid [prio] CPU:002``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from ...model.states import BY_LETTER, OTHER

MAX_PLACES = 9
"""Maximum number of decimals of a time."""
SCALES = [10 ** (MAX_PLACES - places) for places in range(MAX_PLACES + 1)]
"""ns per unit of the last decimal, by the number of decimals."""

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
_MAX_KNOWN = 1 << 10
"""Maximum size of a header whose parts are cached, in bytes: headers made of known parts then fit in _MAX_LINE."""
_MAX_CACHED = 32 << 20
_MAX_DIGITS, _MAX_SECONDS = 18, 12
_MAX_HEADS = 1 << 14
_PLACES = 6
_SCHED, _ARROW, _DELAY_IS, _UNIT = b"sched:", b" ==> ", b" delay=", b" [ns]"
_TELLING = (b"switch", b"wakeup", b"wakeup_new", b"waking", b"stat_sleep", b"stat_blocked", b"stat_iowait")
"""Events that describe a wait if their fields are valid."""
_STATES = {letter.encode(): state for letter, state in BY_LETTER.items()}
_ENDED = (b"X", b"x", b"Z")


class Event(NamedTuple):
    """One line. ``tid`` is the thread that the event is about, not always the one in which it occurred."""

    name: str
    """switch, wakeup, waking or stat_…, without ``sched_``."""
    time: int
    """ns."""
    pid: int | None
    """The process in which the event occurred; None if perf did not print it, or if it has exited (perf prints -1)."""
    tid: int
    comm: str
    state: str = ""
    """State of the thread switched out: "" preempted, "ended", or one of `states.BLOCKED`."""
    next_tid: int = 0
    next_comm: str = ""
    delay: int = 0
    """Delay in ns that a tracepoint sched_stat_* reports; else 0."""


def parse(line: bytes) -> Event | None:
    """None if the line is not the header of an event sched:*; an event of another kind has the name "other"."""
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
    return "ended" if first in _ENDED else _STATES.get(first, OTHER)


def _text(name: bytes) -> str:
    return name.decode(errors="surrogateescape")


class NotKnown(Exception):
    """The text is not cached and has to be parsed."""


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_Out = TypeVar("_Out")
_Thread = TypeVar("_Thread")


class _Known(dict[_Key, _Value]):
    """A dict that raises NotKnown instead of KeyError."""

    def __missing__(self, key: _Key) -> _Value:
        raise NotKnown


_Outs = _Known[bytes, tuple[_Out, _Known[bytes, _Thread]]]
"""Event up to ``==>`` → what is switched out; text after it → thread that is switched in."""


class KnownParts(Generic[_Out, _Thread]):
    """Caches the results of `parse` for parts of headers: a header made of known parts need not be parsed.

    A header is cut at its first ``: sched:``, at the last space before it, which precedes the time, and at
    ``==>`` or ``delay=``. A header that contains these marks, or ``sched:``, at other places too is not cached:
    the meaning of a part therefore does not depend on the others.
    """

    def __init__(self, make_out: Callable[[Event], _Out], find_thread: Callable[[int], _Thread]) -> None:
        """``make_out`` returns the value to cache for a switch out, ``find_thread`` for a tid."""
        self.places, self.scale = _PLACES, SCALES[_PLACES]
        """Decimals of the time in the last header that was parsed; ns per unit of the last decimal."""
        self.heads: _Heads[_Out, _Thread] = _Heads()
        self.wakes: dict[bytes, tuple[_Thread, bool]] = {}
        """Event → (the thread that is woken, whether it is sched_wakeup)."""
        self.others: set[bytes] = set()
        """Names of events that never describe a wait, whatever their fields."""
        self._make_out, self._find_thread = make_out, find_thread
        self._outs: dict[int | None, _Outs[_Out, _Thread]] = {}
        """Cached switches out, by process."""
        self._nexts: tuple[_Known[bytes, _Thread], _Known[bytes, _Thread]] = _Known(), _Known()
        """One for each of the two formats of a switch."""
        self._sleeps: _Known[bytes, _Thread] = _Known()
        self._cached = 0

    def sleep(self, fields: bytes) -> tuple[_Thread, int]:
        """(thread, ns) of an event ``sched_stat_…``. Raises NotKnown."""
        who, _, delay = fields.partition(_DELAY_IS)
        digits = delay.removesuffix(_UNIT)
        if digits == delay or not digits.isdigit() or len(digits) > _MAX_DIGITS:
            raise NotKnown
        return self._sleeps[who], int(digits)

    def learn(self, header: bytes, event: Event) -> None:
        """Caches ``event``, the result of `parse` for ``header``."""
        before, _, fields = header.partition(b": sched:")
        thread, _, clock = before.rpartition(b" ")
        seconds, _, part = clock.partition(b".")
        is_plain = fields and len(header) <= _MAX_KNOWN and _SCHED not in thread and _SCHED not in fields
        if not is_plain or not seconds.isdigit() or not part.isdigit() or len(part) > MAX_PLACES:
            return
        self._make_room(len(header))
        self.places, self.scale = len(part), SCALES[len(part)]
        outs = self._outs.setdefault(event.pid, _Known())
        self.heads.threads[thread] = outs
        self._learn_event(fields, event, outs)

    def _learn_event(self, fields: bytes, event: Event, outs: _Outs[_Out, _Thread]) -> None:
        name = fields.partition(b":")[0]
        if event.name == "switch":
            prev, _, after = fields.partition(_ARROW)
            if _ARROW not in b" " + after:
                nexts = self._nexts[after.rstrip().endswith(b"]")]
                nexts[after] = self._find_thread(event.next_tid)
                if prev not in outs:
                    outs[prev] = self._make_out(event), nexts
        elif event.name in ("wakeup", "waking"):
            self.wakes[fields] = self._find_thread(event.tid), event.name == "wakeup"
        elif name.removeprefix(b"sched_") not in _TELLING:
            self.others.add(name)
        elif event.name != "other":
            who = fields.partition(_DELAY_IS)[0]
            if b"delay=" not in who:
                self._sleeps[who] = self._find_thread(event.tid)

    def _make_room(self, size: int) -> None:
        self._cached += size + 500
        if self._cached > _MAX_CACHED:
            self._cached = size
            self.heads.threads.clear()
            for known in (self.heads, self.wakes, self.others, self._outs, *self._nexts, self._sleeps):
                known.clear()


class _Heads(dict[bytes, tuple[_Outs[_Out, _Thread], int]], Generic[_Out, _Thread]):
    """Header up to the decimal point of its time → (what its process switches out, time in ns). Raises NotKnown."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: _Known[bytes, _Outs[_Out, _Thread]] = _Known()
        """Switches out of the thread, by the part of the header before the time."""

    def __missing__(self, head: bytes) -> tuple[_Outs[_Out, _Thread], int]:
        thread, _, clock = head.rpartition(b" ")
        seconds = clock[:-1]
        outs = self.threads[thread]
        if clock[-1:] != b"." or not seconds.isdigit() or len(seconds) > _MAX_SECONDS:
            raise NotKnown
        if len(self) >= _MAX_HEADS:
            self.clear()
        found = self[head] = outs, int(seconds) * SCALES[0]
        return found
