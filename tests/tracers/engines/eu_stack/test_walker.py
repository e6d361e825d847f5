from __future__ import annotations

import builtins
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stallscope.converters.base import helpers
from stallscope.tracers.base import privilege, procfs
from stallscope.tracers.engines.eu_stack import walker
from stallscope.tracers.engines.eu_stack.looks import Look, look
from stallscope.tracers.engines.eu_stack.walker import Walker, find_eu_stack
from stallscope.tracers.engines.protocol import EngineUnavailable

PATIENCE = 30
Fake = Callable[[str], Path]
Sleeper = subprocess.Popen[bytes]
HOLD = """
import sys
from stallscope.tracers.engines.eu_stack.looks import Look, look
from stallscope.tracers.engines.eu_stack.walker import Walker
print("ready", flush=True)
Walker(sys.argv[1]).walk(int(sys.argv[2]))
"""


@pytest.fixture
def eu_stack(require: Callable[[bool, str], None]) -> str:
    """The real one."""
    found = shutil.which("eu-stack")
    require(found is not None, "there is no eu-stack")
    return str(found)


def said(*lines: str) -> str:
    return "cat <<'end'\n" + "\n".join(lines) + "\nend"


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_stacks(fake_eu_stack: Fake, sleeper: Sleeper) -> None:
    pid = sleeper.pid
    frames = "#0  0x0000000000001234 a", "#1  0x0000000000001235 main"
    text = said(f"PID {pid} - process", f"TID {pid}:", *frames, "TID 7:")
    walk = Walker(str(fake_eu_stack(text))).walk(pid)
    assert {tid: [frame.name for frame in stack] for tid, stack in walk.stacks.items()} == {pid: ["main", "a"]}
    assert walk.problem == ""
    assert walk.seconds > 0


def test_one_thread(fake_eu_stack: Fake, sleeper: Sleeper) -> None:
    walk = Walker(str(fake_eu_stack("echo $* >&2; exit 1"))).walk(sleeper.pid, only=sleeper.pid)
    assert walk.problem == f"-1 -p {sleeper.pid} -m"


def test_something_is_done_meanwhile(fake_eu_stack: Fake, sleeper: Sleeper) -> None:
    calls: list[float] = []
    Walker(str(fake_eu_stack("sleep 0.5"))).walk(sleeper.pid, lambda: calls.append(time.monotonic()))
    assert len(calls) > 5


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 'eu-stack: no \x1b[1mpermission' >&2; exit 2", "eu-stack: no \\x1b[1mpermission"),
        ("exit 2", "it ended with status 2"),
        ("kill -9 $$", "it was ended by signal 9"),
    ],
)
def test_failures(script: str, problem: str, fake_eu_stack: Fake, sleeper: Sleeper) -> None:
    assert Walker(str(fake_eu_stack(script))).walk(sleeper.pid).problem == problem


def test_a_process_is_not_left_stopped(fake_eu_stack: Fake, sleeper: Sleeper) -> None:
    path = fake_eu_stack("kill -STOP $2; kill -9 $$")
    Walker(str(path)).walk(sleeper.pid)
    wait_for(lambda: procfs.state(sleeper.pid) == "S")


def test_one_that_the_user_had_stopped_stays_so(fake_eu_stack: Fake, sleeper: Sleeper) -> None:
    sleeper.send_signal(signal.SIGSTOP)
    wait_for(lambda: procfs.state(sleeper.pid) == "T")
    Walker(str(fake_eu_stack("kill -9 $$"))).walk(sleeper.pid)
    assert procfs.state(sleeper.pid) == "T"


def test_one_that_hangs_is_given_up(fake_eu_stack: Fake, sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walker, "_PATIENCE", 0.1)
    walk = Walker(str(fake_eu_stack("kill -STOP $2; exec sleep 60"))).walk(sleeper.pid)
    assert walk.given_up
    wait_for(lambda: procfs.state(sleeper.pid) == "S")


