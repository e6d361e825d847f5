"""Leftovers of traces where they should leave none: programs in the kernel, probes, processes, mounts, files."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import time
from dataclasses import dataclass, field
from pathlib import Path

from stallscope.tracers.kernel import tracefs
from watching import family

_SYS_BPF = {"x86_64": 321, "aarch64": 280}
_NEXT_ID = {"program": 11, "map": 12, "link": 31}
"""BPF_…_GET_NEXT_ID of include/uapi/linux/bpf.h."""
_EVENTS = ("uprobe_events", "kprobe_events")
_PERFS = "perf-vdso.so-"
"""Begin of the names of files that perf leaves if it is killed: SECURITY.md says so."""
_PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 30.0
"""Seconds until the kernel has freed what nobody holds any more."""


def adopt_orphans(*, adopts: bool) -> None:
    """Whether descendants of this process become its children when their parents end: so none of them gets lost."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(adopts), 0, 0, 0)


def bpf_ids(kind: str) -> set[int]:
    """All that the kernel has of a kind."""
    libc = ctypes.CDLL(None)
    found: set[int] = set()
    attributes = (ctypes.c_uint32 * 32)()
    while not libc.syscall(_SYS_BPF[platform.machine()], _NEXT_ID[kind], attributes, ctypes.sizeof(attributes)):
        found.add(attributes[1])
        attributes[0] = attributes[1]
    return found


def _lines(path: str) -> set[str]:
    with contextlib.suppress(OSError):
        return set(Path(path).read_text("utf-8", "replace").splitlines())
    return set()


@dataclass
class Host:
    """A state of the host, as far as a trace could change it."""

    things: dict[str, set[object]] = field(default_factory=dict)

    @classmethod
    def now(cls) -> Host:
        things: dict[str, set[object]] = {f"BPF {kind}": set(bpf_ids(kind)) for kind in _NEXT_ID}
        for name in _EVENTS:
            things[name] = set(_lines(str(tracefs.folder() / name)))
        things["mounts"] = {line.split(" - ")[-1] for line in _lines("/proc/self/mountinfo")}
        things["modules"] = {line.split()[0] for line in _lines("/proc/modules")}
        things["processes"] = set(family(os.getpid()))
        ours = ("stallscope", "stap", "perf")
        things["files in /tmp"] = {
            name for name in os.listdir("/tmp") if name.startswith(ours) and not name.startswith(_PERFS)
        }
        return cls(things)

    def more(self, before: Host) -> dict[str, set[object]]:
        """Things that are there now and were not before."""
        new = {kind: found - before.things[kind] for kind, found in self.things.items()}
        return {kind: found for kind, found in new.items() if found}


def left_since(before: Host) -> dict[str, set[object]]:
    """Things that are left of all that came since then, when nothing more goes away by itself."""
    deadline = time.monotonic() + PATIENCE
    while left := Host.now().more(before):
        if time.monotonic() > deadline:
            return left
        time.sleep(0.1)
    return {}
