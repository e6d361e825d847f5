"""Calls that were timed one by one: those of all processes together, and what is said of them first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.text import json_text
from ..base.units import count, duration, plural, share
from ..facts import thresholds
from ..facts.identity import is_sum, kernel_id, life_of, processes_of
from ..facts.ranks import ranks_of
from ..facts.wait_sites import Sites
from ..model import Profile, ThreadTimes, ValueType
from ..model.calls import LEFT, CallTimes, together
from ..model.states import BLOCKED
from . import call_ioctls
from .call_ioctls import Made, made_by_calls

CALLS = {"calls"}
"""Columns of calls beside their time."""
_API = "api"
_NUMBER = ValueType("calls", "count")
_KERNEL = "kernel"
"""The "device" of functions of the kernel."""


@dataclass(frozen=True, slots=True)
class Calls:
    """One call on one device. ``each``: by process, the longest total first (names are hostile)."""

    total: CallTimes
    each: tuple[CallTimes, ...]
    blocked_in: str = ""
    """The kernel function in which it was blocked longest; "" if it was not, or that is not known."""
    blocked_there: int = 0
    """Time in ns for which it was blocked in ``blocked_in``."""
    number: int = 1
    """Number of processes that made the calls."""
    ioctls: tuple[Made, ...] = ()
    """Ioctls in the calls of a function."""
    ranks: Mapping[int, int] = field(default_factory=dict)
    """Ranks of processes in their job, by pid."""
    places: tuple[tuple[tuple[str, ...], int], ...] = ()
    """Places from where a function was called most often, the caller last (names are hostile), and how often."""

    @property
    def time(self) -> int:
        """Time in ns, without the calls that these made, so that all calls sum to the time in calls."""
        return self.total.whole_own

    @property
    def place(self) -> str:
        """``of libcuda.so.1`` or ``on /dev/nvidiactl``."""
        if self.total.device == _KERNEL:
            return "of the kernel"
        return f"of {self.total.library}" if self.total.library else f"on {self.total.device}"

    @property
    def processes(self) -> str:
        """Number of processes that made these calls: ``3 processes``. Of processes that are added up each can have made
        some."""
        ended = any(is_sum(call.pid) for call in self.each)
        return f"{'up to ' if ended else ''}{plural(self.number, 'process')}"

    def to_json(self) -> list[dict[str, Any]]:
        """An entry per process. Times in ns, null when not known."""
        return [
            {
                "name": json_text(call.name),
                **_where(call),
                "process": json_text(call.process),
                **_id("pid", call.pid),
                **_figures(call),
                "locks": call.locks,
                **({"ioctls": call_ioctls.to_json(self.ioctls, call.pid)} if call.library else {}),
                "threads": [
                    {"thread": json_text(thread.thread), **_id("tid", thread.tid), **_figures(thread)}
                    for thread in call.threads
                ],
            }
            for call in self.each
        ]


def _id(name: str, own: int) -> dict[str, int | None]:
    """The kernel's id, null if several are added up, and that it is so many-th use of it."""
    return {name: kernel_id(own) or None, f"{name}_life": life_of(own)}


def _figures(call: CallTimes) -> dict[str, Any]:
    return {
        "count": call.count,
        "errors": {json_text(error): number for error, number in call.errors.items()},
        "total_ns": call.total,
        "self_ns": call.own,
        "min_ns": call.min,
        "mean_ns": call.mean,
        "p50_ns": call.quantile(0.5),
        "p99_ns": call.quantile(0.99),
        "max_ns": call.max,
        "on_cpu_ns": call.on_cpu,
        "blocked_ns": call.blocked,
        "runnable_ns": call.runnable,
        "open_count": call.open_count,
        "open_ns": call.open_time,
        "earlier_ns": call.earlier,
    }


def _where(call: CallTimes) -> dict[str, str]:
    return {"library": json_text(call.library)} if call.library else {"device": json_text(call.device)}


