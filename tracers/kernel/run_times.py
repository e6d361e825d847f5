"""Run times of BPF programs, which the kernel counts as long as somebody asks for it.

To count costs some 150 ns per run (two readings of the scheduler's clock), so it is asked for in parts of the trace. To
begin and to end changes the kernel's code, which takes some 150 µs.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ..holder.links import bpf
from .bpfobject import Program

_ENABLE_STATS = 32
"""BPF_ENABLE_STATS of include/uapi/linux/bpf.h (d46edd671a14, 5.8). Its attributes: BPF_STATS_RUN_TIME, which is 0."""
_FIELD = re.compile(r"^(run_time_ns|run_cnt):\s*(\d+)$", re.MULTILINE)


class Runs(NamedTuple):
    """Runs of a program while the kernel counted them, and their time in ns."""

    ns: int = 0
    number: int = 0

    def since(self, before: Runs) -> Runs:
        """Runs that came after ``before``."""
        return Runs(self.ns - before.ns, self.number - before.number)


class RunTimes:
    """Run times of loaded programs."""

    def __init__(self, programs: Iterable[Program]) -> None:
        self._fds = {program.name: program.fd for program in programs if program.is_loaded}
        self._fd = -1

    def begin(self) -> None:
        """The kernel counts from now on. OSError where it refuses."""
        if self._fd < 0:
            self._fd = bpf(_ENABLE_STATS, struct.pack("=I", 0))

    def end(self) -> None:
        """The kernel counts no longer, unless somebody else asks for it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def read(self) -> Mapping[str, Runs]:
        """Runs counted so far, by program."""
        return {name: _runs(fd) for name, fd in self._fds.items()}


def _runs(fd: int) -> Runs:
    """Fields of proc(5), /proc/PID/fdinfo."""
    found = dict(_FIELD.findall(Path(f"/proc/self/fdinfo/{fd}").read_text()))
    return Runs(int(found.get("run_time_ns", 0)), int(found.get("run_cnt", 0)))
