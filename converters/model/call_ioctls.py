"""The ioctls that a function's calls made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CallIoctls:
    """Ioctls of one command on one device, in the calls of a function by a process, and in the calls that these made.
    Times in ns: total = on_cpu + blocked + runnable, as in `CallTimes`. They are part of the function's time."""

    name: str
    library: str
    pid: int
    process: str
    command: str
    device: str
    count: int = 0
    total: int = 0
    blocked: int = 0
    runnable: int = 0
    open_count: int = 0
    """Number of ioctls that had not ended; they are not in the figures above."""
    open_time: int = 0
    pid_life: int = 1
    """Number of the process among those that had its pid, as in `CallTimes`."""

    @property
    def on_cpu(self) -> int:
        return self.total - self.blocked - self.runnable

    @property
    def what(self) -> tuple[str, str, str, str]:
        """The function, and the command."""
        return self.name, self.library, self.command, self.device

    def add(self, other: CallIoctls) -> None:
        """Adds those of another thread."""
        self.count += other.count
        self.total += other.total
        self.blocked += other.blocked
        self.runnable += other.runnable
        self.open_count += other.open_count
        self.open_time += other.open_time

    @property
    def frame(self) -> str:
        """The name of the frame that the ioctl has in stacks."""
        return f"{self.command} {self.device}"
