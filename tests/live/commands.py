"""trace-offcpu, or another command, as a user runs it: a process of its own with a terminal for standard error."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import platform
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import tty
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from default_signals import in_child
from runner import FOLDER, Workload
from stallscope.converters import pprof
from stallscope.converters.model import Profile
from tracing import Traced

TRACE_OFFCPU = str(Path(sys.executable).with_name("trace-offcpu"))
PATIENCE = 90.0
"""Seconds after which a process that did not do what it should has failed."""
NOBODY = 65534

_PROGRESS = re.compile(r"\r\x1b\[K(?:(?:adding up|compiling|naming|reading|tracing|waiting|writing) [^\r\n]*)?")
_BPF_PROG_GET_FD_BY_ID = 13  # include/uapi/linux/bpf.h, enum bpf_cmd
_SYS_BPF = {"x86_64": 321, "aarch64": 280}


@dataclass
class Finished:
    """A run of the command that has ended. ``tty`` is what its terminal got, ``err`` the same without the progress."""

    status: int
    out: str
    tty: str

    @property
    def err(self) -> str:
        return _PROGRESS.sub("", self.tty)

    @property
    def summary(self) -> dict[str, Any]:
        """Object that --json printed."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    def check_failed(self, status: int = 1, program: str = "trace-offcpu") -> tuple[str, str]:
        """Cause and remedy, which are all that was said."""
        assert "Traceback" not in self.err
        assert self.status == status, (self.out, self.err)
        cause, remedy = self.err.splitlines()
        prefix = f"{program}: "
        assert cause.startswith(prefix)
        assert "internal error" not in cause
        assert remedy.strip()
        return cause.removeprefix(prefix), remedy

    def check_succeeded(self) -> Finished:
        assert "Traceback" not in self.err
        assert self.status == 0, self.err
        return self


def environment(**changes: str) -> dict[str, str]:
    """Environment of ours, as no sudo changed it and with a capable terminal."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SUDO_", "STALLSCOPE_"))}
    return {**kept, "TERM": "xterm", "LC_ALL": "C.UTF-8", **changes}


def sudo(uid: int = NOBODY, gid: int = NOBODY) -> dict[str, str]:
    """Variables that sudo leaves in the environment of a command that this user runs as root."""
    return {"SUDO_UID": str(uid), "SUDO_GID": str(gid), "SUDO_USER": "somebody"}


def command_line(*arguments: object) -> list[str]:
    return [TRACE_OFFCPU, *map(str, arguments)]


class Tracer:
    """A running tracer. A context manager: on the way out the process is gone, whatever happened."""

    def __init__(
        self,
        *arguments: object,
        cwd: Path | None = None,
        prefix: tuple[str, ...] = (),
        columns: int = 0,
        command: str = TRACE_OFFCPU,
        **changes: str,
    ) -> None:
        """``prefix`` comes before ``command``, ``changes`` go into its environment. With ``columns``, the width of its
        terminal, standard output goes there too."""
        self._out = tempfile.TemporaryFile()  # noqa: SIM115  # closed in __exit__
        self._tty = bytearray()
        self._master, slave = pty.openpty()
        tty.setraw(slave)  # no \r before \n
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self.process = subprocess.Popen(
            [*prefix, command, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=slave if columns else self._out,
            stderr=slave,
            cwd=cwd,
            env=environment(**changes),
            preexec_fn=in_child,  # noqa: PLW1509  # it only sets signals
        )
        os.close(slave)

    @property
    def pid(self) -> int:
        return self.process.pid

    def _read_tty(self, timeout: float) -> bool:
        """Whether anything came from the terminal within ``timeout`` seconds."""
        if not select.select([self._master], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # everybody has closed it
            data = b""
        self._tty += data
        return bool(data)

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Reads its terminal until ``condition`` holds."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}; it said {self._said!r}"
            self._read_tty(0.02)

    @property
    def _said(self) -> str:
        return _PROGRESS.sub("", self._tty.decode())[-1000:]

    def ready(self) -> Tracer:
        """Returns when every thread in its scope has been taken in, as the first progress shows."""
        self.wait_until(lambda: b"tracing " in self._tty or self.process.poll() is not None, "progress")
        assert self.process.poll() is None, self._said
        return self

    def interrupt(self, number: int = signal.SIGINT) -> Tracer:
        self.process.send_signal(number)
        return self

    def finish(self) -> Finished:
        """Waits for its end."""
        self.wait_until(lambda: self.process.poll() is not None, "the end of the tracer")
        while self._read_tty(0):
            pass
        self._out.seek(0)
        return Finished(self.process.returncode, self._out.read().decode(), self._tty.decode())

    def __enter__(self) -> Tracer:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._out.close()
        os.close(self._master)


def run(*arguments: object, **options: Any) -> Finished:
    """The command from its start to its end."""
    with Tracer(*arguments, **options) as tracer:
        return tracer.finish()


def traced_run(workload: Workload, tracer: Tracer) -> tuple[Finished, dict[str, Any]]:
    """Lets a workload that lingers begin when the trace has begun; the trace ends because the workload does."""
    tracer.ready()
    workload.release()
    truth = workload.truth()
    workload.finish()
    return tracer.finish().check_succeeded(), truth


def load(path: Path) -> Profile:
    """The profile in a .pb.gz file."""
    with path.open("rb") as file:
        return pprof.load(file)


@contextlib.contextmanager
def together(engines: dict[str, tuple[object, ...]], folder: Path, *scope: object) -> Iterator[dict[str, Profile]]:
    """Traces with all of them at the same time, from when every one is ready until the caller has come back."""
    with contextlib.ExitStack() as stack:
        tracers = {}
        for engine, options in engines.items():
            path = folder / f"{engine}.pb.gz"
            arguments = (*scope, "--engine", engine, *options, "-o", path)
            tracers[path] = stack.enter_context(
                Tracer(*arguments, command=str(Path(sys.executable).with_name("trace-wall")))
            )
        for tracer in tracers.values():
            tracer.ready()
        found: dict[str, Profile] = {}
        yield found
        for tracer in tracers.values():
            tracer.interrupt()
        for path, tracer in tracers.items():
            tracer.finish().check_succeeded()
            found[path.name.partition(".")[0]] = load(path)


def check_counts(traced: Traced, truth: dict[str, Any] | None = None) -> None:
    """Every wait of the truth was counted, and none twice."""
    for wait in (truth or traced.truth)["waits"]:
        assert wait["blocks"]
        assert traced.blocks(wait["function"], wait["tid"]) == wait["blocks"], wait


def command_truth(out: str) -> dict[str, Any]:
    """Truth that a workload which ran as ``-- COMMAND`` told on the standard output that it shared with the tracer."""
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    (truth,) = [line for line in lines if "waits" in line]
    found: dict[str, Any] = truth
    return found


def folded(text: str) -> dict[str, int]:
    """Stack → microseconds; every line must be one."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        assert stack
        assert re.fullmatch(r"[1-9]\d*", weight), line
        assert stack not in found
        found[stack] = int(weight)
    return found


