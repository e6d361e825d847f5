"""Calls of the threads in a Chrome trace, put in order and made to nest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..model import Frame, Labels
from ..timeline import Span, Timeline, Track

_NO_BEGIN, _NO_END = "ends of calls without a begin", "calls without an end"
_CUT = "calls that outlasted their caller, shortened"
_CLOCK = 1000
"""ns: what two clocks that tick in µs may differ by."""

_Call = tuple[int, int, "Frame | None", Labels]
_Names = dict[str, "str | int"]


class Calls:
    """Of one pid and tid; times are ns. ``labels`` are what the events themselves say of the thread."""

    def __init__(self) -> None:
        self.labels: _Names = {}
        self._whole: list[_Call] = []
        self._marks: list[tuple[int, str, Frame | None, Labels | None]] = []
        """Begins (with arguments) and ends, in the order of the file."""

    def add(self, start: int, end: int, frame: Frame | None, args: Labels) -> None:
        """A call whose end is known."""
        self._whole.append((start, end, frame, args))

    def begin(self, start: int, frame: Frame | None, args: Labels) -> None:
        """A call whose end is another event; without a frame it will not be shown."""
        self._marks.append((start, frame.name if frame else "", frame, args))

    def end(self, time: int, name: str) -> None:
        """The end of the innermost call, or of that called ``name`` if there is one."""
        self._marks.append((time, name, None, None))

    def first(self) -> int | None:
        """When the earliest call began."""
        times = [call[0] for call in self._whole]
        times += [mark[0] for mark in self._marks]
        return min(times, default=None)

    def spans(self, zero: int, lose: Callable[[str, int], None]) -> list[Span]:
        """All calls, callers first; times from ``zero`` on. Empties this."""
        calls = self._whole + self._paired(lose)
        self._whole, self._marks = [], []
        calls.sort(key=_by_start)
        spans: list[Span] = []
        open_: list[int] = []
        shortened = 0
        for start, end, frame, args in calls:
            while open_ and open_[-1] <= start:
                open_.pop()
            if open_ and end > open_[-1]:
                shortened += end > open_[-1] + _CLOCK
                end = open_[-1]
            open_.append(end)
            if frame is not None:
                spans.append(Span(start - zero, end - zero, frame, args))
        lose(_CUT, shortened)
        return spans

    def _paired(self, lose: Callable[[str, int], None]) -> list[_Call]:
        self._marks.sort(key=_by_time)
        calls: list[tuple[int, int, Frame | None, Labels]] = []
        open_: list[tuple[int, str]] = []
        lone = unended = 0
        for time, name, frame, args in self._marks:
            if args is not None:
                open_.append((len(calls), name))
                calls.append((time, time, frame, args))
                continue
            depth = _closed(open_, name)
            if depth < 0:
                lone += 1
                continue
            unended += len(open_) - 1 - depth
            while len(open_) > depth:
                _close(calls, open_.pop()[0], time)
        unended += len(open_)
        last = max([*(mark[0] for mark in self._marks[-1:]), *(call[1] for call in self._whole)], default=0)
        for index, _ in open_:
            _close(calls, index, last)
        lose(_NO_BEGIN, lone)
        lose(_NO_END, unended)
        return calls


def _by_start(call: _Call) -> tuple[int, int]:
    return call[0], -call[1]


def _by_time(mark: tuple[int, str, Frame | None, Labels | None]) -> int:
    return mark[0]


def _close(calls: list[_Call], index: int, time: int) -> None:
    start, _, frame, args = calls[index]
    calls[index] = start, max(time, start), frame, args


def _closed(open_: list[tuple[int, str]], name: str) -> int:
    """Index of the open call that an end means; -1 for none."""
    if not open_ or not name or open_[-1][1] in (name, ""):
        return len(open_) - 1
    return next((i for i in range(len(open_) - 1, -1, -1) if open_[i][1] == name), -1)


class Tracks:
    """All threads."""

    def __init__(self) -> None:
        self.calls = 0
        self._tracks: dict[tuple[Any, Any], Calls] = {}
        self._processes: dict[Any, str] = {}
        self._threads: dict[tuple[Any, Any], str] = {}

    def of(self, pid: Any, tid: Any) -> Calls:
        """The calls of one thread. TypeError for ids that are neither numbers nor words."""
        track = self._tracks.get((pid, tid))
        if track is None:
            _check(pid, tid)
            track = self._tracks[pid, tid] = Calls()
        return track

    def name(self, event: dict[str, Any]) -> None:
        """An event M."""
        pid, tid, kind = event.get("pid"), event.get("tid"), event.get("name")
        if kind not in ("process_name", "thread_name"):
            return
        _check(pid, tid)
        name = str(event["args"]["name"])
        if kind == "process_name":
            self._processes[pid] = name
        else:
            self._threads[pid, tid] = name

    def labels(self, pid: Any, tid: Any) -> Labels:
        """Ids that are words are names."""
        labels: _Names = {}
        for key, called, value, name in (
            ("pid", "process", pid, self._processes.get(pid, "")),
            ("tid", "thread", tid, self._threads.get((pid, tid), "")),
        ):
            number = int(value) if isinstance(value, str) and value.isdecimal() and len(value) <= 18 else value
            if isinstance(number, int):
                labels[key] = number
            name = name or (number if isinstance(number, str) else "")
            if name:
                labels[called] = name
        if (track := self._tracks.get((pid, tid))) is not None:
            labels.update(track.labels)
        return tuple(sorted(labels.items()))

    def timeline(self, lose: Callable[[str, int], None]) -> Timeline:
        """Everything; the first call begins at 0. Empties this of its calls."""
        firsts = [first for track in self._tracks.values() if (first := track.first()) is not None]
        zero = min(firsts, default=0)
        timeline = Timeline()
        for (pid, tid), track in self._tracks.items():
            if spans := track.spans(zero, lose):
                timeline.tracks.append(Track(self.labels(pid, tid), spans=spans))
        return timeline


def _check(*ids: Any) -> None:
    for each in ids:
        if each is not None and (isinstance(each, bool) or not isinstance(each, int | str)):
            raise TypeError("an id that is neither a number nor a word")
        if isinstance(each, int) and not 0 <= each < 1 << 63:
            raise ValueError("an id that is no number of 63 bits")
