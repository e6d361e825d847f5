"""The threads of a Chrome trace, by pid and tid, and their names."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...base.errors import StallscopeError
from ...model import Frame, Labels, Sample, Stack
from ...model.timeline import Timeline, Track
from .calls import Calls, Lose

MAX_CALLS = 20_000_000
"""Maximum number of calls in memory, for traces whose calls cannot be summed while they are read: each takes 20 bytes,
or 800 if its time is kept."""
_MAX_LABEL = 200
FOLD, FOLD_PIPED = 1 << 17, 1 << 22
"""Number of new calls after which completed ones are summed again; more for a pipe, which cannot be read again if
some calls come too late."""


class Tracks:
    """All threads. ``timeline``: keep the times of all calls. ``fold``: number of calls after which they are summed;
    0: at the end."""

    def __init__(self, lose: Lose, *, timeline: bool, fold: int) -> None:
        self.pending = 0
        """Calls read since they were last summed."""
        self.timeline = timeline
        self.name_of: list[int] = []
        """Index of the name in the trace, for each frame index."""
        self._lose = lose
        self._fold = 0 if timeline else fold
        self._tracks: dict[tuple[Any, Any], Calls] = {}
        self._processes: dict[Any, str] = {}
        self._named: Counter[str] = Counter()
        """Number of processes by name."""
        self._process_labels: dict[Any, str] = {}
        self._threads: dict[tuple[Any, Any], str] = {}

    def of(self, pid: Any, tid: Any) -> Calls:
        """The calls of one thread. TypeError and ValueError for ids that are neither numbers nor strings."""
        track = self._tracks.get((pid, tid))
        if track is None:
            _check(pid, tid)
            track = self._tracks[pid, tid] = Calls(self.name_of, keep_args=self.timeline)
        return track

    @property
    def count(self) -> int:
        """Number of calls read."""
        return sum(track.count for track in self._tracks.values())

    def settle(self, name: str) -> None:
        """Sums completed calls if enough calls are pending. LateCall if a call came too late for that, StallscopeError
        if there are too many calls in the trace called ``name``."""
        if self.pending < (self._fold or FOLD):
            return
        self.pending = 0
        for track in self._tracks.values() if self._fold else ():
            if track.is_new:
                track.fold(self._lose)
        if sum(len(track.starts) for track in self._tracks.values()) > MAX_CALLS:
            raise StallscopeError(f"{name} has more than {MAX_CALLS:,} calls", "record for a shorter time")

    def name(self, event: dict[str, Any]) -> None:
        """Handles an event M."""
        pid, tid, kind = event.get("pid"), event.get("tid"), event.get("name")
        if kind not in ("process_name", "thread_name", "process_labels"):
            return
        _check(pid, tid)
        if kind == "process_labels":
            if isinstance(args := event.get("args"), dict):
                self._process_labels[pid] = str(args.get("labels") or "")[:_MAX_LABEL]
            return
        name = str(event["args"]["name"])
        if kind == "process_name":
            self._named[self._processes.get(pid, "")] -= 1
            self._named[name] += 1
            self._processes[pid] = name
        else:
            self._threads[pid, tid] = name

    def labels(self, pid: Any, tid: Any) -> Labels:
        """The labels of a thread; ids that are strings become names."""
        labels: dict[str, str | int] = {}
        for key, called, value, name in (
            ("pid", "process", pid, self._process(pid)),
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

    def _process(self, pid: Any) -> str:
        """Name of a process, followed by its label if another process has the same name: ``python3.8 GPU 3``."""
        name, label = self._processes.get(pid, ""), self._process_labels.get(pid, "")
        if not label or label in name:
            return name
        if not name or self._named[name] > 1:
            return f"{name} {label}".strip()
        return name

    def spans(self, frames: list[Frame]) -> Timeline:
        """All calls as a timeline; the first begins at 0."""
        firsts = [first for track in self._tracks.values() if (first := track.began()) is not None]
        zero = min(firsts, default=0)
        timeline = Timeline()
        for (pid, tid), track in self._tracks.items():
            if spans := track.spans(zero, frames, self._lose):
                timeline.tracks.append(Track(self.labels(pid, tid), spans=spans))
        return timeline

    def sums(self, frames: list[Frame]) -> tuple[list[Sample], int]:
        """One sample per stack and labels: (self time, number of calls of the innermost frame); and the end of the last
        call, with the first one beginning at 0. Raises LateCall like `settle`. Clears the threads."""
        found: dict[Labels, dict[Stack, tuple[int, int]]] = {}
        first, last = [], []
        for pid, tid in list(self._tracks):
            labels = self.labels(pid, tid)
            track = self._tracks.pop((pid, tid))
            track.fold(self._lose, final=True)
            known = found.setdefault(labels, {})
            for stack, time, count in track.sums(frames):
                before = known.get(stack)
                known[stack] = (time + before[0], count + before[1]) if before else (time, count)
            first += [track.first] if track.first is not None else []
            last += [track.last] if track.last is not None else []
        samples = [Sample(stack, values, labels) for labels, known in found.items() for stack, values in known.items()]
        return samples, max(last, default=0) - min(first, default=0) if samples else 0


def _check(*ids: Any) -> None:
    for each in ids:
        if each is not None and (isinstance(each, bool) or not isinstance(each, int | str)):
            raise TypeError("an id that is neither a number nor a word")
        if isinstance(each, int) and not -(1 << 63) <= each < 1 << 63:
            raise ValueError("an id that is no number of 64 bits")
