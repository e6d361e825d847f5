"""One run of ``eu-stack -m -p PID``: the stacks of all threads of a process, and their states when they were stopped.

eu-stack stops the threads one after the other by ptrace(2). If it dies by a signal, a thread can stay stopped: the
process is then continued (`continuing`). So it is not ended as long as it works, not even when this process is: it has
a session of its own, ends by itself, and writes into memory, not into a pipe.

It parses the files and the memory of the process, so it is the process's own user where the kernel allows that.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ....converters.base import helpers
from ....converters.base.text import printable
from ....converters.model import Stack
from ....converters.readers.gdb import parse_frame
from ...base import privilege, procfs
from ..protocol import EngineUnavailable
from .continuing import Guard, go_on
from .looks import Look, States, look

if TYPE_CHECKING:
    import subprocess

_YAMA = "/proc/sys/kernel/yama/ptrace_scope"
_SCHEDSTAT = "/proc/self/schedstat"
_PATIENCE = 30.0
"""Seconds after which a run is given up."""
_HURRY = 1.0
"""The same when the trace is to end: the owner of the process may keep eu-stack from ending."""
_TICK = 0.001
"""Seconds between two looks at the threads' states, which take at most half of the time."""
_WATCHED = 64
"""Maximum number of threads that are looked at while eu-stack runs; others are before and after it."""
_LARGEST = 64 << 20
"""Bytes of output that are read."""
_THREAD = re.compile(rb"TID (\d{1,10}):")
_ADDRESS = re.compile(rb"#\d+\s+0x([0-9a-f]{1,16})\b")


@dataclass
class Walk:
    """What one run found."""

    stacks: dict[int, Stack] = field(default_factory=dict)
    """By tid."""
    letters: dict[int, str] = field(default_factory=dict)
    """The states in which the threads were stopped: see `looks.States.of`."""
    seconds: float = 0.0
    stopped: dict[int, float] = field(default_factory=dict)
    """Seconds that eu-stack held each thread, about."""
    problem: str = ""
    """What eu-stack said if it failed."""


def find_eu_stack() -> str:
    """The path of eu-stack. EngineUnavailable when it is missing or this user may not use it."""
    path = helpers.find_program("eu-stack")
    if path is None:
        raise EngineUnavailable("there is no eu-stack", "apt-get install elfutils, or dnf install elfutils")
    if not os.path.exists(_SCHEDSTAT):
        raise EngineUnavailable("this kernel does not tell how long threads run: no schedstat", "use another engine")
    level = _yama()
    if level and not privilege.may_trace():
        raise EngineUnavailable(
            f"kernel.yama.ptrace_scope is {level}: users may not look into their processes",
            "sysctl kernel.yama.ptrace_scope=0, or run it as root",
        )
    return path


def rights_for(pid: int) -> helpers.Rights:
    """Those of the process's user, if they suffice to look at it: ptrace(2), "Ptrace access mode checking". They do not
    where it may not be looked at by its own user, has capabilities or is in another user namespace; then ours."""
    if os.geteuid() != 0 or _yama():
        return helpers.OURS
    try:
        with open(f"/proc/{pid}/status", errors="replace") as file:
            found = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        uids, gids = ({int(word) for word in found[name].split()} for name in ("Uid", "Gid"))
        groups = tuple(int(word) for word in found["Groups"].split())
        is_plain = len(uids) == len(gids) == 1 and 0 not in uids and not int(found["CapPrm"], 16)
        is_here = os.readlink(f"/proc/{pid}/ns/user") == os.readlink("/proc/self/ns/user")
        if is_plain and is_here and {os.stat(f"/proc/{pid}/ns").st_uid} == uids:
            return helpers.Rights(uids.pop(), gids.pop(), groups=groups, has_network=True)
    except (OSError, ValueError, KeyError):
        pass
    return helpers.OURS


def _yama() -> int:
    try:
        with open(_YAMA) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


