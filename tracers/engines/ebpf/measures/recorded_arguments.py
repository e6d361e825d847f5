"""Calls kept one by one, with their arguments: what the probes write, and the table that it becomes.

What needs numpy is imported when the first calls are read."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .....converters.base.units import plural
from .....converters.collectives.signatures import signature_of
from ....kernel.bpfobject import Object
from ....measures.argument_options import ArgumentOptions
from .open_calls import Open

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .....converters.collectives.records import CallTable
    from .bulk_ring import BulkRing
    from .communicator_memory import CommunicatorMemory

WITHOUT_ARGUMENTS = "arguments of collectives"
"""Kind of loss."""
_OPEN_CALLS = 1 << 14
"""Calls that can be open at a time."""
_KEPT = struct.Struct("<Q12Q4I")
"""struct open_arguments of bpf/include/call_arguments.bpf.h."""
_KEY = struct.Struct("<II")
"""Depth and thread."""


class RecordedArguments:
    """Does nothing without options. ``named``: the function of a number."""

    def __init__(self, options: ArgumentOptions | None, named: Callable[[int], str]) -> None:
        self._options, self._named = options, named
        self._loaded: Object | None = None
        self._memory: CommunicatorMemory | None = None
        self._ring: BulkRing | None = None
        self._blocks: list[NDArray[np.void]] = []
        self._kept = self._dropped = self._lost = 0
        self._open: dict[tuple[int, int, int], tuple[int, ...]] = {}
        """Arguments of calls that had not returned, by thread, depth and begin."""

    @property
    def is_on(self) -> bool:
        """Whether calls are kept."""
        return self._options is not None

    def knobs(self) -> Mapping[str, int]:
        """Knobs as those of a `Collector`; so are the following."""
        return {"record_call_arguments": 1} if self._options else {}

    def sizes(self) -> Mapping[str, int]:
        if not self._options:
            return {}
        return {"call_arguments": self._options.buffer_bytes, "open_arguments": _OPEN_CALLS}

    def open(self, loaded: Object) -> None:
        self._loaded = loaded

    def consume(self) -> None:
        if not (self._options and self._loaded):
            return
        if self._ring is None or self._memory is None:
            from .argument_records import RECORD
            from .bulk_ring import BulkRing
            from .communicator_memory import CommunicatorMemory

            self._ring = BulkRing(self._loaded.find_map("call_arguments"), RECORD)
            self._memory = CommunicatorMemory()
        found = self._ring.take()
        fits = found[: max(self._options.limit - self._kept, 0)]
        self._dropped += len(found) - len(fits)
        if len(fits):
            self._kept += len(fits)
            self._blocks.append(fits)
            self._memory.look(fits, self._named)

    def read(self, loaded: Object) -> None:
        self.consume()
        if not self._options:
            return
        counts = loaded.find_map("call_argument_counts")
        self._lost = sum(counts.lookup_percpu_u64(i) for i in (0, 1))
        for key, value in loaded.find_map("open_arguments").items():
            depth, tid = _KEY.unpack(key)
            began, *rest = _KEPT.unpack(value)
            self._open[tid, depth, began] = tuple(rest)

    def close(self) -> None:
        if self._ring:
            self._ring.close()
        self._ring = self._loaded = None

    def keeps(self, function: str) -> bool:
        """Whether the arguments of this function are kept."""
        return self._options is not None and signature_of(function) is not None

    def finish(
        self, going_on: Iterable[Open], began: int, until: int = 0, watched: frozenset[int] = frozenset()
    ) -> CallTable | None:
        """The calls; None without options. ``going_on``: those that had not returned. ``began``: when the trace did,
        CLOCK_MONOTONIC ns; ``until``: when some functions lost their probes, 0: none did; ``watched``: processes of
        which all such functions have probes."""
        if not self._options:
            return None
        from .argument_records import table

        still = [
            (call, self._open[call.tid, call.depth, call.began])
            for call in going_on
            if (call.tid, call.depth, call.began) in self._open
        ]
        found = table(self._blocks, still, self._named, began, self._lost + self._dropped)
        found = replace(found, watched=watched)
        if until:
            found = replace(found, calls=found.calls[found.calls["began"] < until - began], until=until - began)
        return self._memory.of(found, began) if self._memory else found

    def losses(self) -> Mapping[str, int]:
        """Number of calls whose arguments are missing, by kind; nothing without options."""
        return {WITHOUT_ARGUMENTS: self._lost} if self._options else {}

    def remarks(self) -> Iterator[str]:
        if self._dropped:
            yield f"{plural(self._dropped, 'collective')} more than --collective-limit were not kept"
