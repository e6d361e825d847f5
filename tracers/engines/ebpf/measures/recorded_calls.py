"""Calls of functions kept one by one, for a timeline: what the probes write, and where it is kept.

What needs numpy is imported when the first calls are read: it takes longer to import than the probes to attach."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ....kernel.bpfobject import Object
from ....kernel.records import RUNNING, Origin
from ....measures.span_options import SpanOptions
from .open_calls import Open

if TYPE_CHECKING:
    from .bulk_ring import BulkRing
    from .spans import CallSpans, Spans

PERIOD = 0.02
"""Seconds between two looks at the ring."""


class RecordedCalls:
    """Does nothing without options."""

    def __init__(self, options: SpanOptions | None) -> None:
        self._options = options
        self._loaded: Object | None = None
        self._ring: BulkRing | None = None
        self._spans: Spans | None = None
        self._lost = self._short = 0
        self._reading = threading.Lock()

    def knobs(self) -> Mapping[str, int]:
        """Knobs as those of a `Collector`; so are the following."""
        return {"record_call_spans": 1, "call_span_over": self._options.over} if self._options else {}

    def sizes(self) -> Mapping[str, int]:
        return {"call_spans": self._options.buffer_bytes} if self._options else {}

    def open(self, loaded: Object) -> None:
        self._loaded = loaded

    def consume(self) -> None:
        # While a boundary passes, two threads read it.
        with self._reading:
            self._consume()

    def _consume(self) -> None:
        if not (self._options and self._loaded):
            return
        if self._ring is None or self._spans is None:
            from .bulk_ring import BulkRing
            from .spans import RECORD, Spans

            self._ring, self._spans = BulkRing(self._loaded.find_map("call_spans"), RECORD), Spans(self._options)
        found = self._ring.take()
        if len(found):
            self._spans.add(
                **{name: found[name] for name in ("begin", "end", "tid", "level", "ustack", "life")},
                name=found["function"],
            )

    def read(self, loaded: Object) -> None:
        self.consume()
        if self._options:
            counts = loaded.find_map("call_span_counts")
            self._lost, self._short = (counts.lookup_percpu_u64(i) for i in (0, 1))

    def close(self) -> None:
        if self._ring:
            self._ring.close()
        self._ring = self._loaded = None

    def finish(self, named: Callable[[int], str], going_on: Iterable[Open]) -> CallSpans | None:
        """The calls; None without options. ``named``: the function of a number. ``going_on``: those that had not
        returned."""
        if not self._spans:
            return None
        from .....converters.model.scheduling import CallName
        from .spans import GoingOn

        still = [
            GoingOn(call.began, Origin(call.ustack, 0, 0, call.tid, 0, call.life, RUNNING), call.function, call.depth)
            for call in going_on
        ]
        return self._spans.finish(lambda number: CallName(named(number)), still, self._lost)

    def remarks(self) -> Iterator[str]:
        if self._options:
            yield from self._options.remarks("call", self._short)
