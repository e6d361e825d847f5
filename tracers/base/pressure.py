"""Pressure of the host and of control groups, and the time of interrupts: differences of the kernel's counts.

Formats: Documentation/accounting/psi.rst; proc(5), /proc/stat and /proc/interrupts.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...converters.model.pressure import HARD, RESOURCES, SOFT, STOLEN, Interrupts, Pressure
from .procfs import PROC

_BYTES = 1 << 12
_STAT_BYTES = 1 << 20
"""Bytes of /proc/stat that are read: the line ``intr`` has a number for each possible interrupt."""
_INTERRUPT_BYTES = 4 << 20
"""Bytes of /proc/interrupts that are read: it has a column for each core."""
_CORES = 64
"""Cores that are kept, those from which most time was taken."""
_SOURCES = 20
"""Sources that are kept, those with most interrupts."""
_NAME = 80
"""Characters of the name of a source that are kept."""
_SOFT_NAMES = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
"""Soft interrupts in the order of the line ``softirq`` of /proc/stat (include/linux/interrupt.h)."""
_COLUMNS = {HARD: 5, SOFT: 6, STOLEN: 7}
"""Columns of the line ``cpu`` of /proc/stat."""
_OWN = 8
"""Columns before those of guests, whose time is in the others, too."""
_US = 1_000


class Stalled(NamedTuple):
    """Stalls since the boot, by resource: ns of some and of all tasks. ``at``: ns of the clock when they were read."""

    at: int
    times: dict[str, tuple[int, int]]

    def since(self, before: Stalled, cgroup: str = "") -> list[Pressure]:
        """Stalls since ``before``, of the resources that both have."""
        found = []
        for resource, (some, full) in self.times.items():
            if then := before.times.get(resource):
                some, full = max(some - then[0], 0), max(full - then[1], 0)
                found.append(Pressure(resource, some, full, self.at - before.at, cgroup))
        return found


def stalled(folder: bytes, suffix: bytes = b"") -> Stalled:
    """The stalls in a folder's files ``RESOURCE`` + ``suffix``; those that a kernel lacks are left out."""
    found = {}
    for resource in RESOURCES:
        if times := _totals(_read(folder + b"/" + resource.encode() + suffix, _BYTES)):
            found[resource] = times
    return Stalled(time.monotonic_ns(), found)


def _totals(data: bytes) -> tuple[int, int] | None:
    """The totals of ``some`` and ``full``, in ns; that of a line that is missing is 0, both missing is None."""
    totals = {}
    for line in data.split(b"\n"):
        kind, _, rest = line.partition(b" ")
        total = rest.rpartition(b"total=")[2]
        if kind in (b"some", b"full") and total.isdigit():
            totals[kind] = int(total) * _US
    return (totals.get(b"some", 0), totals.get(b"full", 0)) if totals else None


