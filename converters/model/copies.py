"""Copies of memory that a function made: how many bytes, in which direction, and how long its callers stood still."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Copies:
    """Copies of one function, process and direction that succeeded. Times in ns: total = on_cpu + blocked + runnable.

    A copy that another one makes is only counted for the outer one."""

    name: str
    library: str
    pid: int
    process: str
    direction: str
    """``host to device``, ``device to host``, ``device to device``, ``host to host``; ``by address`` if the function
    finds it out itself; ``unknown``."""
    is_async: bool
    """The function only orders the copy: its time is not that of the copy."""
    count: int = 0
    bytes: int = 0
    unknown: int = 0
    """Copies whose size is not known, and is not in ``bytes``."""
    total: int = 0
    blocked: int = 0
    runnable: int = 0
    pid_life: int = 1
    """Number of the process among those that had its pid, as in `CallTimes`."""

    @property
    def what(self) -> tuple[str, str, str]:
        """The function, and the direction."""
        return self.name, self.library, self.direction

    def add(self, other: Copies) -> None:
        """Adds those of another thread."""
        self.count += other.count
        self.bytes += other.bytes
        self.unknown += other.unknown
        self.total += other.total
        self.blocked += other.blocked
        self.runnable += other.runnable

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second of the callers' time; None if that is not the time of the copies, or sizes are missing."""
        if self.is_async or self.unknown or not self.total:
            return None
        return self.bytes * 1e9 / self.total
