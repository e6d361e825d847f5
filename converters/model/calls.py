"""Calls that were timed one by one, such as ioctls: what one process made of one kind, and how long they took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

SHIFT = 8
"""Bucket 0 begins at 0 ns, the next factor of two at 1 << SHIFT."""
PARTS = 4
"""Buckets per factor of two."""
LEFT = "left without a return"
"""Named like an error: longjmp, an exception. Such calls are not counted, for their time is not known."""
WITHOUT_PROBE = "functions without a probe"
"""Kind of loss: functions that were to be timed, on which the kernel takes no probe."""
BUCKETS = 28 * PARTS
"""Latencies are counted in buckets, as in the probes (bpf/ioctl.bpf.c); the last one has all longer calls."""


@dataclass(slots=True)
class CallTimes:
    """The calls of one name on one device by one process. Times in ns; total = on_cpu + blocked + runnable.

    ``name`` is as the API or command is called, or ``0x…``. Calls that had not ended are only in ``open_count`` and
    ``open_time``, the time from their begin, or the trace's, to the end of the trace.

    A trace can be cut into intervals. A call is counted in the one in which it ends, with its whole latency; ``total``
    and its parts are those of this interval, and ``earlier`` is the rest, which was open time of the others.
    """

    name: str
    device: str
    pid: int
    process: str
    count: int = 0
    total: int = 0
    min: int = 0
    max: int = 0
    blocked: int = 0
    runnable: int = 0
    latencies: tuple[int, ...] = ()
    """Number of calls per bucket; empty when not known."""
    errors: dict[str, int] = field(default_factory=dict)
    """Number of calls that failed, by the error's name."""
    open_count: int = 0
    open_time: int = 0
    earlier: int = 0
    locks: str = ""
    """The locks that the call is known to take; "" if nothing is known."""
    inner: int = 0
    """Time in other calls that these made."""
    open_inner: int = 0
    """Time in inner calls of the calls that had not ended."""
    library: str = ""
    """Name of the file that has the function; "" for other calls. A function's calls have no ``device``."""
    pid_life: int = 1
    """Number of the process among those that had its pid, as in `ThreadTimes`. Added up processes have the pid 0."""
    tid: int = 0
    """Id of the thread whose calls these are; 0: all threads of the process, or those that are added up."""
    tid_life: int = 1
    thread: str = ""
    """Name of the thread ``tid``."""
    threads: list[CallTimes] = field(default_factory=list)
    """Calls by thread; empty when not known, and for a single thread's calls."""

    @property
    def where(self) -> str:
        """The device or the library."""
        return self.device or self.library

    @property
    def own(self) -> int:
        """Time of the calls without the calls that these made."""
        return self.total - self.inner

    @property
    def whole(self) -> int:
        """Time of the calls with that of calls that have not ended."""
        return self.total + self.open_time

    @property
    def whole_own(self) -> int:
        """`whole` without the calls that these made, so that all calls sum to the time in calls."""
        return self.own + self.open_time - self.open_inner

    @property
    def on_cpu(self) -> int:
        return self.total - self.blocked - self.runnable

    @property
    def mean(self) -> int:
        """Mean latency; 0 without calls."""
        return (self.total + self.earlier) // self.count if self.count else 0

    def quantile(self, share: float) -> int | None:
        """The latency below which this share of the calls is, from their buckets; None when not known."""
        return quantile(self.latencies, share, self.min, self.max)


def together(calls: Sequence[CallTimes]) -> CallTimes:
    """Calls of one name on one device by several processes, or threads, as one; their first pid and process."""
    first = calls[0]
    timed = [call for call in calls if call.count]
    errors: dict[str, int] = {}
    for call in calls:
        for error, number in call.errors.items():
            errors[error] = errors.get(error, 0) + number
    histograms = [call.latencies for call in calls if call.latencies]
    return CallTimes(
        first.name,
        first.device,
        first.pid,
        first.process,
        sum(call.count for call in calls),
        sum(call.total for call in calls),
        min((call.min for call in timed), default=0),
        max((call.max for call in timed), default=0),
        sum(call.blocked for call in calls),
        sum(call.runnable for call in calls),
        tuple(map(sum, zip(*histograms, strict=True))),
        errors,
        sum(call.open_count for call in calls),
        sum(call.open_time for call in calls),
        sum(call.earlier for call in calls),
        first.locks,
        sum(call.inner for call in calls),
        sum(call.open_inner for call in calls),
        first.library,
        first.pid_life,
    )


def lower_bound(bucket: int) -> int:
    """The least latency in a bucket, in ns."""
    return (PARTS + bucket % PARTS) << (bucket // PARTS + SHIFT - 2) if bucket else 0


def bucket_of(latency: int) -> int:
    """The bucket of a latency in ns."""
    octave = latency.bit_length() - 1
    if octave < SHIFT:
        return 0
    return min((octave - SHIFT) * PARTS + (latency >> octave - 2) % PARTS, BUCKETS - 1)


def quantile(latencies: Sequence[int], share: float, least: int, most: int) -> int | None:
    """Latency in ns, interpolated in its bucket; never outside ``least`` … ``most``. None without calls."""
    wanted = share * sum(latencies)
    if not wanted:
        return None
    below = 0
    for bucket, calls in enumerate(latencies):
        if calls and below + calls >= wanted:
            begin = max(lower_bound(bucket), least)
            end = min(lower_bound(bucket + 1), most) if bucket + 1 < len(latencies) else most
            return round(begin + (max(end, begin) - begin) * (wanted - below) / calls)
        below += calls
    return most


def octaves(latencies: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Calls per power of two of ns, as (from, to (exclusive), calls), from the first to the last that has calls."""
    folded: dict[int, int] = {}
    for bucket, calls in enumerate(latencies):
        if calls:
            folded[bucket // PARTS] = folded.get(bucket // PARTS, 0) + calls
    for octave in range(min(folded, default=0), max(folded, default=-1) + 1):
        begin = 1 << (octave + SHIFT)
        yield begin if octave else 0, 2 * begin, folded.get(octave, 0)