class HostTimes:
    """Looks at the host twice: when it is made, and at `end`."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = os.fsencode(proc)
        self._stalled = stalled(self._proc + b"/pressure")
        self._stat, self._sources = self._look()
        self.pressure: list[Pressure] = []
        """Pressure of the host; empty if the kernel has none (CONFIG_PSI, or the option psi=0)."""
        self.interrupts: list[Interrupts] = []
        """Interrupts of each kind, then sources with most, then of each core."""

    def end(self) -> None:
        """The trace has ended."""
        self.pressure = stalled(self._proc + b"/pressure").since(self._stalled)
        stat, sources = self._look()
        self.interrupts = interrupts(self._stat, stat, sources - self._sources)
        self._sources.clear()

    def _look(self) -> tuple[bytes, Counter[str]]:
        return _read(self._proc + b"/stat", _STAT_BYTES), _sources(_read(self._proc + b"/interrupts", _INTERRUPT_BYTES))


def interrupts(before: bytes, after: bytes, sources: Mapping[str, int]) -> list[Interrupts]:
    """Interrupts between two contents of /proc/stat; [] if one is none. ``sources``: hard ones, by name."""
    then, now = _numbers(before), _numbers(after)
    if len(then.get(b"cpu", ())) < _OWN or len(now.get(b"cpu", ())) < _OWN:
        return []
    spent = _spent(now[b"cpu"], then[b"cpu"])
    capacity = sum(spent[:_OWN])
    numbers = {
        HARD: _more(now, then, b"intr")[:1],
        SOFT: _more(now, then, b"softirq"),
        STOLEN: [],
    }
    found = [
        Interrupts(kind, "", spent[column], numbers[kind][0] if numbers[kind] else 0, capacity)
        for kind, column in _COLUMNS.items()
    ]
    of_sources = [(HARD, name, count) for name, count in sources.items()]
    of_sources += [(SOFT, name, count) for name, count in zip(_SOFT_NAMES, numbers[SOFT][1:], strict=False)]
    most = sorted((each for each in of_sources if each[2] > 0), key=lambda each: (-each[2], each[:2]))
    found += [Interrupts(kind, name, 0, count, capacity) for kind, name, count in most[:_SOURCES]]
    return found + _by_core(now, then)


def _spent(now: Sequence[int], then: Sequence[int]) -> list[int]:
    """The ns between two lines of a core. A count of idle time can go back (proc(5))."""
    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return [max(new - old, 0) * tick for new, old in zip(now, then, strict=False)]


def _by_core(now: Mapping[bytes, list[int]], then: Mapping[bytes, list[int]]) -> list[Interrupts]:
    """Time that was taken from each core, without what is 0; those with most first. Of a core, numbers are not told."""
    cores = []
    for name in now.keys() & then.keys():
        number = name.removeprefix(b"cpu")
        if number.isdigit() and min(len(now[name]), len(then[name])) >= _OWN:
            spent = _spent(now[name], then[name])
            taken = {kind: spent[column] for kind, column in _COLUMNS.items()}
            cores.append((sum(taken.values()), int(number), taken, sum(spent[:_OWN])))
    most = sorted((each for each in cores if each[0]), key=lambda each: (-each[0], each[1]))[:_CORES]
    return [
        Interrupts(kind, "", time, 0, capacity, core)
        for _, core, taken, capacity in most
        for kind, time in taken.items()
        if time
    ]


def _numbers(stat: bytes) -> dict[bytes, list[int]]:
    """The numbers of the lines of /proc/stat that are used; of ``intr`` only the sum."""
    found = {}
    for line in stat.split(b"\n"):
        name, _, rest = line.partition(b" ")
        if name in (b"cpu", b"intr", b"softirq") or (name.startswith(b"cpu") and name[3:].isdigit()):
            words = rest.split(maxsplit=1)[:1] if name == b"intr" else rest.split()
            if all(word.isdigit() for word in words):
                found[name] = [int(word) for word in words]
    return found


def _more(now: Mapping[bytes, list[int]], then: Mapping[bytes, list[int]], name: bytes) -> list[int]:
    return [max(new - old, 0) for new, old in zip(now.get(name, ()), then.get(name, ()), strict=False)]


def _sources(data: bytes) -> Counter[str]:
    """Numbers of hard interrupts since the boot, of all cores, by name: that of the line, and what follows the
    numbers."""
    head, _, rest = data.partition(b"\n")
    cores = len(head.split())
    found: Counter[str] = Counter()
    for line in rest.split(b"\n")[:-1]:  # the last one may be cut
        label, _, text = line.partition(b":")
        words = text.split(maxsplit=cores)
        counts = [word for word in words[:cores] if word.isdigit()]
        described = b" ".join(words[len(counts) :][-1].split()) if len(words) > len(counts) else b""
        name = os.fsdecode(label.strip() + b" " + described).strip()[:_NAME]
        if name and counts:
            found[name] += sum(map(int, counts))
    return found


def _read(path: bytes, most: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except (OSError, ValueError):  # a NUL
        return b""
