"""Other programs, as all of this project starts them."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stallscope.converters.base import helpers
from stallscope.converters.base.helpers import NOBODY, OURS, Limits, Rights, find_program, python_module, run, start

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
STARTS = re.compile(
    r"\bsubprocess\.(?!Popen\[)\w+\(|\bPopen\(|\bos\.(?:fork|forkpty|system|popen|exec\w+|posix_spawn\w*|spawn\w+)\("
    r"|\bmultiprocessing\.|\bpty\.|\basyncio\.create_subprocess|\bpopen\("
)
EXCEPTIONS = {
    "converters/base/confining.py": "executes what `start` was given, with fewer rights",
    "converters/base/helpers.py": "the function itself",
    "converters/base/starting.py": "this process again, which then reads no variables of Python's",
    "converters/readers/parallel.py": "copies of this process, which read parts of one file",
    "tracers/command/live_screen.py": "a copy of this process, which has the terminal and knows only what is shown",
    "tracers/base/launch.py": "the user's own command, with the user's rights, folder and environment",
    "tracers/engines/ebpf/intervals.py": "a copy of this process, which sets marks while it stays",
    "tracers/engines/eu_stack/continuing.py": "a copy of this process, which outlives it by a moment",
    "tracers/engines/perf/passing.py": "a copy of this process, between two pipes",
    "tracers/outside/starting.py": "what reads other processes, and what holds probes: they give up rights themselves",
    "tracers/unwind/worker.py": "a copy of this process, which gives up its rights",
    "tracers/kernel/tracefs.py": "a copy of this process, which mounts tracefs in a mount namespace of its own",
    "tracers/kernel/breakpoints.py": "a copy of this process, on which breakpoints are tried",
}
"""Modules that start processes by themselves, and why."""


@pytest.fixture
def root(require: Callable[[bool, str], None]) -> None:
    require(os.geteuid() == 0, "this needs root")


def test_nothing_else_starts_programs() -> None:
    found = {
        str(path.relative_to(ROOT))
        for room in ("converters", "tracers")
        for path in (ROOT / room).rglob("*.py")
        if STARTS.search(path.read_text())
    }
    assert found == set(EXCEPTIONS)


@pytest.mark.parametrize(
    "line",
    ["subprocess.run(x)", "subprocess.Popen(x)", "os.execvp(x)", "os.system(x)", "os.fork()"],
)
def test_what_starts_programs_is_seen(line: str) -> None:
    assert STARTS.search(line)


def test_programs_are_those_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ls").write_text("#!/bin/sh\n")
    (tmp_path / "ls").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:.:")
    monkeypatch.chdir(tmp_path)
    assert find_program("ls") == "/usr/bin/ls"
    assert find_program("no-such-program") is None
    assert find_program("../bin") is None


def test_a_program_that_others_can_replace_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: None) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(helpers, "FOLDERS", (str(tmp_path),))
    assert find_program("tool") == str(program)
    tmp_path.chmod(0o777)
    assert find_program("tool") is None
    tmp_path.chmod(0o700)
    os.chown(program, 65534, 65534)
    assert find_program("tool") is None


def test_what_a_helper_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "TMPDIR", "HOME", "DEBUGINFOD_URLS", "SUDO_USER"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        done = run(["/bin/sh", "-c", "pwd; ls /proc/$$/fd; env | sort"], seconds=30, environment={"MORE": "1"})
    folder, *rest = done.output.decode().splitlines()
    assert (folder, done.status, done.is_late) == ("/", 0, False)
    assert [line for line in rest if line.isdigit()] == ["0", "1", "2"]
    names = [line.partition("=")[0] for line in rest if not line.isdigit()]
    assert [name for name in names if name not in ("_", "PWD", "OLDPWD", "SHLVL")] == ["LC_ALL", "MORE", "PATH"]
    assert f"PATH={':'.join(helpers.FOLDERS)}" in rest


@pytest.mark.parametrize("command", [["ls"], ["./ls"], [""]])
def test_only_absolute_paths(command: list[str]) -> None:
    with pytest.raises(FileNotFoundError):
        start(command)


def test_streams_and_time_are_bounded() -> None:
    done = run(["/bin/cat"], seconds=30, data=b"x" * 100_000)
    assert done.output == b"x" * 100_000
    done = run(["/usr/bin/yes"], seconds=30, most=5000)
    assert (len(done.output), done.is_late) == (5000, False)
    assert done.status != 0
    began = time.monotonic()
    done = run(["/bin/sh", "-c", "echo begun; sleep 600 & wait"], seconds=0.2)
    assert (done.output, done.is_late, done.status) == (b"begun\n", True, -9)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("rights", [OURS, NOBODY])
def test_limits(rights: Rights) -> None:
    limits = Limits(memory=1 << 32, seconds=77, files=55)
    done = run(["/bin/cat", "/proc/self/limits"], seconds=30, rights=rights, limits=limits, most=1 << 16)
    found = {row[:25].strip(): row[25:].split()[0] for row in done.output.decode().splitlines()}
    names = "Max address space", "Max cpu time", "Max open files", "Max file size", "Max core file size"
    if rights == NOBODY:  # else they are set when it has begun, and may be read before
        assert [found[name] for name in names] == [str(1 << 32), "77", "55", str(1 << 16), "0"]
    assert done.status == 0


@pytest.mark.parametrize("has_setpriv", [True, False])
def test_nobody_has_no_rights(has_setpriv: bool, monkeypatch: pytest.MonkeyPatch, root: None) -> None:
    if not has_setpriv:
        monkeypatch.setattr(helpers, "_util_linux", lambda name: None)
    done = run(["/bin/cat", "/proc/self/status"], seconds=30, rights=NOBODY)
    status = dict(line.split(":\t", 1) for line in done.output.decode().splitlines() if ":\t" in line)
    assert status["Uid"].split() == status["Gid"].split() == ["65534"] * 4
    assert status["Groups"].split() == []
    assert [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")] == [0] * 5
    assert status["NoNewPrivs"] == "1"
    if helpers._own_namespaces() or not has_setpriv:
        spaces = run(["/usr/bin/readlink", "/proc/self/ns/net", "/proc/self/ns/ipc"], seconds=30, rights=NOBODY)
        ours = [os.readlink(f"/proc/self/ns/{name}") for name in ("net", "ipc")]
        assert not set(ours) & set(spaces.output.decode().split())


_STARTS = """
import os, sys, time
from stallscope.converters.base import helpers
if sys.argv[1] == "0":
    helpers._util_linux = lambda name: None
