"""The first sentence on calls with their ioctls: the call that the program makes, the ioctl in it, and the wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..base.units import duration, plural, share
from ..facts import thresholds
from ..facts.identity import number_of, processes_of
from ..facts.thread_names import thread_pattern
from ..model import Profile, ThreadTimes, ValueType
from .call_ioctls import Made
from .call_places import NO_TIME, Places, Times, times_of
from .calls import Calls
from .sharing import Shared

_Who = tuple[Any, Any]
"""Ids of a process and of a thread."""
_CALLS = ValueType("calls", "count")


@dataclass(slots=True)
class _Outer:
    """Time of a function that the program calls itself."""

    all: Times = NO_TIME
    calls: int = 0
    """Number of calls that the program made itself; also of a function that ends by jumping into another one, and whose
    frame the stacks do not have then."""
    is_nested: bool = False
    """Whether the function was found inside itself."""
    by_ioctl: dict[str, Times] = field(default_factory=dict)
    blocked_in: dict[tuple[str, str], int] = field(default_factory=dict)
    """Blocked time in ns, by the ioctl, "" outside of one, and the function of the kernel."""
    by_thread: dict[tuple[Any, Any], int] = field(default_factory=dict)
    """Time in ns, by pid and tid."""

    def add(self, ioctl: str, kernel: str, times: Times, thread: tuple[Any, Any]) -> None:
        self.by_thread[thread] = self.by_thread.get(thread, 0) + times.sum
        self.all = self.all.plus(times)
        self.by_ioctl[ioctl] = self.by_ioctl.get(ioctl, Times()).plus(times)
        if times.blocked and kernel:
            self.blocked_in[ioctl, kernel] = self.blocked_in.get((ioctl, kernel), 0) + times.blocked

    @property
    def time(self) -> int:
        return sum(self.by_thread.values())

    def kernel(self, ioctl: str) -> str:
        """Kernel function in which it was blocked longest in this ioctl; "" if that is not known."""
        found = {place: ns for (of, place), ns in self.blocked_in.items() if of == ioctl}
        return max(found, key=lambda place: (found[place], place), default="")


def call_ioctl_sentence(profile: Profile, calls: Sequence[Calls], shared: Sequence[Shared]) -> str:
    """Sentence on the function that takes most of the time of the threads that call it; "" if no stack has a
    function."""
    outer = _outermost(profile)
    if not outer:
        return ""
    accounts = {name: _accounted(calls, name, found) for name, found in outer.items()}
    counts = {each.total.name: each.total.count for each in calls}
    name = max(
        outer,
        key=lambda name: (_is_outer(outer[name], accounts[name], counts.get(name, 0)), accounts[name].time, name),
    )
    found = accounts[name]
    ioctl = max(found.by_ioctl, key=lambda frame: (found.by_ioctl[frame].sum, frame))
    part, threads = _share(profile, found)
    told = f"{part} is in {name}{_figures(calls, name, threads)}"
    if not ioctl or found.by_ioctl[ioctl].sum < thresholds.CALL_IN_IOCTL * found.all.sum:
        return f"{told}: {_parts(found.all, found.kernel(''))}."
    inside = found.by_ioctl[ioctl]
    where = _in_ioctl(ioctl, found.kernel(ioctl) if inside.blocked >= inside.on_cpu else "")
    much = max(inside.blocked, inside.on_cpu)
    how = "blocked" if inside.blocked >= inside.on_cpu else "on a core"
    return f"{told}: {share(much, found.all.sum)} of it {how} {where}{_factor(ioctl, shared)}."


def _is_outer(by_stacks: _Outer, account: _Outer, count: int) -> bool:
    """``count``: of all its calls."""
    least = thresholds.CALLED_ITSELF
    return by_stacks.all.sum >= least * account.time or by_stacks.calls > least * count


def _accounted(calls: Sequence[Calls], name: str, found: _Outer) -> _Outer:
    """The function's time as its calls have it, which does not depend on stacks; ``found`` if that is not known."""
    named = [each for each in calls if each.total.name == name and each.total.library]
    if len(named) != 1 or found.is_nested:
        return found
    (of,) = named
    by_thread = {(call.pid, thread.tid): thread.whole for call in of.each for thread in call.threads}
    if not of.total.whole or sum(by_thread.values()) != of.total.whole:
        return found
    if of.total.open_count or of.total.earlier:  # what it did is known by stacks only
        return replace(found, by_thread=by_thread)
    total = of.total
    made = {one.each[0].frame: _times_of_made(one) for one in of.ioctls}
    rest = Times(total.on_cpu, total.blocked, total.runnable)
    for times in made.values():
        rest = Times._make(max(all_of - part, 0) for all_of, part in zip(rest, times, strict=True))
    whole = Times(total.on_cpu, total.blocked, total.runnable)
    return replace(found, all=whole, by_ioctl={**made, "": rest}, by_thread=by_thread)