def test_it_ends_by_itself_when_we_are_killed(fake_eu_stack: Fake, sleeper: Sleeper, tmp_path: Path) -> None:
    """The program may be holding a thread by then."""
    path = fake_eu_stack(f"echo > {tmp_path}/began; sleep 1; echo text; echo > {tmp_path}/ended")
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path), str(sleeper.pid)], start_new_session=True) as ours:
        wait_for((tmp_path / "began").exists)
        ours.kill()
    assert not (tmp_path / "ended").exists()
    wait_for((tmp_path / "ended").exists)


def test_where_a_thread_is(eu_stack: str, sleeper: Sleeper) -> None:
    wait_for(lambda: procfs.state(sleeper.pid) == "S")
    one = Walker(eu_stack)
    walk = one.walk(sleeper.pid)
    assert walk.letters == {sleeper.pid: "S"}
    assert "sleep" in walk.stacks[sleeper.pid][-1].name
    assert list(walk.stopped) == [sleeper.pid]


def test_modules_are_asked_for(eu_stack: str, sleeper: Sleeper) -> None:
    """Functions of libraries are taken for the program's without modules."""
    (stack,) = Walker(eu_stack).walk(sleeper.pid).stacks.values()
    assert all(frame.module for frame in stack)
    assert "/libc" in str(stack[-1].module and stack[-1].module.path)


def test_states_are_those_at_the_stacks(fake_eu_stack: Fake, sleeper: Sleeper) -> None:
    wait_for(lambda: look(sleeper.pid, sleeper.pid).number >= 0)
    address = look(sleeper.pid, sleeper.pid).address
    for at, letter in ((address, "S"), (0x1234, "R")):
        path = str(fake_eu_stack(said(f"TID {sleeper.pid}:", f"#0  0x{at:016x} f")))
        assert Walker(path).walk(sleeper.pid).letters == {sleeper.pid: letter}


