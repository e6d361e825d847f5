"""A folder for one job, what is started there, and the end of all of it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType

PYTHON = "/usr/bin/python3"
"""Debian's: its modules are those of Debian's packages."""
PROGRAMS = Path(__file__).parent / "jobs" / "programs"
FOLDERS = "/tmp/stallscope-job-"
"""Begin of the names of stages."""
NOBODY = 65534
PATIENCE = 40.0
"""Seconds until a program must be ready."""
NOTHING: Mapping[str, str] = {}
_END = 6.0
"""Seconds for a program to end by itself."""
_PR_SET_PDEATHSIG = 1  # prctl(2)


class Failed(Exception):
    """A job is not as it should be: what it said."""


class Stage:
    """A context manager: on the way out everything is gone that was started."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=Path(FOLDERS).name, dir=Path(FOLDERS).parent))
        self.folder.chmod(0o755)
        self._started: list[tuple[subprocess.Popen[bytes], signal.Signals]] = []
        self._groups: list[Path] = []

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process, number in reversed(self._started):
            if process.poll() is None:
                process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END)
            with contextlib.suppress(ProcessLookupError):  # also what it has started
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for group in self._groups:
            _remove(group)
        shutil.rmtree(self.folder, ignore_errors=True)

    def program(self, name: str) -> str:
        """Brings a program of ours to the folder."""
        shutil.copy(PROGRAMS / name, self.folder / name)
        return name

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, *command: object, user: int | None = None, environment: Mapping[str, str] = NOTHING) -> str:
        """Runs a command to its end. What it printed."""
        done = subprocess.run(
            [*map(str, command)], cwd=self.folder, user=user, group=user, extra_groups=None if user is None else [],
            env={**_environment(), **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise Failed(f"{command[0]}: status {done.returncode}: {(done.stderr or done.stdout)[-500:]}")
        return done.stdout

    def start(
        self,
        *command: object,
        ready: str = "",
        user: int | None = None,
        groups: Iterable[Path] = (),
        end: signal.Signals = signal.SIGTERM,
        environment: Mapping[str, str] = NOTHING,
    ) -> subprocess.Popen[bytes]:
        """Starts a command; returns when it has said ``ready``. ``groups`` are control groups that it joins,
        ``end`` is the signal that ends it."""
        log = self.folder / f"log-{len(self._started)}"
        joined = [group / "cgroup.procs" for group in groups]
        libc = ctypes.CDLL(None)

        def in_child() -> None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            with contextlib.suppress(PermissionError):
                os.nice(-os.nice(0))  # what is traced has to get its share of the cores
            for procs in joined:
                procs.write_text("0")
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)

        with log.open("wb") as said:
            process = subprocess.Popen(
                [*map(str, command)], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=said,
                stderr=said, env={**_environment(), **environment}, start_new_session=True,
                preexec_fn=in_child,  # noqa: PLW1509  # it only sets what is the process's own
            )  # fmt: skip
        self._started.append((process, end))

        def said_so() -> bool:
            if process.poll() is not None and process.returncode:
                raise Failed(f"{command[0]}: status {process.returncode}: {log.read_text(errors='replace')[-800:]}")
            return ready in log.read_text(errors="replace")

        self.until(said_so, f"{command[0]} says {ready!r}")
        return process

    def python(
        self, script: str, *arguments: object, groups: Iterable[Path] = (), environment: Mapping[str, str] = NOTHING
    ) -> int:
        """Starts a Python program of ours, which says when it is ready. Its id."""
        command = [PYTHON, self.program(script), *arguments]
        return self.start(*command, ready="ready", groups=groups, environment=environment).pid

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Returns when this is so."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise Failed(f"not within {PATIENCE:.0f} s: {what}")
            time.sleep(0.05)

    def listening(self, address: int | Path) -> None:
        """Returns when something listens on this port of this host, or on this socket."""

        def connects() -> bool:
            with socket.socket(socket.AF_INET if isinstance(address, int) else socket.AF_UNIX) as client:
                client.settimeout(1)
                return not client.connect_ex(("127.0.0.1", address) if isinstance(address, int) else str(address))

        self.until(connects, f"something listens on {address}")

    def port(self) -> int:
        """Free now."""
        with socket.socket() as asked:
            asked.bind(("127.0.0.1", 0))
            number: int = asked.getsockname()[1]
        return number

    def tree(self, pid: int, least: int = 1) -> list[int]:
        """A process and those that it has started, when these are so many."""
        self.until(lambda: len(_tree(pid)) >= least, f"{pid} has {least - 1} children")
        return _tree(pid)

    def slow_disk(self, accesses: int = 200, *, access: str = "write") -> Path:
        """A control group that may access the disk of the folder so many times a second."""
        device = self.folder.stat().st_dev
        limit = f"{os.major(device)}:{os.minor(device)} {accesses}"
        return self.group("blkio", **{f"throttle.{access}_iops_device": limit})

    def group(self, controller: str, **limits: object) -> Path:
        """A control group with these limits: ``cfs_quota_us=20000`` of ``cpu``."""
        group = _mount_of(controller) / f"job-{os.getpid()}"
        group.mkdir()
        self._groups.append(group)
        for name, value in limits.items():
            (group / f"{controller}.{name}").write_text(str(value))
        return group


def _environment() -> dict[str, str]:
    """Nothing of the caller's shows in what is traced."""
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/srv"}


def _tree(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, task.read_text().split())
    return found


def _mount_of(controller: str) -> Path:
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup" and controller in options.split(","):
            return Path(mount)
    raise Failed(f"no hierarchy of control groups (version 1) has {controller}: mount one")


def _remove(group: Path) -> None:
    """Removes a group whose processes were ended, and are not gone at once."""
    deadline = time.monotonic() + _END
    while group.exists():
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
