"""Traces with the capabilities that docs/privileges.md names, without one of them, and what a trace gives up."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import NOBODY, Tracer, environment, load, open_folder_of
from stallscope.tracers.base.capabilities import AFTERWARDS, DURING, held, mask

pytestmark = pytest.mark.usefixtures("live")

BIN = Path(sys.executable).parent
UNIT = Path(__file__).parents[2] / "scripts/systemd/stallscope@.service"
OF_THE_UNIT = re.findall(r"^AmbientCapabilities=(.*)$", UNIT.read_text(), re.MULTILINE)[0].lower().split()
FEW = [name.removeprefix("cap_") for name in OF_THE_UNIT]
UNREADABLE = """import time
def rest():
    time.sleep(0.005)
while True: rest()"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Folder of the user who traces."""
    with open_folder_of(NOBODY) as found:
        yield found


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[int]:
    """A process of root, in whose folder others cannot look."""
    program = tmp_path / "unreadable"
    shutil.copy(os.path.realpath("/usr/bin/python3"), program)
    program.chmod(0o700)
    with subprocess.Popen([program, "-c", UNREADABLE]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


TRACEFS = 'mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"'
"""Script that mounts tracefs where it is missing, as docs/privileges.md asks for, and then runs a command."""


def with_only(names: list[str], folder: Path, *command: object) -> subprocess.CompletedProcess[str]:
    """Runs a command as a user who has these capabilities, as the unit does; what it prints never has a traceback.

    tracefs is mounted there, in a mount namespace of its own: hosts have it, but not each new machine."""
    words = ",".join(["-all", *(f"+{name}" for name in names)])
    user = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs")
    capabilities = ("--inh-caps", words, "--ambient-caps", words, "--bounding-set", words)
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", TRACEFS, "sh", "setpriv", *user, *capabilities, "--", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**environment(), "STALLSCOPE_CACHE": str(folder / "cache")},
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stdout
    return done


def without(*names: str) -> list[str]:
    return [name for name in FEW if name not in names]


COMMANDS = {
    "offcpu": (),
    "oncpu": (),
    "wall": (),
    "wakeup": (),
    "ioctl": (),
    "cuda": ("--lib", "libc.so.6", "--sym", "clock_nanosleep"),
    "func": ("libc.so.6:clock_nanosleep",),
    "offcpu bcc": ("--engine", "bcc"),
    "wall eu-stack": ("--engine", "eu-stack"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_with_the_few(name: str, folder: Path, roots: int) -> None:
    command = BIN / f"trace-{name.partition(' ')[0]}"
    done = with_only(FEW, folder, command, *COMMANDS[name], "-p", roots, "-d", "0.5", "-o", "x.pb.gz")
    assert done.returncode == 0, done.stdout
    assert load(folder / "x.pb.gz").samples or name == "ioctl"


def test_perf_needs_one_more(folder: Path, roots: int, require: Callable[[bool, str], None]) -> None:
    require(shutil.which("perf") is not None, "there is no perf")
    command = (BIN / "trace-offcpu", "--engine", "perf", "-p", roots, "-d", "0.5", "-o", "x.pb.gz")
    done = with_only([*FEW, "ipc_lock"], folder, *command)
    assert done.returncode == 0, done.stdout


def stacks(names: list[str], folder: Path, pid: int) -> str:
    done = with_only(names, folder, BIN / "trace-offcpu", "-p", pid, "-d", "0.5", "-o", "x.folded", "--force")
    assert done.returncode == 0, done.stdout
    return done.stdout + (folder / "x.folded").read_text()


def test_what_each_is_for(folder: Path, roots: int, require: Callable[[bool, str], None]) -> None:
    """A trace without one of them says what is missing, and never ends in a traceback."""
    whole = stacks(FEW, folder, roots)
    assert "rest" in whole
    assert "do_nanosleep_[k]" in whole
    unread = stacks(without("dac_read_search"), folder, roots)
    assert "1 file not opened while they were mapped" in unread
    assert "rest;" not in stacks(without("sys_ptrace"), folder, roots)
    require(int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) > 1, "all users see the kernel's symbols")
    unnamed = stacks(without("syslog"), folder, roots)
    assert "do_nanosleep" not in unnamed
    assert "in [kernel.kallsyms]" in unnamed


@pytest.mark.parametrize("name", ["bpf", "perfmon"])
def test_what_nothing_can_do_without(name: str, folder: Path) -> None:
    done = with_only(without(name), folder, BIN / "trace-offcpu", "-a", "-d", "0.5", "-o", "x.folded")
    assert done.returncode == 1
    assert f"this user lacks CAP_{name.upper()}" in done.stdout
    assert "`sudo trace-offcpu …`" in done.stdout
    assert "docs/privileges.md" in done.stdout


def test_the_doctor_tells_the_cost(folder: Path) -> None:
    assert re.search(r"^ok +privilege", with_only(FEW, folder, BIN / "trace-doctor").stdout, re.MULTILINE)
    told = with_only(without("syslog"), folder, BIN / "trace-doctor").stdout
    assert re.search(
        r"^no +CAP_SYSLOG: not there: .*names.*\n +mend: .*AmbientCapabilities=CAP_SYSLOG", told, re.MULTILINE
    )


@pytest.mark.parametrize("engine", ["libbpf", "bcc"])
def test_a_live_trace_has_given_up_the_rest(engine: str, tmp_path: Path) -> None:
    """The command that it starts has its user's own rights."""
    ours = held()
    script = "grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status; sleep 60"
    with Tracer("--engine", engine, "-o", tmp_path / "x.folded", "--", "sh", "-c", script) as tracer:
        tracer.ready()
        until, found = time.monotonic() + 20, {}
        while found.get("NoNewPrivs") != "1" and time.monotonic() < until:
            lines = Path(f"/proc/{tracer.pid}/status").read_text().splitlines()
            found = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
            time.sleep(0.02)
        for name, before in (("CapEff", ours.effective), ("CapPrm", ours.permitted), ("CapBnd", ours.bounding)):
            assert int(found[name], 16) == before & mask(DURING)
        tracer.interrupt()
        said = tracer.finish()
    assert re.search(rf"CapEff:\t{ours.effective:016x}\nNoNewPrivs:\t0", said.out.replace("\r", ""))
    assert mask(AFTERWARDS) < mask(DURING)


def test_the_unit(require: Callable[[bool, str], None]) -> None:
    """The tools of systemd, where there are any, know all that the unit says."""
    tool = shutil.which("systemd-analyze")
    require(tool is not None, "there is no systemd-analyze")
    done = subprocess.run(
        [str(tool), "security", "--offline=yes", "--threshold=40", str(UNIT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Unknown" not in done.stderr
    assert "Failed to parse" not in done.stderr
