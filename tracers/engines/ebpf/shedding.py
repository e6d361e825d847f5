"""Leaves out parts of a trace that costs more than its budget: what loses least goes first, the accounts never.

Samples become rarer; functions that are called most lose their probes; then the addresses of page faults, the user
stacks of most waits of threads that wait all the time, where threads wake others, who wakes them, locks, ioctls, the
user stacks of most other waits. What was measured until then is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from ....converters.model.remarks import Shed
from ...kernel.bpfobject import Object
from .measures.protocol import Collector
from .metering import CALLS, FAULTS, IOCTLS, LOCKS, OTHERS, SAMPLES, STEP, TRAP, WAITS, WAKERS, Window, together

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
WAIT_STACKS = "stacks"
_GAPS = (1_000_000, (1 << 64) - 1)
"""ns within which a thread has to wait again to lose the user stack of the second wait, one step after the other: first
threads that wait all the time, then all."""
_KEPT = 16
"""STORM_KEPT of bpf/include/maps.bpf.h: of so many of these waits, one has its stack."""
_OF_WAIT_STACKS = 0.35
"""Share of a switch's cost that the user stack has: 570 of 1,640 ns measured, if it is recognised."""
_OF_PROGRAMS = 0.9
"""Share of what programs cost that is saved: they still begin."""
_WINDOWS, _RECENT = 2, 5
"""Number of windows that have to be above the budget, of the last ones, which have to be above it together."""
_SETTLED = 150_000_000
"""ns from the beginning for which windows do not count: stacks are new, and are walked in full."""
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
        self._recent: deque[Window] = deque(maxlen=_RECENT)
        """Last windows, since something was left out."""
        self._bits = 0
        self._gap = 0
        self._gone: set[int] = set()
        self._since = 0
        """ns after the trace's begin at which the interval began."""
        self.is_pressing = False
        """Whether the next window should come soon: it may show that something has to go."""
        self.done: list[Shed] = []
        """Things that were left out, in order; see `still_out`. Times are from the trace's begin."""

    def judge(self, window: Window, passed: int) -> None:
        """Leaves out what has to go after a window that ended ``passed`` ns after the trace's begin."""
        if not window.traced:
            return
        self.is_pressing = window.share > self._budget
        if passed < _SETTLED:
            return
        self._recent.append(window)
        above = sum(each.share > self._budget for each in self._recent)
        recent = together(self._recent)
        if above < _WINDOWS or recent.share <= self._budget:
            return
        excess = recent.share - self._budget
        taken: list[_Step] = []
        for step in self._steps(recent, passed):
            if excess <= 0:
                break
            if step.saving >= WORTH * recent.share:
                step.do()
                taken.append(step)
                excess -= step.saving
        self.is_pressing = bool(taken)
        if taken:
            self._recent.clear()
            self._tell(taken, passed)

    def cut(self, passed: int) -> list[Shed]:
        """An interval ends ``passed`` ns after the trace's begin. Returns what was left out in it, and what was left
        out before and still is; times are from the interval's begin."""
        self.done = still_out(self.done, self._since)
        found = [of_interval(each, self._since) for each in self.done]
        self._since = passed
        return found

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
            yield from self._functions(self._calls.leaving, self._calls.probed, window, passed, self._calls.slot)
        yield from self._flag(FAULTS, _OF_PROGRAMS * cost.get(FAULTS, 0.0))
        stacks = _OF_WAIT_STACKS * (1 - 1 / _KEPT) * cost.get(WAITS, 0.0)
        yield from self._thinned(_GAPS[0], stacks)
        wakers = cost.get(WAKERS, 0.0)
        yield from self._flag(WAKER_STACKS, _OF_STACKS * wakers)
        yield from self._flag(WAKERS, (1 - _OF_STACKS) * _OF_PROGRAMS * wakers)
        for name in (LOCKS, IOCTLS):
            yield from self._flag(name, _OF_PROGRAMS * cost.get(name, 0.0))
        yield from self._thinned(_GAPS[1], stacks)

    def _functions(self, leaving: Leaving, probed: Probed, window: Window, passed: int, slot: int) -> Iterator[_Step]:
        """The functions that cost most; their probes are removed all at once by `_tell`."""
        assert self._calls
        kept = self._gone.union(filter(self._calls.is_needed, range(len(probed.functions))))
        counts = leaving.counts(slot)
        weights = {
            function: number * (2 * TRAP + (0 if probed.functions[function].is_fast else STEP))
            for function, number in counts.items()
            if function not in self._gone
        }
        whole = sum(weights.values()) or 1
        share = window.parts[CALLS] / window.whole
        for function in sorted(weights.keys() - kept, key=lambda each: (-weights[each], each)):
            rate = counts[function] * 1_000_000_000 // max(passed - self._since, 1)
            yield _Step(CALLS, share * weights[function] / whole, lambda: None, function, rate)

    def _flag(self, what: str, saving: float) -> Iterator[_Step]:
        bit = _BITS[what]
        if not self._bits & bit:

            def leave_out() -> None:
                self._bits |= bit
                self._loaded.set_variable("shed", self._bits)

            yield _Step(what, saving, leave_out)

    def _thinned(self, gap: int, saving: float) -> Iterator[_Step]:
        if self._gap < gap:

            def thin_out() -> None:
                self._gap = gap
                self._loaded.set_variable("storm_gap", gap)

            yield _Step(WAIT_STACKS, saving, thin_out)

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
            elif what == WAIT_STACKS:
                within = self._gap if self._gap < _GAPS[-1] else 0
                self.done.append(Shed(what, passed, _KEPT, 0, (), 0, within))
            else:
                self.done.append(Shed(what, passed, 0, 0, (), 0))


def still_out(done: Iterable[Shed], since: int) -> list[Shed]:
    """Things that were left out, without those that were left out before ``since`` and replaced by a later step then:
    rarer samples by still rarer ones. All functions that had lost their probes by then are one entry."""
    before: dict[str, Shed] = {}
    after = []
    for each in done:
        if each.at >= since:
            after.append(each)
            continue
        if each.what == CALLS and (known := before.get(CALLS)):
            names = known.functions + each.functions
            each = replace(each, functions=names[:_NAMED], more=known.more + each.more + len(names[_NAMED:]))
        before[each.what] = each
    return [*before.values(), *after]


def of_interval(shed: Shed, began: int) -> Shed:
    """Thing that was left out, with the times of an interval that began ``began`` ns after the trace's begin."""
    return replace(shed, at=max(shed.at - began, 0), before=max(began - shed.at, 0))


def cost_parts(parts: Mapping[str, float]) -> tuple[tuple[str, int], ...]:
    """Parts of the cost, the largest first, without those that are nothing."""
    found = [(name, round(part)) for name, part in parts.items() if round(part)]
    return tuple(sorted(found, key=lambda each: (each[0] == OTHERS, -each[1])))
