"""The threads of a Chrome trace, by pid and tid, and what they are called."""

from __future__ import annotations

from typing import Any

from ..errors import StallscopeError
from ..model import Frame, Labels, Sample
from ..timeline import Timeline, Track
from .chrome_calls import Calls, Lose

MAX_CALLS = 20_000_000
"""Of one trace, where they cannot be added up while they come: each takes 20 bytes, and 800 where its time is kept."""
FOLD, FOLD_PIPED = 1 << 17, 1 << 22
"""Calls that come before it is tried again to add up those that are over; more from a pipe, where they cannot be read
once more if some come too late."""


class Tracks:
    """All threads. With ``timeline``, when each call was is kept. ``fold``: calls after which they are added up; 0: at
    the end."""

    def __init__(self, lose: Lose, *, timeline: bool, fold: int) -> None:
        self.pending = 0
        """Calls that came since they were added up."""
        self.timeline = timeline
        self.name_of: list[int] = []
        """Of a frame, by its index: which of the trace's names it has."""
        self._lose = lose
        self._fold = 0 if timeline else fold
        self._tracks: dict[tuple[Any, Any], Calls] = {}
        self._processes: dict[Any, str] = {}
        self._threads: dict[tuple[Any, Any], str] = {}

    def of(self, pid: Any, tid: Any) -> Calls:
        """The calls of one thread. TypeError and ValueError for ids that are neither numbers nor words."""
        track = self._tracks.get((pid, tid))
        if track is None:
            _check(pid, tid)
            track = self._tracks[pid, tid] = Calls(self.name_of, keep_args=self.timeline)
        return track

    def settle(self, name: str) -> None:
        """Adds up what is over, when it is time to. LateCall when a call came too late for that, and StallscopeError
        when there are too many calls in the trace called ``name``."""
        if self.pending < (self._fold or FOLD):
            return
        self.pending = 0
        for track in self._tracks.values() if self._fold else ():
            if track.is_new:
                track.fold(self._lose)
        if sum(len(track.starts) for track in self._tracks.values()) > MAX_CALLS:
            raise StallscopeError(f"{name} has more than {MAX_CALLS:,} calls", "record for a shorter time")

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
        labels: dict[str, str | int] = {}
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

    def spans(self, frames: list[Frame]) -> Timeline:
        """Everything; the first call begins at 0."""
        firsts = [first for track in self._tracks.values() if (first := track.began()) is not None]
        zero = min(firsts, default=0)
        timeline = Timeline()
        for (pid, tid), track in self._tracks.items():
            if spans := track.spans(zero, frames, self._lose):
                timeline.tracks.append(Track(self.labels(pid, tid), spans=spans))
        return timeline

    def sums(self, frames: list[Frame]) -> tuple[list[Sample], int]:
        """One sample per stack and labels: (self time, how often the innermost frame was called); and when the last
        call ended, the first having begun at 0. LateCall as `settle`. Forgets the threads."""
        known: dict[tuple[tuple[Frame, ...], Labels], list[int]] = {}
        first, last = [], []
        for pid, tid in list(self._tracks):
            labels = self.labels(pid, tid)
            track = self._tracks.pop((pid, tid))
            track.fold(self._lose, final=True)
            for stack, time, count in track.sums(frames):
                cell = known.setdefault((stack, labels), [0, 0])
                cell[0] += time
                cell[1] += count
            first += [track.first] if track.first is not None else []
            last += [track.last] if track.last is not None else []
        samples = [Sample(stack, (time, count), labels) for (stack, labels), (time, count) in known.items()]
        return samples, max(last, default=0) - min(first, default=0) if samples else 0


def _check(*ids: Any) -> None:
    for each in ids:
        if each is not None and (isinstance(each, bool) or not isinstance(each, int | str)):
            raise TypeError("an id that is neither a number nor a word")
        if isinstance(each, int) and not 0 <= each < 1 << 63:
            raise ValueError("an id that is no number of 63 bits")
