"""The threads of a trace with SystemTap: their waits by stack, and accounts that fill their time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ....converters.model import Frame, Stack
from ....converters.model.states import BY_LETTER, OTHER, PREEMPTED, RUNNING, WOKEN
from ....converters.readers.stap.lines import Exec, Exit, Fork, Line, Name, Runs, Sampled, Wait, Woken
from ....converters.readers.stap.stacks import Stacks
from ..asleep import Asleep
from ..named_rows import LOST, NO_STACK, NOT_SAMPLED, Account, Place, add_wait, shared_out

Origin = tuple[int, int]
"""Numbers of the kernel and the user stack."""
_NONE: Origin = (0, 0)
_LOST: Origin = (-2, -2)
_NOT_STARTED: Origin = (-3, -3)
_ASLEEP: Origin = (-4, -4)
"""A wait that had begun before the trace: its stack is known by the thread."""
_FRAMES = {_LOST: LOST, _NOT_STARTED: "[not started]", _NONE: NO_STACK}
_SKIPPED = "-"
"""Letter of a wait whose begin SystemTap skipped: the thread ran, and then it waited."""
_MOST_ENDED = 1 << 16
"""Maximum number of ended threads; others are counted as lost."""
_MOST_PLACES = 1 << 19


class Filter(NamedTuple):
    """Filter of waits by length in ns and state (None: all)."""

    shortest: int = 0
    longest: int = 1 << 64
    states: Collection[str] | None = None


@dataclass
class _Thread:
    account: Account
    at: int
    """Time until which its state is known."""
    letter: str = "?"
    """State as the trace began, of proc(5)."""
    is_new: bool = False
    """Forked in the trace, and has not run yet."""
    samples: Counter[Origin] = field(default_factory=Counter)


class Part(NamedTuple):
    """Part of a wait: the time in one state."""

    state: str
    origin: Origin
    """Numbers of the kernel and the user stack."""
    time: int
    whole: int
    """Time of the whole wait."""
    is_open: bool = False


Waited = Callable[[Wait, Sequence[Part]], None]


class _Key(NamedTuple):
    pid: int
    tid: int
    state: str
    origin: Origin
    is_open: bool


class Threads:
    """Takes lines; gives rows and accounts."""

    def __init__(
        self,
        began: int,
        wanted: Filter | None = None,
        waited: Waited = lambda *_: None,
        asleep: Asleep | None = None,
    ) -> None:
        """``began``: CLOCK_MONOTONIC ns. ``waited`` is told of every wait, and of its parts, what was blocked first.
        ``asleep``: the stacks of threads that sleep when the trace begins."""
        self.began = began
        self.names: dict[int, str] = {}
        """Names by tid."""
        self.lost: Counter[str] = Counter({"intervals": 0})
        self._wanted = wanted or Filter()
        self._waited = waited
        self._asleep = asleep or Asleep()
        self._threads: dict[int, _Thread] = {}
        self._ended: list[_Thread] = []
        self._waits: dict[_Key, list[int]] = {}
        self._time_lost = 0
        self.ended = 0
        """Time when the trace ended, CLOCK_MONOTONIC ns; 0 before `finish`."""

    def known(self, pid: int, tid: int, letter: str, name: str) -> None:
        """A thread that is there as the trace begins, with its state of proc(5)."""
        self._threads.setdefault(tid, _Thread(Account(pid, tid, self.began), self.began, letter))
        self.names.setdefault(tid, name)

    def restart(self, line: Exec) -> None:
        """A thread becomes another program: what it did before does not count."""
        self._threads.pop(line.tid, None)
        self._waits = {key: values for key, values in self._waits.items() if key.tid != line.tid}
        self._threads[line.tid] = _Thread(Account(line.pid, line.tid, line.time), line.time, "R")

    def pid_of(self, tid: int) -> int:
        """The process of a thread that is known; 0: it is not."""
        thread = self._threads.get(tid)
        return thread.account.pid if thread else 0

    def pids(self) -> set[int]:
        """Pids of all processes so far."""
        return {thread.account.pid for thread in self._all()}

    def is_traced(self, pid: int, tid: int) -> bool:
        """Whether something is known of this thread, and it has not ended."""
        thread = self._threads.get(tid)
        return thread is not None and thread.account.pid == pid

    def take(self, line: Line, ended: int = 0) -> None:
        """The next line. ``ended``: when the trace has ended, ns; 0: not yet known."""
        if isinstance(line, Wait):
            self._wait(line, ended)
        elif isinstance(line, Name):
            self._name(line)
        elif isinstance(line, Woken):
            self._of(line.pid, line.tid)
        elif isinstance(line, Sampled):
            self._of(line.pid, line.tid).samples[line.kernel, line.user] += 1
        elif isinstance(line, Fork):
            self._end(line.tid)
            account = Account(line.pid, line.tid, line.time, created=True)
            self._threads[line.tid] = _Thread(account, line.time, "R", True)
        elif isinstance(line, Exit):
            self._exit(line)
        elif isinstance(line, Runs) and (thread := self._threads.get(line.tid)):
            self._ran(thread, ended or thread.at + line.ran, line.ran)

    def _name(self, line: Name) -> None:
        """Wakers have names, too, traced or not: a name alone makes no account."""
        self.names[line.tid] = line.text
        thread = self._threads.get(line.tid)
        if thread and thread.account.pid != line.pid:
            self._end(line.tid)

    def _of(self, pid: int, tid: int) -> _Thread:
        """The record of a thread that is traced."""
        thread = self._threads.get(tid)
        if thread is None or thread.account.pid != pid:
            self._end(tid)
            thread = self._threads[tid] = _Thread(Account(pid, tid, self.began), self.began)
        return thread

    def _ran(self, thread: _Thread, until: int, ran: int) -> None:
        """Adds that the thread ran for ``ran`` ns before ``until``. What was not reported before that is lost."""
        ran = max(ran, 0)  # -1: not known
        gap = until - ran - thread.at
        if gap > 0:
            self.lost["intervals"] += 1
            self._time_lost += gap
            self._add(thread, Part(OTHER, _LOST, gap, gap))
            thread.account.blocked[OTHER] += gap
        thread.account.on_cpu += max(until - max(until - ran, thread.at), 0)
        thread.at = max(until, thread.at)

    def _wait(self, line: Wait, ended: int) -> None:
        thread = self._of(line.pid, line.tid)
        origin, letter = (line.kernel, line.user), line.letter
        if letter == _SKIPPED:
            gap = max(line.blocked, 0) + max(line.runnable, 0)
            self._waited(line, [Part(OTHER, _NONE, gap, gap)])
            return self._ran(thread, line.since + gap, 0)
        if letter == "?" and line.since <= self.began:
            # Its state was looked at later than the trace began: one that was woken meanwhile had been blocked.
            letter = "?" if thread.letter == "R" and line.runnable > 0 else thread.letter
            origin = self._origin_of(line.tid, line.since + max(line.blocked, 0))
        else:
            self._ran(thread, line.since, line.ran)
            thread.account.switches += 1
        if thread.is_new:
            origin = _NOT_STARTED
        blocked, runnable = max(line.blocked, 0), max(line.runnable, 0)
        if line.is_open and ended:  # the script has ended later
            blocked = min(blocked, max(ended - line.since, 0))
            runnable = min(runnable, max(ended - line.since - blocked, 0))
        whole = blocked + runnable
        if letter == "R":
            state, blocked, runnable = WOKEN if thread.is_new else PREEMPTED, 0, whole
        else:
            state = BY_LETTER.get(letter, OTHER)
        thread.account.runnable += runnable
        if runnable:
            thread.account.waited_for_core(runnable)
        if blocked:
            thread.account.blocked[state] += blocked
        parts = [Part(state, origin, runnable if letter == "R" else blocked, whole, line.is_open)]
        if letter != "R" and runnable:
            parts.append(Part(WOKEN, origin, runnable, whole, line.is_open))
        for part in parts:
            self._add(thread, part)
        self._waited(line, parts)
        thread.at, thread.is_new = max(line.since, thread.at) + whole, False
        return None

    def _origin_of(self, tid: int, until: int) -> Origin:
        """Origin of a wait that had begun before the trace, and ended then."""
        return _ASLEEP if self._asleep.has(tid, until) else _NONE

    def _add(self, thread: _Thread, part: Part) -> None:
        wanted = self._wanted
        state = part.state
        if not wanted.shortest <= part.whole <= wanted.longest or (wanted.states and state not in wanted.states):
            return
        key = _Key(thread.account.pid, thread.account.tid, state, part.origin, part.is_open)
        if key not in self._waits and len(self._waits) >= _MOST_PLACES:
            key = key._replace(origin=_LOST)
            self.lost["intervals"] += 1
        values = self._waits.setdefault(key, [0, 0, part.time, 0])
        values[0] += part.time
        values[1] += 1
        values[2], values[3] = min(values[2], part.time), max(values[3], part.time)

    def _exit(self, line: Exit) -> None:
        thread = self._of(line.pid, line.tid)
        self._ran(thread, line.time, line.ran)
        thread.account.exited = True
        self._end(line.tid)

    def _end(self, tid: int) -> None:
        """No thread has this number any more."""
        thread = self._threads.pop(tid, None)
        if thread is None:
            return
        thread.account.ended = thread.at
        if len(self._ended) < _MOST_ENDED:
            self._ended.append(thread)
        else:
            self.lost["threads"] += 1

    def finish(self, ended: int) -> list[Account]:
        """The trace has ended at ``ended``: the accounts of all threads."""
        self.ended = ended
        for thread in self._threads.values():
            if ended > thread.at:
                self._rest(thread, ended - thread.at)
                thread.at = ended
            thread.account.ended = thread.at
        return [thread.account for thread in self._all()]

    def _rest(self, thread: _Thread, gap: int) -> None:
        """The time up to the end of which no line tells."""
        if thread.at > self.began:
            self.lost["intervals"] += 1
            self._time_lost += gap
            state, origin = OTHER, _LOST
        elif thread.letter == "R":  # it never left its core
            thread.account.on_cpu += gap
            return
        else:
            state, origin = BY_LETTER.get(thread.letter, OTHER), self._origin_of(thread.account.tid, self.ended)
        part = Part(state, origin, gap, gap, True)
        self._add(thread, part)
        thread.account.blocked[state] += gap
        if origin != _LOST:
            account = thread.account
            self._waited(Wait(account.pid, account.tid, thread.letter, 0, 0, self.began, 0, gap, 0, True), [part])

    def lost_share(self) -> float:
        """The part of all threads' time, which has ended, of which nothing is known."""
        wall = sum(thread.account.ended - thread.account.began for thread in self._all())
        return self._time_lost / wall if wall else 0

    def _all(self) -> list[_Thread]:
        return [*self._ended, *self._threads.values()]

    def waits(self, stacks: Stacks) -> dict[Place, list[int]]:
        """Rows of time, number, shortest and longest."""
        rows: dict[Place, list[int]] = {}
        for key, values in self._waits.items():
            place = Place(key.pid, key.tid, key.state, self.stack_of(stacks, key.origin, key.tid), key.is_open)
            add_wait(rows, place, values)
        return rows

    def stack_of(self, stacks: Stacks, origin: Origin, tid: int) -> Stack:
        """Stack of a wait of a thread."""
        if origin in _FRAMES:
            return (Frame(_FRAMES[origin], "other"),)
        found = self._asleep.stack(tid) if origin == _ASLEEP else stacks.of(*origin)
        return found or (Frame(NO_STACK, "other"),)

    def running(self, stacks: Stacks) -> dict[Place, tuple[int, int]]:
        """Rows of time and number of samples. A thread's samples share its time on a core."""
        rows: defaultdict[Place, list[int]] = defaultdict(lambda: [0, 0])
        for thread in self._all():
            account, samples = thread.account, thread.samples
            parts = shared_out(account.on_cpu, list(samples.values())) if samples else []
            for (origin, count), part in zip(samples.items(), parts, strict=True):
                row = rows[Place(account.pid, account.tid, RUNNING, self.stack_of(stacks, origin, account.tid))]
                row[0] += part
                row[1] += count
            if not samples and account.on_cpu:
                rows[Place(account.pid, account.tid, RUNNING, (Frame(NOT_SAMPLED, "other"),))][0] += account.on_cpu
        return {place: (time, count) for place, (time, count) in rows.items()}


Rows = Mapping[Place, list[int]]
