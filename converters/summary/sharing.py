"""Calls that several processes were inside at the same time: whether they serialise, and who held up whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.text import json_text
from ..base.units import plural, share
from ..model import Profile
from ..model.sharing import SharedCall

_TELLING = 2.0
"""Calls that take so many times longer with others inside are said to serialise."""
_MUCH = 0.1
"""… if they do so for this share of their time."""
_UNEVEN = 2.0
"""A process is named if its turns are so many times longer than the mean of the others'."""


@dataclass(frozen=True, slots=True)
class Shared:
    """One call. ``names``: of its processes by id (hostile)."""

    call: SharedCall
    names: Mapping[int, str]

    @property
    def factor(self) -> float | None:
        """How many times longer a call takes than alone, or than its turn if it was never alone."""
        return self.call.factor or self.call.turns_factor

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
            "factor": call.factor,
            "turns_factor": call.turns_factor,
            "turns": [{"pid": pid, "process": self._name(pid), "ns": ns} for pid, ns in sorted(call.turns.items())],
            "waits": [
                {"waiter": waiter, "inside": inside, "ns": ns} for (waiter, inside), ns in sorted(call.waits.items())
            ],
        }

    def _name(self, pid: int) -> str:
        return json_text(self.names.get(pid, ""))


def shared_calls(profile: Profile) -> tuple[Shared, ...]:
    """Those of a profile, the longest time of several processes inside first."""
    names: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for call in profile.calls:
        names[call.name, call.device][call.pid] = call.process
    found = sorted(profile.shared, key=lambda call: (-call.inside + call.busy, call.name, call.device))
    return tuple(Shared(call, names[call.name, call.device]) for call in found if call.shared)


def serialised(shared: Sequence[Shared]) -> tuple[str, ...]:
    """A sentence on the first call that serialises its processes; it names the process that holds the others up."""
    for each in shared:
        call, factor = each.call, each.factor
        if factor is None or factor < _TELLING or call.shared < _MUCH * call.busy:
            continue
        told = (
            f"{plural(len(each.names), 'process')} serialise in {call.name} on {call.device}: "
            f"for {share(call.shared, call.busy)} of its time two or more were inside, "
            f"{call.mean_inside:.1f} on average"
        )
        against = "as alone" if call.factor else "as from the return of the one before"
        return (f"{told}; a call takes {factor:.1f} times as long {against}.", *_holder(each))
    return ()


def _holder(each: Shared) -> tuple[str, ...]:
    """The process during whose turns the others waited longest, if its turns are much longer."""
    held, turns = each.call.held(), each.call.turns
    if len(turns) < 2 or not any(held.values()):
        return ()
    pid = max(held, key=lambda pid: (held[pid], -pid))
    others = (sum(turns.values()) - turns.get(pid, 0)) / (len(turns) - 1)
    if turns.get(pid, 0) < _UNEVEN * others:
        return ()
    who = f"{each.names.get(pid, '') or 'a process'} ({pid})"
    return (f"{share(held[pid], sum(held.values()))} of the waiting inside was for {who}.",)