def _times_of_made(made: Made) -> Times:
    return Times(
        sum(one.on_cpu for one in made.each),
        sum(one.blocked for one in made.each),
        sum(one.runnable for one in made.each),
    )


def _outermost(profile: Profile) -> dict[str, _Outer]:
    outer: dict[str, _Outer] = defaultdict(_Outer)
    places = Places()
    number = next((i for i, column in enumerate(profile.value_types) if column == _CALLS), None)
    for sample in profile.samples:
        functions, ioctl, kernel = places.of(sample.stack)
        if functions:
            who = sample.label("pid"), sample.label("tid")
            outer[functions[0]].add(ioctl, kernel, times_of(sample), who)
            outer[functions[0]].is_nested |= functions[0] in functions[1:]
            if len(functions) == 1 and number is not None:
                outer[functions[0]].calls += sample.values[number]
    return outer


def _share(profile: Profile, function: _Outer) -> tuple[str, set[_Who] | None]:
    """Share of the time of the threads that make calls, or of all calls if their times are not known. If nearly all of
    the function's time is that of threads of one name, of the time of these."""
    time = function.time
    places = Places()
    samples = [sample for sample in profile.samples if not places.of(sample.stack).is_outside]
    ids = {(sample.label("pid"), sample.label("tid")) for sample in samples} | function.by_thread.keys()
    callers = [thread for thread in profile.threads if (thread.pid, thread.tid) in ids]
    if sum(thread.wall for thread in callers) < time or len({(one.pid, one.tid) for one in callers}) != len(ids):
        whole = sum(sample.values[0] for sample in samples)
        return f"{share(time, whole)} of the time in all calls", None
    everybody = len(callers)
    callers, kind = _mostly_of(callers, function)
    time = sum(function.by_thread.get((thread.pid, thread.tid), 0) for thread in callers)
    names = {thread.process for thread in callers}
    whose = f" of {names.pop()}" if len(names) == 1 else ""
    threads, processes = number_of(callers), processes_of(callers)
    who = plural(threads, f"{kind} thread") + (f" in {plural(processes, 'process')}" if processes > 1 else "")
    told = f"{share(time, sum(thread.wall for thread in callers))} of the time of {who}{whose}"
    return told, {(one.pid, one.tid) for one in callers} if len(callers) < everybody else None


def _mostly_of(callers: list[ThreadTimes], function: _Outer) -> tuple[list[ThreadTimes], str]:
    """The threads of one name, if nearly all of the function's time is theirs and others call, too; and what to call
    the threads."""
    kinds: dict[tuple[str, str], list[ThreadTimes]] = defaultdict(list)
    for thread in callers:
        kinds[thread.process, thread_pattern(thread.thread, thread.pid == thread.tid)].append(thread)
    times = {
        kind: sum(function.by_thread.get((thread.pid, thread.tid), 0) for thread in threads)
        for kind, threads in kinds.items()
    }
    most = max(times, key=lambda kind: (times[kind], kind))
    if len(kinds) < 2 or times[most] < thresholds.CALLED_BY * function.time:
        return callers, "calling"
    return kinds[most], most[1]


def _figures(calls: Sequence[Calls], name: str, threads: set[_Who] | None) -> str:
    """``threads``: of these; None: of all."""
    called = next((each for each in calls if each.total.name == name), None)
    if called is None:
        return ""
    total = called.total
    if threads is not None:
        own = [one for each in called.each for one in each.threads if (each.pid, one.tid) in threads]
        number = sum(one.count for one in own)
        if not number or len(own) < len(threads):
            return ""
        mean = sum(one.total + one.earlier for one in own) // number
        longest = max(one.max for one in own)
        return f" ({plural(number, 'call')}, mean {duration(mean)}, max {duration(longest)})"
    if not total.count:
        return f" ({plural(total.open_count, 'call')} had not ended)"
    return f" ({plural(total.count, 'call')}, mean {duration(total.mean)}, max {duration(total.max)})"


def _parts(times: Times, kernel: str) -> str:
    where = f" (mostly in {kernel})" if kernel and times.blocked else ""
    blocked, queued = share(times.blocked, times.sum), share(times.runnable, times.sum)
    return f"{share(times.on_cpu, times.sum)} on a core, {blocked} blocked{where}, {queued} waiting for a core"


def _in_ioctl(frame: str, kernel: str) -> str:
    command, _, device = frame.partition(" ")
    return f"in the ioctl {command} of {device}" + (f", in {kernel}" if kernel else "")


def _factor(frame: str, shared: Sequence[Shared]) -> str:
    for each in shared:
        factor, is_it = each.factor or 0, f"{each.call.name} {each.call.device}" == frame
        if is_it and factor >= thresholds.SERIALISES:
            against = "as alone" if each.known_alone else "as from the return of the one before"
            return f"; that ioctl takes {factor:.1f} times as long {against}"
    return ""