def add_up_calls(profile: Profile) -> tuple[Calls, ...]:
    """The calls of all processes by name and device, the longest total first."""
    groups: dict[tuple[str, str], list[CallTimes]] = defaultdict(list)
    for call in profile.calls:
        groups[call.name, call.where].append(call)
    blocked = _blocked_in(profile) if groups else {}
    ended = _numbers_of_sums(profile) if groups else {}
    ioctls, ranks, callers = made_by_calls(profile), ranks_of(profile), _callers(profile) if groups else {}
    made = []
    for (name, where), calls in groups.items():
        each = sorted(calls, key=lambda call: (-call.total - call.open_time, call.pid))
        # The frame of a function has only its name.
        places = blocked.get(name if each[0].library else f"{name} {where}", {})
        longest = max(places, key=lambda place: (places[place], place), default="")
        number, made_here = sum(ended.get(call.pid, 1) for call in each), ioctls.get((name, where), ())
        has_callers = each[0].library and name in callers
        from_here = tuple(callers[name].most_common(thresholds.CALL_PLACES)) if has_callers else ()
        known = longest, places.get(longest, 0), number, made_here, ranks, from_here
        made.append(Calls(together(each), tuple(each), *known))
    return tuple(sorted(made, key=lambda of: (-of.time, of.total.name, of.total.where)))


def _numbers_of_sums(profile: Profile) -> dict[int, int]:
    """Number of processes that each added up one stands for."""
    threads: dict[int, list[ThreadTimes]] = defaultdict(list)
    for times in profile.threads:
        if is_sum(times.pid):
            threads[times.pid].append(times)
    return {pid: processes_of(each) for pid, each in threads.items()}


def _blocked_in(profile: Profile) -> dict[str, dict[str, int]]:
    """Kernel functions in which threads were blocked, and how long, by name of the call's frame."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    sites = Sites()
    for sample in profile.samples:
        if sample.label("state") not in BLOCKED:
            continue
        names = {frame.name for frame in sample.stack if frame.kind == _API}
        if not names or not (kernel := sites.of(sample.stack).kernel):
            continue
        for name in names:
            found[name][kernel] += sample.values[0]
    return found


def _callers(profile: Profile) -> dict[str, Counter[tuple[str, ...]]]:
    """Functions around the calls of each function that returned, and the number of these calls."""
    column = next((i for i, each in enumerate(profile.value_types) if each == _NUMBER), -1)
    found: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for sample in profile.samples if column >= 0 else ():
        if not (number := sample.values[column]):
            continue
        at = next((i for i in range(len(sample.stack) - 1, -1, -1) if sample.stack[i].kind == _API), 0)
        near = sample.stack[max(at - thresholds.CALL_FRAMES, 0) : at]
        around = tuple(frame.name for frame in near if frame.kind != "other")
        if around:
            found[sample.stack[at].name][around] += number
    return found


def answer_of_calls(calls: Sequence[Calls], without_probe: int = 0) -> tuple[str, ...]:
    """Sentence on the call that took most of the time of all, and on that time. ``without_probe``: how many functions
    have no probe, so that their calls are not seen."""
    whole = sum(each.time for each in calls)
    if not calls and without_probe:
        whose = "its" if without_probe == 1 else "their"
        have = f"{plural(without_probe, 'function')} ha{'s' if without_probe == 1 else 've'} no probe"
        return (f"No call was seen; {have}, so that {whose} calls cannot be seen.",)
    if not calls:
        return ("No call was seen.",)
    first = calls[0]
    total = first.total
    much = share(first.time, whole) if whole else "All"
    who = first.processes
    told = f"{much} of the time in all calls is in {total.name} {first.place}: "
    if not total.count:
        return (
            f"{told}{plural(total.open_count, 'call')} by {who} had not ended, {duration(total.open_time)} so far.",
        )
    told += f"{plural(total.count, 'call')} by {who}, mean {duration(total.mean)}, max {duration(total.max)}"
    if not total.total:
        return (f"{told}.",)
    parts = f"{share(total.on_cpu, total.total)} on a core, {share(total.blocked, total.total)} blocked"
    if first.blocked_in and total.blocked:
        parts += f" (mostly in {first.blocked_in})"
    return (f"{told}; {parts}, {share(total.runnable, total.total)} waiting for a core.", *_failed(calls))


def _failed(calls: Sequence[Calls]) -> tuple[str, ...]:
    """The call that failed most often, if it did so nearly always."""
    worst = max(calls, key=lambda each: sum(_errors(each).values()))
    errors = _errors(worst)
    failed, called, name = sum(errors.values()), worst.total.count, worst.total.name
    if failed < thresholds.MOSTLY * called or failed < thresholds.FAILED_CALLS:
        return ()
    error = max(errors, key=lambda name: (errors[name], name))
    # There may have been no room for a call, and yet for its error.
    number = count(failed) if failed > called else f"{count(failed)} of {count(called)}"
    return (f"{number} calls of {name} {worst.place} failed, mostly with {error}.",)


def _errors(calls: Calls) -> dict[str, int]:
    """Errors of calls that returned."""
    return {name: number for name, number in calls.total.errors.items() if name != LEFT}
