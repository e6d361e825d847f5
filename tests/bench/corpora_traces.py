"""PyTorch's traces: the time of all calls beside the union of their intervals, counted by hand.

The profiler's own span, which lasts as long as the recording, is no call: where there is one, that is the reason.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from corpora import Comparison
from stallscope.converters.readers import detect
from stallscope.converters.readers.base.options import ReadOptions


def traces(folder: Path) -> Iterator[Comparison]:
    """Every trace with calls in ``folder``; with and without their times."""
    for path in sorted(folder.rglob("*.json*")):
        events = _events(path)
        if not any(isinstance(event, dict) and event.get("ph") == "X" for event in events):
            continue
        calls = [event for event in events if not (isinstance(event, dict) and (event.get("cat"), event.get("pid")) == ("Trace", "Spans"))]
        expected, reason = _union(calls), "" if len(calls) == len(events) else "the profiler's own span is no call"
        for timeline in (False, True):
            _, profile = detect.read(str(path), ReadOptions(timeline=timeline))
            found = profile.total("wall")
            name = f"{path.name}{' with times' if timeline else ''}"
            yield Comparison(name, found == expected, reason, f"{expected} ns of calls, {found} ns read")


def _events(path: Path) -> list[Any]:
    data = path.read_bytes()
    try:
        document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, parse_float=Decimal)
    except ValueError:
        return []
    events = document.get("traceEvents") if isinstance(document, dict) else document
    return events if isinstance(events, list) else []


def _union(events: list[Any]) -> int:
    """ns in which a thread was in at least one call, of all threads together."""
    threads: dict[tuple[Any, Any], list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        if isinstance(event, dict) and event.get("ph") == "X" and "ts" in event:
            start, length = (round(Decimal(event.get(key, 0)) * 1000) for key in ("ts", "dur"))
            if length >= 0:
                threads[event.get("pid"), event.get("tid")].append((start, start + length))
    total = 0
    for calls in threads.values():
        until = -(1 << 80)
        for start, end in sorted(calls):
            total += max(end - max(start, until), 0)
            until = max(until, end)
    return total
