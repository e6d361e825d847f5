"""Meaning of the stack of a sample of calls: the functions that were timed, the ioctl, and where the kernel waited."""

from __future__ import annotations

from typing import NamedTuple

from ..facts.wait_sites import site
from ..model import Profile, Sample, Stack
from ..model.states import BLOCKED, RUNNING

API = "api"
"""The kind of the frames of timed functions, and of ioctls, which are of no file."""


class Place(NamedTuple):
    """``functions``: outermost first. ``ioctl``: its frame, "" outside of one. ``kernel``: the function of a wait."""

    functions: tuple[str, ...]
    ioctl: str
    kernel: str

    @property
    def is_outside(self) -> bool:
        """An ioctl that no timed function made."""
        return bool(self.ioctl) and not self.functions


class Places:
    """Cached by identity: samples share their stacks."""

    def __init__(self) -> None:
        self._known: dict[int, Place] = {}

    def of(self, stack: Stack) -> Place:
        found = self._known.get(id(stack))
        if found is None:
            frames = [frame for frame in stack if frame.kind == API]
            functions = tuple(frame.name for frame in frames if frame.module)
            ioctl = next((frame.name for frame in frames if not frame.module), "")
            found = self._known[id(stack)] = Place(functions, ioctl, site(stack).kernel)
        return found


class Times(NamedTuple):
    """Times in ns."""

    on_cpu: int = 0
    blocked: int = 0
    runnable: int = 0

    @property
    def sum(self) -> int:
        return self.on_cpu + self.blocked + self.runnable

    def plus(self, other: Times) -> Times:
        return Times(self.on_cpu + other.on_cpu, self.blocked + other.blocked, self.runnable + other.runnable)


NO_TIME = Times()


def times_of(sample: Sample) -> Times:
    """The time of a sample, by its state."""
    state, ns = str(sample.label("state")), sample.values[0]
    if state == RUNNING:
        return Times(on_cpu=ns)
    return Times(blocked=ns) if state in BLOCKED else Times(runnable=ns)


def is_joined(profile: Profile) -> bool:
    """Whether its samples are time in calls of functions, and ioctls parts of it."""
    return any(value_type.name == "calls" and value_type.unit == "nanoseconds" for value_type in profile.value_types)
