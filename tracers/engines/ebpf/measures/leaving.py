"""Functions that lose their probes while a trace runs, because their calls cost too much."""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Collection, Iterable

from ....kernel.bpfobject import Object
from ....kernel.sum_table import SumTable
from .open_calls import Open
from .probed import Probed

_KEY = struct.Struct("<4I")
"""struct call_key of bpf/include/call_sums.bpf.h."""


class Leaving:
    """The calls so far by function, and the functions that left."""

    def __init__(self, loaded: Object, sums: SumTable) -> None:
        """``sums``: the table of the calls' sums by thread and function."""
        self._loaded, self._sums = loaded, sums
        self.first = 0
        """Time at which the first ones left, CLOCK_MONOTONIC ns; 0: none has. For a moment, other functions of their
        files had no probes either."""
        self._forgotten = 0
        """Calls that began before (CLOCK_MONOTONIC ns) are not seen to return: their probes were removed."""

    def counts(self, slot: int = 0) -> Counter[int]:
        """Number of calls that have returned, by function, without those that were taken out of the table."""
        found: Counter[int] = Counter()
        for key, value in self._sums.peek(slot):
            found[_KEY.unpack(key)[3]] += int.from_bytes(value[:8], "little")
        return found

    def stepped_calls(self, probed: Probed, slot: int = 0) -> int:
        """Number of these calls at which the kernel has to execute an instruction by itself."""
        slow = {number for number, probe in enumerate(probed.functions) if not probe.is_fast}
        return sum(number for function, number in self.counts(slot).items() if function in slow) if slow else 0

    def leave(self, probed: Probed, functions: Collection[int]) -> None:
        """Removes the probes of functions. All calls that go on are forgotten: some will not be seen to return."""
        self.first = self.first or time.monotonic_ns()
        probed.leave(functions)
        self._forgotten = time.monotonic_ns()
        self._loaded.set_variable("calls_forgotten", self._forgotten)

    def remembered(self, calls: Iterable[Open]) -> list[Open]:
        """Returns those of the calls that go on which are not forgotten."""
        return [call for call in calls if call.began >= self._forgotten]