@contextlib.contextmanager
def open_folder_of(owner: int = NOBODY) -> Iterator[Path]:
    """A folder that ``owner`` owns and can reach."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        os.chown(folder, owner, owner)
        yield folder


def unique_copy(name: str, folder: Path) -> Path:
    """A workload under a name that no other process has, at most 15 bytes as the kernel keeps them."""
    source = FOLDER / name
    copy = folder / f"w{os.getpid()}x{time.monotonic_ns() % 10**6}"
    copy.write_bytes(source.read_bytes())
    copy.chmod(0o755)
    return copy


def program_ids(pid: int) -> set[int]:
    """The BPF programs that a process holds."""
    found = set()
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            found |= {int(number) for number in re.findall(r"^prog_id:\s*(\d+)", path.read_text(), re.MULTILINE)}
    return found


def program_exists(number: int) -> bool:
    """Whether the kernel still has this BPF program."""
    attributes = ctypes.create_string_buffer(128)
    ctypes.memmove(attributes, number.to_bytes(4, sys.byteorder), 4)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(_SYS_BPF[platform.machine()], _BPF_PROG_GET_FD_BY_ID, attributes, len(attributes))
    if fd < 0:
        assert ctypes.get_errno() == 2, os.strerror(ctypes.get_errno())  # ENOENT
        return False
    os.close(fd)
    return True


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def control_groups() -> dict[str, Path]:
    """Mount points of control groups, by version: all of version 2, and one of version 1 that no rule guards."""
    found = {}
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup2":
            found["v2"] = Path(mount)
        elif kind == "cgroup" and {"pids", "freezer"} & set(options.split(",")):
            found["v1"] = Path(mount)
    return found


@contextlib.contextmanager
def new_group(parent: Path) -> Iterator[Path]:
    """A control group in ``parent``, removed with the one ``below`` when their processes are gone."""
    group = parent / f"stallscope-{os.getpid()}-{time.monotonic_ns()}"
    group.mkdir()
    try:
        yield group
    finally:
        deadline = time.monotonic() + PATIENCE
        while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.01)  # its processes were killed, and are not gone at once
        for folder in (group / "below", group):
            with contextlib.suppress(FileNotFoundError):
                folder.rmdir()


def children_of(pid: int) -> tuple[list[int], list[int]]:
    """The user's command, and our helpers, each of which has a session of its own."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    commands: list[int] = []
    helpers: list[int] = []
    for child in map(int, children):
        with contextlib.suppress(ProcessLookupError):
            (helpers if os.getsid(child) == child else commands).append(child)
    return commands, helpers
