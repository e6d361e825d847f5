"""Folded stacks, FlameGraph's text format: ``process-PID;frame;…;frame WEIGHT``, one line per distinct stack.

Written as stackcollapse-perf.pl --all --pid does: spaces of the process name become ``_``, kernel frames end in
``_[k]`` and JIT frames in ``_[j]``; with per-thread roots ``thread-PID/TID``, as its --tid does. Nanoseconds become
microseconds. So that every reader finds the weight again, names never begin or end with white space, nor end in a
space and a number (flamegraph.pl takes that for a second weight): that space is written ``\\x20``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import BinaryIO

from ..model import Frame, Profile, Sample
from ..options import WriteOptions, value_index
from ..text import folded_name

_SUFFIXES = {"kernel": "_[k]", "jit": "_[j]"}
_EDGE = re.compile(r"\A\s+|\s+\Z|\s(?=\d+(?:\.\d*)?\Z)")


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes the lines sorted, equal stacks merged. Raises StallscopeError when ``options`` do not fit the profile.

    The weights of nanoseconds add up to the true total: what rounding takes from a line the next one gets, so
    each is less than 1 µs off. A stack whose weight comes to 0 has no line.
    """
    index = value_index(profile, options)
    frame_name = cache(_frame_name)
    merged: defaultdict[str, int] = defaultdict(int)
    for sample in profile.samples:
        merged[_stack(sample, frame_name, options.per_thread)] += sample.values[index]
    scale = 1000 if profile.value_types[index].unit == "nanoseconds" else 1
    exact = written = 0
    for stack in sorted(merged):
        exact += max(merged[stack], 0)
        weight = (exact + scale // 2) // scale - written
        written += weight
        if weight:
            file.write(f"{stack} {weight}\n".encode())


def _stack(sample: Sample, frame_name: Callable[[Frame], str], per_thread: bool) -> str:
    frames = [frame_name(frame) for frame in sample.stack]
    root = _root(sample, per_thread)
    if root or not frames:
        frames.insert(0, _field(root))
    return ";".join(frames)


def _root(sample: Sample, per_thread: bool) -> str:
    """``process-PID`` or ``thread-PID/TID``; "" for a sample that says nothing of its process."""
    pid, tid = sample.label("pid"), sample.label("tid")
    name = sample.label("process")
    if per_thread:
        name = sample.label("thread") or name
    root = str(name or "").replace(" ", "_")
    if pid is not None:
        root = f"{root or '[unknown]'}-{pid}"
    return f"{root}/{tid}" if per_thread and tid is not None else root


def _frame_name(frame: Frame) -> str:
    return _field(frame.name) + _SUFFIXES.get(frame.kind, "")


def _field(name: str) -> str:
    """``name`` as one field; never empty."""
    return _EDGE.sub(lambda spaces: "".join(map(_escape, spaces[0])), folded_name(name)) or "[unknown]"


def _escape(space: str) -> str:
    code = ord(space)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
