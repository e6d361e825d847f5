"""Slices of the threads of a trace, with names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ....converters.model.states import BLOCKED
from ..rows import Row
from .lives import Lives
from .measures.protocol import Collector, Ended

if TYPE_CHECKING:
    from ....converters.model.slices import ThreadSlices
    from .capture import Capture
    from .measures.slices import Slices
    from .names import Names
    from .stacks import Stacks


def slices_by_process(collectors: Iterable[Collector], ended: Ended, lives: Lives) -> Slices | None:
    """Slices of the collector that has some, with numbers of processes instead of pids; None if there is none."""
    found = next((made for each in collectors if (made := each.slices(ended))), None)
    if found is None:
        return None
    return found._replace(waits={(lives.numbered(at), state): times for (at, state), times in found.waits.items()})


def thread_slices(capture: Capture, rows: Sequence[Row], stacks: Stacks, names: Names) -> list[ThreadSlices]:
    """The slices of all threads, once: the capture does not keep its waits by slices. ``rows``: those of the capture,
    in its order, with the stacks that have names."""
    if capture.slices is None:
        return []
    from ....converters.scan.slicing import Lived, Waited, slices_of

    found = capture.slices
    known: dict[tuple[object, str], Row] = {}
    for given, row in zip(capture.rows, rows, strict=True):
        if given.state in BLOCKED:
            known.setdefault((given.origin, given.state), row)
    threads: dict[int, list[Lived]] = {}
    for record in capture.threads:
        first, begin = record.thread.first, record.thread.start - capture.began
        if record.thread.key.tid:
            lived: Sequence[int] = found.overlap(begin, record.end - capture.began)
        else:
            lived = found.lived.get(first, [0] * found.number)
        threads.setdefault(first, []).append(Lived(names.times(record), lived))
    for (origin, state), times in found.waits.items():
        if members := threads.get(capture.lives.first(origin.life)):
            at = known.get((origin, state))
            waited = Waited(state, stacks.of(at) if at and state in BLOCKED else (), names.object(origin, state), times)
            members[0].waits.append(waited)
    found.waits.clear()  # the threads have them
    return slices_of([each for members in threads.values() for each in members], found.length)
