"""Runs a command as root at a terminal, beside processes that may hang whoever looks at them, and never hangs itself:
what it needs of a process is read from files in /proc that take no lock of its address space."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tty
from dataclasses import dataclass
from pathlib import Path

from commands import environment
from default_signals import in_child

_PROGRESS = re.compile(r"\r\x1b\[K(?:(?:tracing|compiling|waiting) [^\r\n]*)?")
_EVERY = 0.1
_GIVEN_UP = 15.0
"""Seconds after Ctrl-C when a command counts as one that does not end."""


@dataclass
class Outcome:
    """Outcome of a command."""

    began: float | None
    """Seconds until it traced; None if it never did."""
    ended: float | None
    """Seconds from Ctrl-C to its end; None if it did not end."""
    status: int | None
    peak_mb: float
    """The largest sum of its own memory and that of its helpers, without pages of files."""
    text: str
    """Text that it printed, without the progress."""
    raw: bytes


def command_path(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def family(root: int) -> list[int]:
    """A process, those of its session, and all that descend from these."""
    parents: dict[int, tuple[int, int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            if fields[0] not in (b"Z", b"X"):
                parents[int(name)] = int(fields[1]), int(fields[3])
    found = {pid for pid, (_, session) in parents.items() if root in (pid, session)}
    while more := {pid for pid, (parent, _) in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def _own_kb(pid: int) -> int:
    """Memory of a process that is nobody else's, in KB."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/status").read_text("utf-8", "replace").split()
        return sum(int(words[words.index(name) + 1]) for name in ("RssAnon:", "RssShmem:") if name in words)
    return 0


class Command:
    """A running command in a session of its own. A context manager: on the way out it is killed with its helpers."""

    def __init__(self, *command: object, cwd: Path | None = None, **changes: str) -> None:
        self._tty = bytearray()
        self._master, slave = pty.openpty()
        tty.setraw(slave)
        self._out = tempfile.TemporaryFile()  # noqa: SIM115  # closed in __exit__
        self._began_at = time.monotonic()
        self.process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=slave,
            cwd=cwd or "/",
            env=environment(**changes),
            start_new_session=True,
            preexec_fn=in_child,  # noqa: PLW1509  # it only sets signals
        )
        os.close(slave)
        self.seen: set[int] = set()
        self.peak_kb = 0
        self._stop = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()

    def _sample(self) -> None:
        while not self._stop.wait(_EVERY):
            pids = family(self.process.pid)
            self.seen |= set(pids)
            self.peak_kb = max(self.peak_kb, sum(map(_own_kb, pids)))

    def read(self, seconds: float) -> None:
        """Reads its terminal for so long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and self.process.poll() is None:
            if select.select([self._master], [], [], min(left, 0.02))[0]:
                with contextlib.suppress(OSError):
                    self._tty += os.read(self._master, 1 << 16)

    def traced_after(self, patience: float) -> float | None:
        """Seconds until it traces; None if it does not so soon."""
        while time.monotonic() < self._began_at + patience and self.process.poll() is None:
            if b"tracing " in self._tty:
                return time.monotonic() - self._began_at
            self.read(0.02)
        return None

    def interrupt(self) -> float | None:
        """Ctrl-C as the terminal sends it. Seconds until its end; None if it does not end."""
        before = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)
        self.read(_GIVEN_UP)
        return time.monotonic() - before if self.process.poll() is not None else None

    def outcome(self, began: float | None, ended: float | None) -> Outcome:
        with contextlib.suppress(OSError):
            while select.select([self._master], [], [], 0)[0] and (data := os.read(self._master, 1 << 16)):
                self._tty += data
        self._out.seek(0)
        raw = self._out.read() + bytes(self._tty)
        text = _PROGRESS.sub("", raw.decode("utf-8", "backslashreplace"))
        return Outcome(began, ended, self.process.poll(), self.peak_kb / 1024, text, raw)

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._sampler.join()
        for pid in family(self.process.pid):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # it may hang until the attack ends
            self.process.wait(1)
        self._out.close()
        os.close(self._master)


def watch(*command: object, patience: float, seconds: float = 0.7, **changes: str) -> Outcome:
    """A command that is stopped by Ctrl-C ``seconds`` after it has begun to trace."""
    with Command(*command, **changes) as running:
        began = running.traced_after(patience)
        running.read(seconds)
        return running.outcome(began, running.interrupt())
