"""The scheduler's events as speedscope's evented profiles: one per thread, with its states, and in them its waits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np

from ...base.text import printable
from ...model import Frame, Stack
from ...model.call_spans import of_threads
from ...model.phases import STATES, phases
from ...model.scheduling import NO_STACK, Array, Scheduling, Threads
from ...model.states import BLOCKED

_BLOCKED = [STATES.index(state) for state in BLOCKED]
_PART = 1 << 14
_STEP = np.dtype([("at", "<i8"), ("name", "<i4"), ("opens", "u1")])


class Profiles:
    """``index`` gives each frame its number; it is called for all of them before the first profile is written."""

    def __init__(self, scheduling: Scheduling, index: Callable[[Frame], int]) -> None:
        self._scheduling = scheduling
        self._phases = phases(scheduling)
        blocked = np.isin(self._phases["state"], _BLOCKED)
        self._phases["stack"][~blocked] = NO_STACK
        self._states = [index(Frame(state, "other")) for state in STATES]
        self._calls, self._callers = of_threads(scheduling, Threads(scheduling.threads))
        self._called = [index(Frame(each.name, "api")) for each in scheduling.call_names]
        used = np.unique(self._phases["stack"])
        self._stacks = {int(i): self._frames(index, scheduling.stacks[i] if i != NO_STACK else ()) for i in used}

    @staticmethod
    def _frames(index: Callable[[Frame], int], stack: Stack) -> list[int]:
        return [index(frame) for frame in stack]

    def all(self) -> list[Iterator[str]]:
        """The profiles of threads that did anything, sorted by process; each in pieces."""
        threads = self._scheduling.threads
        rows, begins = np.unique(self._phases["thread"], return_index=True)
        ends = np.append(begins[1:], len(self._phases))
        order = np.lexsort((threads["begin"][rows], threads["tid"][rows], threads["tgid"][rows]))
        made = []
        for i in order:
            row, found = int(rows[i]), self._phases[begins[i] : ends[i]]
            made.append(self._profile(self._title(row), int(found["end"].max()), found, self._events))
            if len(calls := self._calls[self._callers == row]):
                title, end = f"{self._title(row)}: calls", self._scheduling.end
                made.append(self._profile(title, end, self._steps(calls), self._call_events))
        return made

    def _title(self, row: int) -> str:
        scheduling = self._scheduling
        tid, tgid, _, name, process = scheduling.threads[row].tolist()
        return printable(f"{scheduling.names[process]}-{tgid} {scheduling.names[name]}/{tid}")

    def _profile(self, title: str, end: int, found: Array, events: Callable[[Array], Iterator[str]]) -> Iterator[str]:
        head = {
            "type": "evented",
            "name": title,
            "unit": "nanoseconds",
            "startValue": self._scheduling.begin,
            "endValue": end,
        }
        yield json.dumps(head)[:-1] + ', "events": ['
        separator = ""
        for at in range(0, len(found), _PART):
            yield separator + ",\n".join(events(found[at : at + _PART]))
            separator = ",\n"
        yield "]}"

    def _steps(self, calls: Array) -> Array:
        """The begins and ends of a thread's calls in their order, without calls that have no length."""
        ends = np.minimum(calls["end"], self._scheduling.end)
        calls, ends = calls[ends > calls["begin"]], ends[ends > calls["begin"]]
        steps = np.zeros(2 * len(calls), _STEP)
        steps["at"] = np.concatenate([calls["begin"], ends])
        steps["opens"][: len(calls)] = 1
        steps["name"] = np.tile(calls["name"], 2)
        level = np.tile(calls["level"].astype(np.int64), 2)
        order = np.lexsort((np.where(steps["opens"] > 0, level, -level), steps["opens"], steps["at"]))
        return steps[order]

    def _call_events(self, steps: Array) -> Iterator[str]:
        for at, name, opens in steps.tolist():
            yield f'{{"type":"{"O" if opens else "C"}","at":{at},"frame":{self._called[name]}}}'

    def _events(self, found: Array) -> Iterator[str]:
        known: dict[tuple[int, int], tuple[str, str]] = {}
        for begin, end, _, stack, _, _, state in found.tolist():
            if (state, stack) not in known:
                frames = [self._states[state], *self._stacks[stack]]
                known[state, stack] = _template("O", frames), _template("C", frames[::-1])
            opening, closing = known[state, stack]
            yield opening.replace("@", str(begin))
            yield closing.replace("@", str(end))


def _template(kind: str, frames: list[int]) -> str:
    """The events of one moment, with ``@`` for the time."""
    return ",\n".join(f'{{"type":"{kind}","at":@,"frame":{frame}}}' for frame in frames)
