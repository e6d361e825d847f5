"""Events that were counted, and nothing else is known of: how often, by whom, and from where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..base.text import json_text
from ..base.units import count, plural, share
from ..facts import thresholds
from ..facts.identity import kernel_id, life_of
from ..model import Profile, Stack
from ..model.calls import CallTimes
from .calls import Calls, add_up_calls

EVENTS = "events"
"""The column of a profile that has counted events."""
_API = "api"
_AFTER_EXEC = "sched:sched_process_exec"
"""The thread is then at the first address of the new program: nothing called that."""
_NSEC = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Counted:
    """Events of one name and file. ``of``: by process and thread; it has numbers only, and no times."""

    of: Calls
    callers: tuple[str, ...] = ()
    """The functions around it, the caller last, where it came from most often (names are hostile)."""
    from_there: int = 0
    """Number of events from ``callers``."""

    @property
    def number(self) -> int:
        return self.of.total.count

    def to_json(self) -> list[dict[str, Any]]:
        """An entry per process."""
        return [
            {
                **_who(each, "pid", each.pid),
                "count": each.count,
                "threads": [
                    {"thread": json_text(thread.thread), **_id("tid", thread.tid), "count": thread.count}
                    for thread in each.threads
                ],
            }
            for each in sorted(self.of.each, key=lambda call: -call.count)
        ]


def _who(each: CallTimes, name: str, number: int) -> dict[str, Any]:
    where = {"name": json_text(each.name), "file": json_text(each.where), "process": json_text(each.process)}
    return {**where, **_id(name, number)}


def _id(name: str, own: int) -> dict[str, int | None]:
    return {name: kernel_id(own) or None, f"{name}_life": life_of(own)}


def counted_events(profile: Profile) -> tuple[Counted, ...]:
    """Events of all processes, the most frequent first."""
    places = _places(profile)
    found = []
    for of in add_up_calls(profile):
        callers, number = max(
            places.get(of.total.name, Counter()).items(), key=lambda item: (item[1], item[0]), default=((), 0)
        )
        found.append(Counted(of, callers, number))
    return tuple(sorted(found, key=lambda each: (-each.number, each.of.total.name, each.of.total.where)))


def _places(profile: Profile) -> dict[str, Counter[tuple[str, ...]]]:
    """Functions around each event, and how often it came from there, by its name."""
    column = profile.index(EVENTS)
    found: dict[str, Counter[tuple[str, ...]]] = {}
    known: dict[int, tuple[str, tuple[str, ...]]] = {}
    for sample in profile.samples:
        name, callers = known.get(id(sample.stack)) or known.setdefault(id(sample.stack), _place(sample.stack))
        found.setdefault(name, Counter())[callers] += sample.values[column]
    return found


def _place(stack: Stack) -> tuple[str, tuple[str, ...]]:
    """The event in a stack, and the functions around it."""
    for at in range(len(stack) - 1, -1, -1):
        if stack[at].kind == _API:
            if stack[at].name == _AFTER_EXEC:
                return stack[at].name, ()
            around = [frame.name for frame in stack[max(at - thresholds.EVENT_FRAMES, 0) : at] if frame.kind != "other"]
            return stack[at].name, tuple(around)
    return "", ()


def answer_of_events(events: Sequence[Counted], duration_ns: int) -> tuple[str, ...]:
    """Sentence on the most frequent event, and where it came from."""
    whole = sum(each.number for each in events)
    if not whole:
        return ("None of the events was seen.",)
    first = events[0]
    name, where = first.of.total.name, first.of.total.where
    often = f"{plural(first.number, 'time')} by {first.of.processes}"
    if duration_ns:
        often += f", {per_second(first.number, duration_ns)} a second"
    if len(events) > 1:
        told = f"{share(first.number, whole)} of {count(whole)} events are {name} of {where}: {often}"
    else:
        told = f"{name} of {where} was seen {often}"
    if first.callers and first.from_there:
        told += f"; {share(first.from_there, first.number)} of them from {' → '.join(first.callers)}"
    return (f"{told}.",)


def per_second(number: int, duration_ns: int) -> str:
    """A rate: ``1,204``, ``3.2``."""
    rate = number * _NSEC / duration_ns
    return count(round(rate)) if rate >= 100 else f"{rate:.1f}" if rate >= 0.05 else "<0.1"