def test_how_long_threads_were_held(
    fake_eu_stack: Fake, sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Threads that are not watched count like the others. What is seen of a thread that is held is not its state."""
    monkeypatch.setattr(walker, "_WATCHED", 2)
    monkeypatch.setattr(procfs, "tids", lambda _pid: [1, 2, 3])
    monkeypatch.setattr(random, "sample", lambda numbers, _: [1, 0])
    enough = tmp_path / "enough"
    waits = f"until [ -e {enough} ]; do sleep 0.01; done\n"
    path = fake_eu_stack(waits + said("TID 2:", "#0  0x0000000000001234 f"))
    looks: Counter[int] = Counter()

    def seen(_pid: int, tid: int) -> Look:
        looks[tid] += 1
        if looks[2] == 100:
            enough.touch()
        held = tid == 2 and looks[tid] > 10
        return Look("t", is_traced=True) if held else Look("S", number=230, address=0x1234)

    monkeypatch.setattr(walker, "look", seen)
    walk = Walker(str(path)).walk(sleeper.pid)
    assert 89 * walker._TICK <= walk.stopped[2] <= walk.seconds
    assert walk.stopped[1] == 0
    assert walk.stopped[3] == pytest.approx(walk.stopped[2] / 2)
    assert walk.letters == {2: "S"}


def test_it_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(helpers, "FOLDERS", (str(tmp_path),))
    with pytest.raises(EngineUnavailable, match="there is no eu-stack") as raised:
        find_eu_stack()
    assert "elfutils" in raised.value.remedy


@pytest.mark.parametrize(("level", "capable", "refused"), [("0", False, False), ("1", False, True), ("1", True, False)])
def test_yama(level: str, capable: bool, refused: bool, fake_eu_stack: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_eu_stack("")
    monkeypatch.setattr(privilege, "may_trace", lambda: capable)

    def opened(name: str, *_: Any) -> io.StringIO:
        assert name == "/proc/sys/kernel/yama/ptrace_scope"
        return io.StringIO(level)

    monkeypatch.setattr(builtins, "open", opened)
    if not refused:
        assert find_eu_stack() == str(path)
        return
    with pytest.raises(EngineUnavailable, match="ptrace_scope is 1"):
        find_eu_stack()


def test_a_kernel_without_times_of_threads(fake_eu_stack: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_eu_stack("")
    monkeypatch.setattr(walker, "_SCHEDSTAT", "/no/such")
    with pytest.raises(EngineUnavailable, match="no schedstat"):
        find_eu_stack()


def test_it_is_the_user_of_the_process(root: None) -> None:
    """The user has no capability; but it is us, where the kernel would not let that user look at it."""
    hidden = "import ctypes, time; ctypes.CDLL(None).prctl(4, 0); print(1, flush=True); time.sleep(60)"
    commands = (["/bin/sh", "-c", "echo 1; exec sleep 60"], 65534), (["/usr/bin/python3", "-c", hidden], 0)
    for command, expected in commands:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, user=65534, group=65534, extra_groups=[65533]
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            found = walker.rights_for(process.pid)
            process.kill()
        assert (found.uid, found.groups) == ((expected, (65533,)) if expected else (-1, ()))
    assert walker.rights_for(1) == walker.helpers.OURS
    assert walker.rights_for(1 << 22) == walker.helpers.OURS


def test_it_asks_no_server(fake_eu_stack: Fake, sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1")
    walk = Walker(str(fake_eu_stack("env | grep -c DEBUGINFOD >&2; exit 1"))).walk(sleeper.pid)
    assert walk.problem == "0"


def test_one_that_hangs_when_the_trace_is_to_end(
    fake_eu_stack: Fake, sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walker, "_HURRY", 0.1)
    one = Walker(str(fake_eu_stack("kill -STOP $2; exec sleep 60")))
    one.is_over = lambda: True
    assert one.walk(sleeper.pid).given_up
    one.close()
    wait_for(lambda: procfs.state(sleeper.pid) == "S")


def test_one_that_its_user_stops(fake_eu_stack: Fake, sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program has that user's id: he can send it signals. No time is waited for."""
    monkeypatch.setattr(walker, "_PATIENCE", 1e6)
    one = Walker(str(fake_eu_stack("kill -STOP $2 $$; exec sleep 1e6")))
    assert one.walk(sleeper.pid).given_up
    one.close()
    wait_for(lambda: procfs.state(sleeper.pid) == "S")


def test_one_that_hangs_at_the_end_of_the_trace(
    fake_eu_stack: Fake, sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walker, "_PATIENCE", 1e6)
    monkeypatch.setattr(walker, "_GRACE", 0.1)
    one = Walker(str(fake_eu_stack("exec sleep 1e6")))
    one.until = time.monotonic()
    assert one.walk(sleeper.pid).given_up


def test_nobody_makes_its_output_larger() -> None:
    """The user of the process can open it by /proc/PID/fd."""
    fd = walker._memory("stacks", 4096)
    try:
        with open(f"/proc/self/fd/{fd}", "r+b", buffering=0) as file:
            file.write(bytes(4096))
            with pytest.raises(PermissionError):
                file.write(b"more")
            with pytest.raises(PermissionError):
                file.truncate(8192)
        with pytest.raises(PermissionError):
            os.truncate(f"/proc/self/fd/{fd}", 0)
        assert os.fstat(fd).st_size == 4096
        assert walker._written(fd) == b"", "what others have written is not read, either"
        os.write(fd, b"text")
        assert walker._written(fd) == b"text"
    finally:
        os.close(fd)


def test_more_than_there_may_be(fake_eu_stack: Fake, sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames that fit are read, and eu-stack does not wait."""
    monkeypatch.setattr(walker, "_LARGEST", 1 << 16)
    frames = "yes '#0  0x0000000000001234 a' | head -c 1000000"
    walk = Walker(str(fake_eu_stack(f"echo TID {sleeper.pid}:; {frames} 2>/dev/null"))).walk(sleeper.pid)
    assert len(walk.stacks[sleeper.pid]) == walker._DEEPEST
    assert not walk.given_up


def test_threads_of_others(fake_eu_stack: Fake, sleeper: Sleeper) -> None:
    """A user who writes into its output forges stacks of his own process alone."""
    lines = (line for tid in (1, sleeper.pid, os.getpid()) for line in (f"TID {tid}:", "#0  0x0000000000001234 forged"))
    assert list(Walker(str(fake_eu_stack(said(*lines)))).walk(sleeper.pid).stacks) == [sleeper.pid]