class Walker:
    """Runs eu-stack."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._states = States()
        self._guard: Guard | None = None
        self.is_over: Callable[[], bool] = lambda: False
        """Whether the trace is to end."""

    def close(self) -> None:
        """Ends what guards the processes."""
        if self._guard:
            self._guard.close()
        self._guard = None

    def walk(self, pid: int, meanwhile: Callable[[], None] = lambda: None, only: int = 0) -> Walk:
        """The stacks of a process's threads; `Walk.problem` says why there are none. ``meanwhile`` is called about once
        a millisecond while eu-stack runs. ``only``: of this thread, which takes less time; others are not stopped."""
        walk = Walk()
        before = {tid: self._look(pid, tid) for tid in ([only] if only else procfs.tids(pid))}
        was_stopped = "T" in {seen.letter for seen in before.values()}
        out, err = os.memfd_create("stacks", os.MFD_CLOEXEC), os.memfd_create("errors", os.MFD_CLOEXEC)
        began = time.monotonic()
        try:
            command = [self._path, *(["-1", "-p", str(only)] if only else ["-p", str(pid)]), "-m"]
            self._guard = self._guard or Guard()
            with self._guard.over(0 if was_stopped else pid) as runs:
                process = helpers.start(
                    command,
                    rights=rights_for(pid),
                    limits=helpers.Limits(written=_LARGEST),
                    fds=[self._guard.held],
                    stdout=out,
                    stderr=err,
                )
                runs(process.pid)
                status = self._watch(process, pid, before, walk, meanwhile)
                walk.seconds = time.monotonic() - began
                after = {tid: self._look(pid, tid) for tid in before}
                if status < 0 and not was_stopped:
                    go_on(pid)
            addresses = self._read(os.pread(out, _LARGEST, 0), walk)
            if not walk.stacks:
                said = os.pread(err, 4096, 0).decode(errors="replace").strip().splitlines()
                walk.problem = printable(said[0])[:200] if said else f"it ended with status {status}"
        finally:
            os.close(out)
            os.close(err)
        for tid, address in addresses.items():
            if tid in before:
                walk.letters[tid] = self._states.of(pid, address, before[tid], after[tid])
        return walk

    def _look(self, pid: int, tid: int) -> Look:
        seen = look(pid, tid)
        self._states.note(pid, seen)
        return seen

    def _watch(
        self,
        process: subprocess.Popen[bytes],
        pid: int,
        before: dict[int, Look],
        walk: Walk,
        meanwhile: Callable[[], None],
    ) -> int:
        """Looks at threads until eu-stack ends: ``before`` gets the last look before each was stopped, `Walk.stopped`
        for how long it was. Returns eu-stack's status."""
        tids = list(before)
        chosen = sorted(random.sample(range(len(tids)), min(len(tids), _WATCHED)))
        watched = [tids[i] for i in chosen]
        held = dict.fromkeys(watched, 0.0)
        began = last = time.monotonic()
        took, done = 0.0, 0
        while True:
            if helpers.wait(process, _TICK + took):
                break
            now = time.monotonic()
            looks = [self._look(pid, tid) for tid in watched]
            for i, (tid, seen) in enumerate(zip(watched, looks, strict=True)):
                if seen.is_traced:
                    held[tid] += now - last
                    done = max(done, i + 1)  # eu-stack stops the threads in this order
            before.update((tid, seen) for tid, seen in list(zip(watched, looks, strict=True))[done:] if seen.letter)
            last, took = now, time.monotonic() - now
            meanwhile()
            if now > began + (_HURRY if self.is_over() else _PATIENCE):
                helpers.kill(process)
        mean = sum(held.values()) / len(held) if held else 0.0
        walk.stopped = {tid: held.get(tid, mean) for tid in tids}
        return process.returncode

    def _read(self, text: bytes, walk: Walk) -> dict[int, int]:
        """Reads stacks; returns the innermost addresses by tid."""
        addresses: dict[int, int] = {}
        for tid, lines in _threads(text):
            frames = [frame for line in lines for frame in parse_frame(line, addrs=False) or ()]
            if frames:
                walk.stacks[tid] = tuple(reversed(frames))
                addresses[tid] = _address(lines[0])
        return addresses


def _threads(text: bytes) -> Sequence[tuple[int, list[bytes]]]:
    """(tid, its lines) of the output."""
    found: list[tuple[int, list[bytes]]] = []
    for line in text.split(b"\n"):
        if match := _THREAD.fullmatch(line):
            found.append((int(match[1]), []))
        elif line.startswith(b"#") and found:
            found[-1][1].append(line)
    return found


def _address(line: bytes) -> int:
    match = _ADDRESS.match(line)
    return int(match[1], 16) if match else 0
