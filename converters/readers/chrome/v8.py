"""CPU profiles of V8: sampled stacks and their times.

In DevTools' traces they are events: CpuProfile holds a whole profile, Profile begins one, and ProfileChunk continues
it. A .cpuprofile file holds one profile, in the layout of the inspector's Profiler.Profile or, from the older C++
interface, as a tree. Times are µs. A sample lasts until the next one, so the last one has no duration. V8's own work,
``(garbage collector)`` and ``(program)``, is placed on top of the stack that it interrupts; ``(root)`` is not a
function, and ``(idle)`` is not work.
Source: js_protocol.pdl of V8 (Profiler), CPUProfileDataModel of Chrome's DevTools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...base.units import duration
from ...model import Frame, Labels, Profile, Sample, Stack, ValueType
from ...model.timeline import Timeline, Track, in_order

_EVENTS = ("CpuProfile", "Profile", "ProfileChunk")
MAX_SAMPLES = 20_000_000
_MAX_DEPTH = 10_000
_MAX_DELTA = 1 << 53
_ON_TOP = ("(garbage collector)", "(program)")
_NOTHING = ("(root)", "(idle)")
_NATIVE = "native dummy.js"
"""The file of entries that are not functions."""
NO_NODE, BACKWARDS = "samples without a stack", "times before the last one"


def is_part(event: dict[str, Any]) -> bool:
    """Whether an event of a trace is part of such a profile."""
    return event.get("name") in _EVENTS


class CpuProfile:
    """One profile; parts must be added in order."""

    def __init__(self) -> None:
        self.start = 0
        """µs of the trace's clock."""
        self._nodes: dict[int, tuple[Frame | None, int]] = {}
        """Id → frame (None if it is not a function) and the id of the caller."""
        self._stacks: dict[int, Stack | None] = {}
        self._samples: list[int] = []
        self._deltas: list[int] = []

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, data: dict[str, Any]) -> None:
        """Adds a whole profile, or a part of one: nodes, samples, timeDeltas. TypeError, KeyError, ValueError or
        AttributeError for invalid data."""
        for node in data.get("nodes") or ():
            self._add_node(node)
        for node in data.get("nodes") or ():
            for child in node.get("children") or ():
                self._nodes[child] = self._nodes[child][0], node["id"]
        samples, deltas = list(data.get("samples") or ()), list(data.get("timeDeltas") or ())
        if not all(type(each) is int for each in samples):
            raise TypeError("a sample that is no id")
        self._samples += samples
        self._deltas += map(_delta, deltas)
        if len(self._samples) > MAX_SAMPLES:
            raise ValueError("too many samples")

    def add_tree(self, data: dict[str, Any]) -> None:
        """Adds the older layout: ``head``, ``samples``, ``timestamps``. Raises like `add`."""
        pending = [(data["head"], 0)]
        while pending:
            node, parent = pending.pop()
            self._nodes[node["id"]] = _frame(node, first_line=1), parent
            pending += [(child, node["id"]) for child in node.get("children") or ()]
        times = [_delta(time) for time in data["timestamps"]]
        begin = round(float(data.get("startTime") or 0) * 1e6)
        deltas = [after - before for before, after in zip([begin, *times], times, strict=False)]
        self.add({"samples": data["samples"], "timeDeltas": deltas})

    def _add_node(self, node: dict[str, Any]) -> None:
        parent = node.get("parent") or 0
        if type(node["id"]) is not int or type(parent) is not int:
            raise TypeError("a node whose id is no number")
        self._nodes[node["id"]] = _frame(node["callFrame"]), parent

    def steps(self, lost: dict[str, int]) -> Iterator[tuple[Stack, int, int]]:
        """(stack, µs, samples) in time order, beginning `delay` µs after `start`; the stack is empty while idle.

        Consecutive samples of one node are one step.
        """
        before: Stack = ()
        now = latest = at = 0
        unknown = backwards = 0
        while at < len(self._samples):
            node, first = self._samples[at], at
            while at < len(self._samples) and self._samples[at] == node:
                now += self._deltas[at + 1] if at + 1 < len(self._deltas) else 0
                at += 1
            if at == len(self._samples):
                now -= self._deltas[at] if at < len(self._deltas) else 0
            stack = self._on_top(self._stack(node), before)
            unknown += (at - first) * (node not in self._nodes)
            backwards += now < latest
            yield stack, max(now - latest, 0), at - first
            before, latest = stack, max(now, latest)
        lost[NO_NODE] = lost.get(NO_NODE, 0) + unknown
        lost[BACKWARDS] = lost.get(BACKWARDS, 0) + backwards

    def _on_top(self, stack: Stack | None, before: Stack) -> Stack:
        """Places V8's own work on top of the stack that it interrupts."""
        if stack is None:
            return before
        if not stack or stack[-1].name not in _ON_TOP:
            return stack
        return (*before[: before.index(stack[-1])], stack[-1]) if stack[-1] in before else (*before, stack[-1])

    @property
    def delay(self) -> int:
        """µs from the start to the first sample."""
        return self._deltas[0] if self._deltas else 0

    def _stack(self, node: int) -> Stack | None:
        """Outermost first; None for an unknown node."""
        if node in self._stacks:
            return self._stacks[node]
        frames: list[Frame] = []
        at, steps = node, 0
        while at in self._nodes and steps < _MAX_DEPTH:
            frame, at = self._nodes[at]
            steps += 1
            if frame is not None:
                frames.append(frame)
        stack = self._stacks[node] = tuple(reversed(frames)) if node in self._nodes else None
        return stack


