"""The scheduler's events as speedscope's evented profiles: one per thread, with its states, and in them its waits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np

from ...base.text import printable
from ...model import Frame, Stack
from ...model.phases import STATES, phases
from ...model.scheduling import NO_STACK, Array, Scheduling
from ...model.states import BLOCKED

_BLOCKED = [STATES.index(state) for state in BLOCKED]
_PART = 1 << 14


class Profiles:
    """``index`` gives each frame its number; it is called for all of them before the first profile is written."""

    def __init__(self, scheduling: Scheduling, index: Callable[[Frame], int]) -> None:
        self._scheduling = scheduling
        self._phases = phases(scheduling)
        blocked = np.isin(self._phases["state"], _BLOCKED)
        self._phases["stack"][~blocked] = NO_STACK
        self._states = [index(Frame(state, "other")) for state in STATES]
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
        return [self._profile(int(rows[i]), self._phases[begins[i] : ends[i]]) for i in order]

    def _profile(self, row: int, found: Array) -> Iterator[str]:
        scheduling = self._scheduling
        tid, tgid, _, name, process = scheduling.threads[row].tolist()
        title = printable(f"{scheduling.names[process]}-{tgid} {scheduling.names[name]}/{tid}")
        head = {
            "type": "evented",
            "name": title,
            "unit": "nanoseconds",
            "startValue": scheduling.begin,
            "endValue": int(found["end"].max()),
        }
        yield json.dumps(head)[:-1] + ', "events": ['
        separator = ""
        for at in range(0, len(found), _PART):
            yield separator + ",\n".join(self._events(found[at : at + _PART]))
            separator = ",\n"
        yield "]}"

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
