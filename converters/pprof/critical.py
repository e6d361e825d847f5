"""A critical path, and what its answer needs of the scheduler's events, in the data of our own that a profile carries:
see `converters.pprof.metadata`. The events themselves, with their times, are not saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from ..model import Frame, Kind, Module, Stack
from ..model.critical import NOT_TRACED, CriticalPath, Segment
from ..model.scheduling import NO_STACK, THREAD, Scheduling
from ..model.states import BLOCKED, ENDED, RUNNABLE_STATES, RUNNING, UNKNOWN

_STATES = frozenset((RUNNING, *RUNNABLE_STATES, *BLOCKED, ENDED, UNKNOWN, NOT_TRACED))
_KINDS = frozenset(get_args(Kind))
_THREAD = ("tid", "tgid", "name", "process")
_MOST = 1 << 22
"""Segments, threads, names, stacks, frames."""
_FARTHEST = 1 << 62


def encoded(path: CriticalPath, scheduling: Scheduling) -> dict[str, Any]:
    """Plain data for JSON, for `decoded`."""
    frames: dict[Frame, int] = {}
    stacks: dict[int, list[int]] = {}
    for segment in path.segments:
        if segment.stack != NO_STACK and segment.stack not in stacks:
            stack = scheduling.stacks[segment.stack]
            stacks[segment.stack] = [frames.setdefault(frame, len(frames)) for frame in stack]
    places = {stack: i for i, stack in enumerate(stacks)} | {NO_STACK: NO_STACK}
    return {
        "thread": path.thread,
        "segments": [
            [each.begin, each.end, each.thread, each.tid, each.state, places[each.stack], list(each.behind)]
            for each in path.segments
        ],
        "threads": [[int(thread[name]) for name in _THREAD] for thread in scheduling.threads],
        "names": scheduling.names,
        "stacks": list(stacks.values()),
        "frames": [[*frame[:2], frame.module, *frame[3:]] for frame in frames],
    }


def decoded(entry: Any) -> tuple[CriticalPath, Scheduling]:
    """The inverse. ValueError for anything that `encoded` did not make."""
    keys = {"thread", "segments", "threads", "names", "stacks", "frames"}
    _require(isinstance(entry, dict) and entry.keys() == keys)
    names = [_text(name) for name in _list(entry["names"])]
    threads = np.zeros(len(_list(entry["threads"])), THREAD)
    for row, each in enumerate(entry["threads"]):
        tid, tgid, name, process = (_number(number, 1 << 31) for number in _list(each, len(_THREAD)))
        _require(name < len(names) and process < len(names))
        for field, number in zip(_THREAD, (tid, tgid, name, process), strict=True):
            threads[row][field] = number
    frames = [_frame(each) for each in _list(entry["frames"])]
    stacks = [tuple(frames[_number(i, len(frames))] for i in _list(each)) for each in _list(entry["stacks"])]
    thread = _number(entry["thread"], len(threads))
    segments = tuple(_segment(each, len(threads), stacks) for each in _list(entry["segments"]))
    end = segments[-1].end if segments else 0
    return CriticalPath(thread, segments), Scheduling(end, threads=threads, names=names, stacks=stacks)


def _segment(entry: Any, threads: int, stacks: Sequence[Stack]) -> Segment:
    begin, end, thread, tid, state, stack, behind = _list(entry, 7)
    _require(isinstance(begin, int) and isinstance(end, int) and -_FARTHEST < begin <= end < _FARTHEST)
    _require(isinstance(state, str) and state in _STATES)
    thread = thread if thread == -1 else _number(thread, threads)
    stack = stack if stack == NO_STACK else _number(stack, len(stacks))
    rows = tuple(_number(row, threads) for row in _list(behind))
    return Segment(begin, end, int(thread), _number(tid, 1 << 31), state, int(stack), rows)


def _frame(entry: Any) -> Frame:
    name, kind, module, address, file, line = _list(entry, len(Frame._fields))
    _require(isinstance(kind, str) and kind in _KINDS)
    if module is not None:
        path, build_id, size = _list(module, len(Module._fields))
        module = Module(_text(path), _text(build_id), _number(size))
    return Frame(_text(name), kind, module, _number(address), _text(file), _number(line))


def _list(value: Any, length: int | None = None) -> list[Any]:
    _require(isinstance(value, list) and len(value) <= _MOST and length in (None, len(value)))
    found: list[Any] = value
    return found


def _text(value: Any) -> str:
    _require(isinstance(value, str))
    return str(value)


def _number(value: Any, below: int = 1 << 64) -> int:
    _require(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below)
    return int(value)


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError("critical path")