rights = helpers.Rights(65534, 65534, keeps=("syslog",)) if sys.argv[1] == "2" else helpers.NOBODY
process = helpers.start(["/bin/cat", sys.argv[2]], rights=rights, stdout=sys.stdout.fileno())
print(process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("how", ["without setpriv", "without rights", "with one right"])
def test_what_has_other_rights_ends_with_us(how: str, open_path: Path, root: None) -> None:
    """A program ends even where it waits for a file that nobody ever opens at the other end."""
    os.mkfifo(open_path / "fifo", 0o644)
    number = ["without setpriv", "without rights", "with one right"].index(how)
    command = [sys.executable, "-c", _STARTS, str(number), str(open_path / "fifo")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as ours:
        assert ours.stdout
        pid = int(ours.stdout.readline())
        try:
            until = time.monotonic() + 30
            while Path(f"/proc/{pid}/comm").read_text() != "cat\n" and time.monotonic() < until:
                time.sleep(0.01)
            ours.kill()
            # It has standard output, which ends with it.
            assert select.select([ours.stdout], [], [], 30)[0]
            assert ours.stdout.read() == b""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_an_old_setpriv(monkeypatch: pytest.MonkeyPatch, root: None) -> None:
    """An old setpriv cannot end what it executes with us; all else it does."""
    helpers._ends_with_us.cache_clear()
    real = subprocess.Popen

    def refuse(command: list[str], **rest: Any) -> subprocess.Popen[bytes]:
        return real(["/bin/false"] if "--pdeathsig=KILL" in command else command, **rest)

    monkeypatch.setattr(subprocess, "Popen", refuse)
    done = run(["/bin/cat", "/proc/self/status"], seconds=30, rights=NOBODY)
    helpers._ends_with_us.cache_clear()
    assert b"\nUid:\t65534\t65534\t65534\t65534\n" in done.output


def test_some_rights_stay(root: None) -> None:
    rights = Rights(65534, 65534, keeps=("dac_read_search",), groups=(7, 8), has_network=True)
    done = run(["/bin/cat", "/proc/self/status", "/etc/shadow"], seconds=30, rights=rights)
    status = dict(line.split(":\t", 1) for line in done.output.decode().splitlines() if ":\t" in line)
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {1 << 2}
    assert (status["Groups"].split(), status["NoNewPrivs"], done.status) == (["7", "8"], "1", 0)


def test_what_keeps_its_rights_does_not_run(monkeypatch: pytest.MonkeyPatch, open_path: Path, root: None) -> None:
    """Nothing runs in a container whose root may not change its user."""
    monkeypatch.setattr(helpers, "_own_namespaces", lambda: ())
    prefix = ["/usr/bin/setpriv", "--bounding-set=-setuid", "--inh-caps=-all", "--"]
    real = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **rest: real([*prefix, *command], **rest))
    done = run(["/usr/bin/touch", str(open_path / "ran")], seconds=30, rights=NOBODY)
    assert done.status != 0
    assert b"setpriv" in done.errors
    assert not (open_path / "ran").exists()


def test_modules_run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert python_module("a.b", "c")[:2] == [sys.executable, "-I"]
    monkeypatch.setattr(sys, "path", [str(Path(sys.prefix) / "lib"), "", "relative", "/no/such", "__hook__"])
    assert python_module("a.b", "c") == [sys.executable, "-I", "-m", "a.b", "c"]
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    (tmp_path / "mine.py").write_text("import sys; print(__name__, sys.argv[1:], sys.flags.isolated)")
    assert run(python_module("mine", "x"), seconds=60).output == b"__main__ ['x'] 1\n"
    if os.geteuid() == 0:
        tmp_path.chmod(0o777)
        assert python_module("a.b") == [sys.executable, "-I", "-m", "a.b"]
    for executable in ("", "python", None):
        monkeypatch.setattr(sys, "executable", executable)
        with pytest.raises(FileNotFoundError):
            python_module("a.b")


def test_a_copy_of_what_nobody_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: None) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    with path.open("rb") as file:
        path.chmod(0o644)
        assert helpers.for_nobody(file.fileno()) == file.fileno()
        path.chmod(0o600)
        copy = helpers.for_nobody(file.fileno())
        try:
            done = run(["/bin/cat", f"/proc/self/fd/{copy}"], seconds=30, rights=NOBODY, fds=[copy])
            assert done.output == b"content"
            with pytest.raises(OSError, match="not permitted"):
                os.write(copy, b"x")
        finally:
            os.close(copy)
        monkeypatch.setattr(helpers, "MOST_COPIED", 6)
        with pytest.raises(PermissionError, match="only its owner may read it"):
            helpers.for_nobody(file.fileno())


