"""One run of ``eu-stack -m -p PID``: the stacks of all threads of a process, and their states when they were stopped.

eu-stack stops the threads one after the other by ptrace(2). If it dies by a signal, a thread can stay stopped: the
process is then continued (`continuing`). So it is not ended as long as it works, not even when this process is: it has
a session of its own, ends by itself, and writes into memory, not into a pipe.

It parses the files and the memory of the process, so it is the process's own user where the kernel allows that. This
user can stop it, give it files that never answer, and write into its output (/proc/PID/fd). So a look ends after a
while, whatever it does; its output cannot grow beyond a size; and what it says of other processes' threads is nothing.
"""

from __future__ import annotations

import fcntl
import io
import math
import os
import random
import re
import time
from collections.abc import Callable, Sequence, Set
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
_PATIENCE = 10.0
"""Seconds after which a run is given up."""
_HURRY = 1.0
"""Seconds after which a run is given up once Ctrl-C was pressed."""
_GRACE = 2.0
"""Seconds after the end of the trace for a look that has begun before."""
_DYING = 0.5
"""Seconds in which one that was killed is waited for: a file system of users (FUSE) can hold it for ever."""
_TICK = 0.001
"""Seconds between two looks at the threads' states, which take at most half of the time."""
_WATCHED = 64
"""Maximum number of threads that are looked at while eu-stack runs; others are before and after it."""
_LARGEST, _LONGEST = 32 << 20, 4 << 10
"""Bytes of output, and of messages."""
_DEEPEST = 257
"""Lines of a thread: eu-stack shows at most 256 frames, and says that there are more."""
_THREAD = re.compile(rb"TID (\d{1,10}):")
_ADDRESS = re.compile(rb"#\d+\s+0x([0-9a-f]{1,16})\b")


@dataclass
class Walk:
    """Findings of one run."""

    stacks: dict[int, Stack] = field(default_factory=dict)
    """Stacks by tid."""
    letters: dict[int, str] = field(default_factory=dict)
    """The states in which the threads were stopped: see `looks.States.of`."""
    seconds: float = 0.0
    stopped: dict[int, float] = field(default_factory=dict)
    """Seconds that eu-stack held each thread, about."""
    problem: str = ""
    """Message of eu-stack if it failed; "" if it did not."""
    given_up: bool = False
    """Whether eu-stack did not answer."""


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
    """Rights of the process's user, if they suffice to look at it: ptrace(2), "Ptrace access mode checking". They do
    not where it may not be looked at by its own user, has capabilities or is in another user namespace; then ours."""
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
        """Whether the trace is to end at once."""
        self.until = math.inf
        """Time when it is to end anyway, in seconds of `time.monotonic`."""

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
        out, err = _memory("stacks", _LARGEST), _memory("errors", _LONGEST)
        began = time.monotonic()
        try:
            command = [self._path, *(["-1", "-p", str(only)] if only else ["-p", str(pid)]), "-m"]
            self._guard = self._guard or Guard()
            with self._guard.over(0 if was_stopped else pid) as runs:
                process = helpers.start(command, rights=rights_for(pid), fds=[self._guard.held], stdout=out, stderr=err)
                runs(process.pid)
                self._watch(process, pid, before, walk, meanwhile)
                walk.seconds = time.monotonic() - began
                after = {tid: self._look(pid, tid) for tid in before}
                if not was_stopped and (walk.given_up or process.returncode < 0):
                    go_on(pid)
            own = before.keys() | set(procfs.tids(pid))
            addresses = {} if walk.given_up else self._read(_written(out), walk, own)
            if walk.given_up:
                walk.problem = "it did not answer"
            elif not walk.stacks:
                said = _written(err).decode(errors="replace").strip().splitlines()
                walk.problem = printable(said[0])[:200] if said else _ending(process.returncode)
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
    ) -> None:
        """Looks at threads until eu-stack ends, or is given up: ``before`` gets the last look before each was stopped,
        `Walk.stopped` for how long it was."""
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
            if procfs.state(process.pid) == "T" or now > self._latest(began):
                walk.given_up = True
                helpers.kill(process, _DYING)
                break
        mean = sum(held.values()) / len(held) if held else 0.0
        walk.stopped = {tid: held.get(tid, mean) for tid in tids}

    def _latest(self, began: float) -> float:
        """Time when a look has to be over that began then."""
        if self.is_over():
            return began + _HURRY
        return min(began + _PATIENCE, max(self.until, began) + _GRACE)

    def _read(self, text: bytes, walk: Walk, own: Set[int]) -> dict[int, int]:
        """Reads the stacks of threads among ``own``; returns the innermost addresses by tid."""
        addresses: dict[int, int] = {}
        for tid, lines in _threads(text, own):
            frames = [frame for line in lines for frame in parse_frame(line, addrs=False) or ()]
            if frames:
                walk.stacks[tid] = tuple(reversed(frames))
                addresses[tid] = _address(lines[0])
        return addresses


def _memory(name: str, size: int) -> int:
    """A file in memory that nobody can make larger, or smaller."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _written(fd: int) -> bytes:
    """Bytes that were written to such a file: both who writes and we have its offset."""
    return os.pread(fd, os.lseek(fd, 0, os.SEEK_CUR), 0)


def _ending(status: int) -> str:
    return f"it was ended by signal {-status}" if status < 0 else f"it ended with status {status}"


def _threads(text: bytes, own: Set[int]) -> Sequence[tuple[int, list[bytes]]]:
    """(tid, its lines) of the output, each of these threads once."""
    found: dict[int, list[bytes]] = {}
    lines: list[bytes] = []
    for line in io.BytesIO(text):
        if match := _THREAD.fullmatch(line.rstrip(b"\n")):
            tid, lines = int(match[1]), []
            if tid in own:
                lines = found.setdefault(tid, lines)
        elif line.startswith(b"#") and len(lines) < _DEEPEST:
            lines.append(line.rstrip(b"\n"))
    return list(found.items())


def _address(line: bytes) -> int:
    match = _ADDRESS.match(line)
    return int(match[1], 16) if match else 0
