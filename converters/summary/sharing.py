"""Calls that several processes were inside at the same time: whether they serialise, and who held up whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.text import json_text
from ..base.units import plural, share
from ..facts import thresholds
from ..facts.identity import kernel_id
from ..facts.ranks import ranks_of, who
from ..model import Profile
from ..model.calls import CallTimes, together
from ..model.sharing import SharedCall


@dataclass(frozen=True, slots=True)
class Shared:
    """One call. ``each``: by process (names are hostile)."""

    call: SharedCall
    each: Mapping[int, CallTimes]
    ranks: Mapping[int, int] = field(default_factory=dict)
    """Ranks of processes in their job, by pid."""

    @property
    def factor(self) -> float | None:
        """Number of times that a call takes longer with others inside than alone; than its turn, if that is not
        known."""
        return self.call.factor if self.known_alone else self.call.turns_factor

    @property
    def told_factor(self) -> str:
        """``4.0 times as long as alone``: only if the factor is known."""
        if self.known_alone:
            return f"{self.factor:.1f} times as long as alone"
        return f"{self.factor:.1f} times as long as its turn, from the return before it to its own"

    @property
    def known_alone(self) -> bool:
        """Whether there were calls with, and enough without, another process on the device."""
        return self.call.alone >= thresholds.ALONE_CALLS and self.call.factor is not None

    def to_json(self) -> dict[str, Any]:
        """Times in ns, null when not known."""
        call = self.call
        return {
            "name": json_text(call.name),
            "device": json_text(call.device),
            "busy_ns": call.busy,
            "shared_ns": call.shared,
            "shared_share": call.shared / call.busy if call.busy else None,
            "mean_inside": call.mean_inside,
            "count": call.count,
            "mean_ns": call.time // call.count if call.count else None,
            "alone_count": call.alone,
            "alone_mean_ns": call.alone_time // call.alone if call.alone else None,
            "with_others_count": call.count - call.alone,
            "with_others_mean_ns": round(call.with_others_mean) if call.count > call.alone else None,
            "factor": call.factor,
            "turns_factor": call.turns_factor,
            "turns": [{"pid": pid, "process": self._name(pid), "ns": ns} for pid, ns in sorted(call.turns.items())],
            "waits": [
                {"waiter": waiter, "inside": inside, "ns": ns} for (waiter, inside), ns in sorted(call.waits.items())
            ],
        }

    def _name(self, pid: int) -> str:
        return json_text(self.name(pid))

    def who(self, pid: int) -> str:
        """See `ranks.who`."""
        return who(self.name(pid) or "a process", pid, self.ranks)

    def name(self, pid: int) -> str:
        """The process's name; "" if it has none."""
        return self.each[pid].process if pid in self.each else ""


def shared_calls(profile: Profile) -> tuple[Shared, ...]:
    """Shared calls of a profile, the longest time of several processes inside first."""
    found_by: dict[tuple[str, str], dict[int, list[CallTimes]]] = defaultdict(lambda: defaultdict(list))
    for timed in sorted(profile.calls, key=lambda call: -call.whole):
        # Of processes that had one pid, one after the other, it is only known what all of them waited.
        found_by[timed.name, timed.device][kernel_id(timed.pid)].append(timed)
    each = {what: {pid: together(calls) for pid, calls in by_pid.items()} for what, by_pid in found_by.items()}
    found = sorted(profile.shared, key=lambda call: (-call.inside + call.busy, call.name, call.device))
    ranks = ranks_of(profile)
    return tuple(Shared(call, each.get((call.name, call.device), {}), ranks) for call in found if call.shared)


def serialised(shared: Sequence[Shared]) -> tuple[str, ...]:
    """A sentence on the first call that serialises its processes; it names the process that holds the others up."""
    longest = max((each.call.inside for each in shared), default=0)
    for each in shared:
        call, factor = each.call, each.factor
        is_short = call.shared < thresholds.SHARED_TIME * call.busy or call.inside < thresholds.SHARED_LEAST * longest
        if factor is None or factor < thresholds.SERIALISES or is_short:
            continue
        told = (
            f"{plural(len(each.each), 'process')} serialise in {call.name} on {call.device}: "
            f"for {share(call.shared, call.busy)} of its time two or more were inside, "
            f"{call.mean_inside:.1f} on average"
        )
        told += f"; a call takes {each.told_factor}."
        return (told, *_holder(each), *_what_the_time_is(each))
    return ()


def _holder(each: Shared) -> tuple[str, ...]:
    """The process during whose turns the others waited longest, if its turns are much longer."""
    held, turns = each.call.held(), each.call.turns
    if len(turns) < 2 or not any(held.values()):
        return ()
    pid = max(held, key=lambda pid: (held[pid], -pid))
    others = (sum(turns.values()) - turns.get(pid, 0)) / (len(turns) - 1)
    if turns.get(pid, 0) < thresholds.TURN_UNEVEN * others:
        return ()
    waited = {waiter for waiter, holder in each.call.waits if holder == pid}
    told = f"While {each.who(pid)} was inside and the next to return, {plural(len(waited), 'other process')} waited: "
    told += f"{share(held[pid], sum(held.values()))} of all waiting in this call."
    factor = f" Its turns take {turns.get(pid, 0) / others:.1f} times as long as theirs on average." if others else ""
    return (told + factor,)


def _what_the_time_is(each: Shared) -> tuple[str, ...]:
    """Whether the driver works while others wait, or the one that is next to return waits, too."""
    turns, on_core = sum(each.call.turns.values()), sum(call.on_cpu for call in each.each.values())
    blocked = sum(call.blocked for call in each.each.values())
    if not turns or blocked < on_core:
        return ()
    if on_core >= thresholds.TURN_WORKS * turns:
        return ("The process that returns next is mostly on a core meanwhile: the call itself works, or polls.",)
    return (
        "The process that returns next is mostly blocked meanwhile, too: what it waits for is slow, or is held outside "
        "of these calls.",
    )