class Profiles:
    """The profiles of a trace, by thread."""

    def __init__(self) -> None:
        self._parts: dict[tuple[Any, Any], list[tuple[int, int, dict[str, Any]]]] = {}
        """Parts of profiles, by process and the profile's id: time of the event, its number, its data."""
        self._threads: dict[tuple[Any, Any], tuple[Any, Any]] = {}
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add_event(self, event: dict[str, Any], time: int) -> None:
        """Adds an event for which `is_part` is true. Raises like `CpuProfile.add`."""
        data = (event.get("args") or {}).get("data")
        if data is None:
            return
        pid, tid = event.get("pid"), event.get("tid")
        key = pid, str(event.get("id") or tid)
        times = {name: data[name] for name in ("timeDeltas", "startTime") if name in data}
        parts = [data.get("cpuProfile") or {}, times]
        if not all(isinstance(part, dict) for part in parts):
            raise TypeError("a profile that is no object")
        if event["name"] != "ProfileChunk" or key not in self._threads:
            self._threads[key] = pid, tid
        self._count += 1
        self._parts.setdefault(key, []).extend((time, self._count, part) for part in parts)

    def all(self) -> Iterator[tuple[Any, Any, CpuProfile]]:
        """(process, thread, profile) for each. Raises like `CpuProfile.add`."""
        for key, parts in self._parts.items():
            profile = CpuProfile()
            for _, _, part in sorted(parts, key=lambda part: part[:2]):
                profile.add(part)
                profile.start = _delta(part.get("startTime") or profile.start)
            if len(profile):
                yield *self._threads[key], profile


def result(profiles: Iterable[tuple[Labels, CpuProfile]], *, timeline: bool) -> Profile:
    """All profiles as one: time and number of samples of each stack; a comment gives the idle time."""
    profile = Profile([ValueType("wall", "nanoseconds"), ValueType("samples", "count")], title="V8 CPU profile")
    cells: dict[tuple[Stack, Labels], list[int]] = {}
    tracks: list[tuple[int, Track]] = []
    lost: dict[str, int] = {}
    idle = 0
    for labels, each in profiles:
        steps = [(stack, time * 1000, count) for stack, time, count in each.steps(lost)]
        for stack, time, count in steps:
            if not stack:
                idle += time
                continue
            cell = cells.setdefault((stack, labels), [0, 0])
            cell[0] += time
            cell[1] += count
        if timeline:
            tracks += [(each.start + each.delay, track) for track in _tracks(steps, labels)]
    profile.samples = [Sample(stack, (time, count), labels) for (stack, labels), (time, count) in cells.items()]
    profile.lost = {kind: count for kind, count in lost.items() if count}
    if idle:
        profile.comments.append(f"idle: {duration(idle)}")
    if tracks:
        zero = min(begin for begin, _ in tracks)
        profile.timeline = Timeline([_moved(track, (begin - zero) * 1000) for begin, track in tracks])
        profile.duration_ns = max((track.spans[-1].end for track in profile.timeline.tracks if track.spans), default=0)
    return profile


def _tracks(steps: list[tuple[Stack, int, int]], labels: Labels) -> list[Track]:
    return in_order(((stack, labels, time) for stack, time, _ in steps), "nanoseconds").tracks


def _moved(track: Track, by: int) -> Track:
    track.spans = [span._replace(start=span.start + by, end=span.end + by) for span in track.spans]
    return track


def _delta(value: Any) -> int:
    number = round(float(value))
    if isinstance(value, bool) or not -_MAX_DELTA < number < _MAX_DELTA:
        raise ValueError("a time that is too large")
    return number


def _frame(call: dict[str, Any], first_line: int = 0) -> Frame | None:
    """None if it is not a function. ``first_line``: number of a file's first line there; 1 in the older layout, which
    has what v8::CpuProfileNode::GetLineNumber() returns. The protocol's callFrame subtracts 1."""
    name, file, line = call.get("functionName") or "", call.get("url") or "", call.get("lineNumber")
    if not isinstance(name, str) or not isinstance(file, str):
        raise TypeError("a name that is no text")
    if name in _NOTHING or file == _NATIVE:
        return None
    number = line + 1 - first_line if type(line) is int and 0 <= line < 1 << 31 else 0
    if not name:
        place = f" {file.rpartition('/')[2]}:{number}" if file else ""
        name = f"(anonymous{place})"
    is_native = name in _ON_TOP or (not file and name.startswith("("))
    return Frame(name, "native" if is_native else "jit", file=file, line=number)
