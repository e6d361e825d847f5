"""Processes inside a call at the same time, and who waited meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class SharedCall:
    """One call on one device, as in `CallTimes`, by all processes. Times in ns.

    Calls leave one after the other. The turn of a call is the time before its end in which no other call left: if the
    calls queue for one lock, it is the time for which this one had the lock.
    """

    name: str
    device: str
    busy: int = 0
    """Time in which a process was inside."""
    shared: int = 0
    """Time in which two processes were inside, or more."""
    inside: int = 0
    """The processes' times inside, added up."""
    count: int = 0
    """Number of calls that returned."""
    time: int = 0
    """Latencies of ``count`` calls, added up."""
    alone: int = 0
    """Number of calls, of ``count``, during which no other process was inside any call on the device."""
    alone_time: int = 0
    turns: dict[int, int] = field(default_factory=dict)
    """Time of the turns, by process."""
    waits: dict[tuple[int, int], int] = field(default_factory=dict)
    """Time for which one process was blocked inside during turns of another one, by both."""

    @property
    def mean_inside(self) -> float:
        """Number of processes inside, while there was one; 0 if there never was."""
        return self.inside / self.busy if self.busy else 0.0

    @property
    def factor(self) -> float | None:
        """The mean latency of calls with another process inside, in terms of that of `alone` calls; None if there was
        none of either."""
        if not self.alone_time or self.count <= self.alone:
            return None
        return self.with_others_mean / (self.alone_time / self.alone)

    @property
    def with_others_mean(self) -> float:
        """Mean latency of the calls that were not `alone`, in ns; 0 if all were."""
        number = self.count - self.alone
        return (self.time - self.alone_time) / number if number > 0 else 0.0

    @property
    def turns_factor(self) -> float | None:
        """The mean latency in terms of the mean turn; None without calls."""
        turns = sum(self.turns.values())
        return self.time / turns if turns else None

    def held(self) -> dict[int, int]:
        """Times for which others were blocked during a process's turns, by process."""
        found: dict[int, int] = {}
        for (_, holder), ns in self.waits.items():
            found[holder] = found.get(holder, 0) + ns
        return found
