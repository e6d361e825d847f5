"""Records of single events, put together: the scheduler's events, the calls, and where these were made.

What needs numpy is imported when there is something to put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....kernel.records import RUNNING, Origin
from ...rows import Row
from .protocol import Collector, Ended, Recorded

if TYPE_CHECKING:
    from .....converters.model.scheduling import Array, CallName
    from .spans import CallSpans


def recorded_by(measures: Iterable[Collector], ended: Ended) -> Recorded | None:
    """The recorded events of the measure that has any, with the spans of the others."""
    measures = list(measures)
    recorded = next(filter(None, (measure.recorded(ended) for measure in measures)), None)
    if not recorded:
        return None
    return with_spans(recorded, [found for measure in measures if (found := measure.spans())], ended)


def with_spans(recorded: Recorded, found: Sequence[CallSpans], ended: Ended) -> Recorded:
    """The recorded events with calls, within the same time."""
    if not found:
        return recorded
    import numpy as np

    from .....converters.model.call_spans import nested_levels, within
    from .....converters.model.scheduling import CALL, OPEN

    scheduling = recorded.scheduling
    names: list[CallName] = []
    parts: list[Array] = []
    for each in found:
        spans = each.calls.copy()
        spans["begin"] -= ended.began
        spans["end"][spans["end"] != OPEN] -= ended.began
        spans["name"] += len(names)
        names += [_since(name, ended.began) for name in each.names]
        parts.append(spans)
    joined = np.concatenate(parts)
    # Each measure knows of its own calls only; steps of Python and of libraries are in one another.
    steps = np.flatnonzero(np.array([each.kind == "step" for each in names], bool)[joined["name"]])
    joined["level"][steps] = nested_levels(joined[steps])
    spans = within(joined, scheduling.begin, scheduling.end)
    more: dict[str, Any] = {"calls_lost": sum(each.lost for each in found)}
    more["calls_dropped"] = sum(each.dropped for each in found) + sum(map(len, parts)) - len(spans)
    calls = np.zeros(len(spans), CALL)
    for name in ("begin", "end", "tid", "name", "level"):
        calls[name] = spans[name]
    calls["stack"], places = _places(spans, recorded, ended)
    scheduling = replace(scheduling, calls=calls, call_names=names, **more)
    return replace(recorded, scheduling=scheduling, places=[*recorded.places, *places])


def _since(name: CallName, began: int) -> CallName:
    """Name with times since the trace began."""
    return name._replace(unwatched=tuple((pid, begin - began, end - began) for pid, begin, end in name.unwatched))


def _places(spans: Array, recorded: Recorded, ended: Ended) -> tuple[Array, list[Row]]:
    """Index of where each span began, after ``recorded.places``; and these places."""
    import numpy as np

    from .....converters.model.scheduling import NO_STACK, Threads
    from .recorded_samples import alike, mixed

    threads = recorded.scheduling.threads
    rows = Threads(threads).rows(spans["tid"], spans["begin"])
    stacks = np.full(len(spans), NO_STACK, np.int32)
    known = np.flatnonzero((rows >= 0) & (spans["ustack"] != 0))
    if not len(known):
        return stacks, []
    spans, rows = spans[known], rows[known]
    # Of a thread, ``name`` is still the index of its record.
    numbers = np.array([record.thread.key.tgid for record in recorded.lives], np.int32)
    tgids, lives = numbers[threads["name"][rows]], alike(spans["life"], ended)
    _, first, which = np.unique(mixed(spans["ustack"], tgids, lives), return_index=True, return_inverse=True)
    stacks[known] = len(recorded.places) + which
    columns = [column[first].tolist() for column in (spans["ustack"], tgids, lives)]
    origins = [Origin(ustack, 0, 0, 0, tgid, life, RUNNING) for ustack, tgid, life in zip(*columns, strict=True)]
    return stacks, [Row(origin, "", ()) for origin in origins]
