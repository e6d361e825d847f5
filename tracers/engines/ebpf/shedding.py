"""Leaves out parts of a trace that costs more than its budget: what loses least goes first, the accounts never.

Samples become rarer; functions that are called most lose their probes; then the addresses of page faults, where threads
wake others, who wakes them, locks, ioctls. What was measured until then is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from ....converters.model.remarks import Shed
from ...kernel.bpfobject import Object
from .measures.protocol import Collector
from .metering import CALLS, FAULTS, IOCTLS, LOCKS, OTHERS, SAMPLES, STEP, TRAP, WAKERS, Window

if TYPE_CHECKING:
    from .measures.calls import CallsCollector
    from .measures.leaving import Leaving
    from .measures.oncpu import OnCpuCollector
    from .measures.probed import Probed

_WEIGHTS = (2, 4, 8)
"""Numbers of samples for which one can stand, one step after the other."""
WORTH = 0.05
"""Share of the cost that a step has to save: where others are what costs, nothing is lost in vain."""
WAKER_STACKS = "waker stacks"
_BITS = {WAKER_STACKS: 1, WAKERS: 2, LOCKS: 4, IOCTLS: 8, FAULTS: 16}
"""enum shed_bit of bpf/include/maps.bpf.h."""
_OF_STACKS = 0.6
"""Share of a wake-up's cost that its stacks have: 700 of 1,070 ns measured."""
_OF_PROGRAMS = 0.9
"""Share of what programs cost that is saved: they still begin."""
_WINDOWS = 2
"""Windows that have to agree."""
_NAMED = 100
"""Functions that a remark names."""


class _Step(NamedTuple):
    what: str
    saving: float
    """Share of `Window.whole`, about."""
    do: Callable[[], None]
    function: int = -1
    rate: int = 0
    """Calls of the function per second."""


class Shedder:
    """Judges windows by a budget, and leaves out what costs too much."""

    def __init__(self, budget: float, loaded: Object, collectors: Sequence[Collector]) -> None:
        """``budget``: share of `Window.whole`."""
        self._budget, self._loaded = budget, loaded
        by_name = {each.name: each for each in collectors}
        self._samples = cast("OnCpuCollector | None", by_name.get("oncpu"))
        self._calls = cast("CallsCollector | None", by_name.get("calls"))
        if self._calls and self._calls.probed:
            self._calls.probed.keeps = True
        self._shares: list[float] = []
        self._bits = 0
        self._gone: set[int] = set()
        self.done: list[Shed] = []
        """Things that were left out, in order."""

    def judge(self, window: Window, passed: int) -> None:
        """Leaves out what has to go after a window that ended ``passed`` ns after the trace's begin."""
        if not window.traced:
            return
        self._shares.append(window.share)
        if len(self._shares) < _WINDOWS or min(self._shares[-_WINDOWS:]) <= self._budget:
            return
        cost = min(self._shares[-_WINDOWS:])
        excess = cost - self._budget
        taken: list[_Step] = []
        for step in self._steps(window, passed):
            if excess <= 0:
                break
            if step.saving >= WORTH * cost:
                step.do()
                taken.append(step)
                excess -= step.saving
        if taken:
            self._shares.clear()
            self._tell(taken, passed)

    def _steps(self, window: Window, passed: int) -> Iterator[_Step]:
        """Yields what may go; what loses least first."""
        cost = {name: part / window.whole for name, part in window.parts.items()}
        if samples := self._samples:
            left = cost.get(SAMPLES, 0.0)
            for weight in _WEIGHTS:
                if samples.weight < weight:
                    left /= 2
                    yield _Step(SAMPLES, left, samples.halve)
        if self._calls and self._calls.leaving and self._calls.probed and CALLS in cost:
            yield from self._functions(self._calls.leaving, self._calls.probed, window, passed)
        yield from self._flag(FAULTS, _OF_PROGRAMS * cost.get(FAULTS, 0.0))
        wakers = cost.get(WAKERS, 0.0)
        yield from self._flag(WAKER_STACKS, _OF_STACKS * wakers)
        yield from self._flag(WAKERS, (1 - _OF_STACKS) * _OF_PROGRAMS * wakers)
        for name in (LOCKS, IOCTLS):
            yield from self._flag(name, _OF_PROGRAMS * cost.get(name, 0.0))

    def _functions(self, leaving: Leaving, probed: Probed, window: Window, passed: int) -> Iterator[_Step]:
        """The functions that cost most; their probes are removed all at once by `_tell`."""
        counts = {function: number for function, number in leaving.counts().items() if function not in self._gone}
        weights = {
            function: number * (2 * TRAP + (0 if probed.functions[function].is_fast else STEP))
            for function, number in counts.items()
        }
        whole = sum(weights.values())
        share = window.parts[CALLS] / window.whole
        for function in sorted(weights, key=lambda each: -weights[each]):
            rate = counts[function] * 1_000_000_000 // max(passed, 1)
            yield _Step(CALLS, share * weights[function] / whole, lambda: None, function, rate)

    def _flag(self, what: str, saving: float) -> Iterator[_Step]:
        bit = _BITS[what]
        if not self._bits & bit:

            def leave_out() -> None:
                self._bits |= bit
                self._loaded.set_variable("shed", self._bits)

            yield _Step(what, saving, leave_out)

    def _tell(self, taken: Sequence[_Step], passed: int) -> None:
        functions = {step.function: step.rate for step in taken if step.function >= 0}
        names: tuple[tuple[str, int], ...] = ()
        if functions and self._calls and self._calls.leaving and self._calls.probed:
            self._gone |= functions.keys()
            self._calls.leaving.leave(self._calls.probed, functions.keys())
            names = tuple((self._calls.probed.functions[each].name, rate) for each, rate in functions.items())
        for what in dict.fromkeys(step.what for step in taken):
            if what == CALLS:
                self.done.append(Shed(what, passed, 0, 0, names[:_NAMED], max(len(names) - _NAMED, 0)))
            elif what == SAMPLES and self._samples:
                of = self._samples
                self.done.append(Shed(what, passed, of.weight, of.frequency, (), 0))
            else:
                self.done.append(Shed(what, passed, 0, 0, (), 0))


def cost_parts(parts: Mapping[str, float]) -> tuple[tuple[str, int], ...]:
    """Parts of the cost, the largest first, without those that are nothing."""
    found = [(name, round(part)) for name, part in parts.items() if round(part)]
    return tuple(sorted(found, key=lambda each: (each[0] == OTHERS, -each[1])))