STOLEN = (
    *("json", "typing", "subprocess", "tempfile", "socket", "ctypes", "numpy", "capstone", "cxxfilt", "elftools"),
    *(
        "click",
        "resource",
        "signal",
        "stallscope",
        "sitecustomize",
        "usercustomize",
        "re",
        "struct",
        "runpy",
        "encodings",
    ),
)
TOOLS = (
    *("addr2line", "llvm-symbolizer", "perf", "dot", "c++filt", "nm", "eu-stack", "stap", "staprun", "make", "gcc"),
    *("python", "python3", "setpriv", "unshare", "prlimit", "ldconfig", "cc", "objdump", "ld", "cat", "true"),
)


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of an attacker, at the head of PATH, too. What runs in it leaves its name in `marks`."""
    folder, marks = tmp_path / "trap", tmp_path / "marks"
    folder.mkdir()
    marks.mkdir()
    marks.chmod(0o777)
    tmp_path.chmod(0o755)
    for name in STOLEN:
        (folder / f"{name}.py").write_text(f"open({str(marks / name)!r}, 'w'); raise ImportError({name!r})")
    for name in TOOLS:
        (folder / name).write_text(f"#!/bin/sh\n: > {marks / name}\nexit 1\n")
        (folder / name).chmod(0o755)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f"{folder}:.::{os.environ['PATH']}")
    return marks


COMMANDS = (
    ("trace-func", "--list", "--lib", "libc.so.6", "--symbols", "^malloc$"),
    ("trace-doctor",),
    ("trace-offcpu", "--help"),
    ("trace-convert", "--demangle", "{folded}", "-o", "{out}.svg"),
    ("trace-convert", "--inline", "{perf}", "-o", "{out}.folded"),
)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: "_".join(words[:2]))
def test_nothing_of_the_working_folder_or_path_runs(words: tuple[str, ...], trap: Path, tmp_path: Path) -> None:
    folded, perf = tmp_path / "x.folded", tmp_path / "x.perf"
    folded.write_text("main;_ZN1A1bEv 7\n")
    perf.write_text(f"python 7 1.0: 1 cycles:\n\t    1234 main+0x0 ({os.path.realpath(sys.executable)})\n\n")
    places = {"folded": folded, "perf": perf, "out": tmp_path / "out"}
    command = [str(BIN / words[0]), *(word.format(**places) for word in words[1:])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert os.listdir(trap) == [], done.stderr
    assert "Traceback" not in done.stderr


def test_the_trap_works(trap: Path) -> None:
    subprocess.run(["addr2line"], check=False)
    subprocess.run([sys.executable, "-c", "import json"], check=False, capture_output=True)
    assert {"addr2line", "json"} <= set(os.listdir(trap))


def test_helpers_do_not_read_pythons_variables(trap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stallscope.converters.names.demangle import Demangler

    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    monkeypatch.setenv("PYTHONSTARTUP", f"{os.getcwd()}/json.py")
    monkeypatch.setenv("PYTHONHOME", os.getcwd())
    monkeypatch.setenv("LD_PRELOAD", f"{os.getcwd()}/json.py")
    assert Demangler().demangle(["_Z1av"]) == {"_Z1av": "a()"}
    assert os.listdir(trap) == []
