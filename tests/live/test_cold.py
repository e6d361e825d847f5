"""First traces, with no unwind tables in the cache: what is waited for, for how long, and what is said of the rest."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path

import pytest
from commands import (
    PATIENCE,
    TRACE_OFFCPU,
    Finished,
    Tracer,
    alive,
    command_line,
    control_groups,
    environment,
    load,
    new_group,
    open_folder_of,
    run,
    sudo,
)
from default_signals import in_child
from runner import FOLDER, SYSTEM_PYTHON, Workload
from stallscope.converters.model import Profile
from stallscope.converters.phrases.remarks import worded
from waiting_for_tables import COMPLETE, CUT_SHORT, at_work, began, claimed, compilers, compiling, complete

pytestmark = pytest.mark.usefixtures("live")

THREADS = [SYSTEM_PYTHON, str(Path(__file__).parents[1] / "workloads" / "python_threads.py")]

Held = Callable[..., AbstractContextManager[None]]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The folder of an empty cache."""
    return tmp_path / "cache"


@pytest.fixture
def traced(cache: Path, tmp_path: Path) -> Callable[..., tuple[Finished, Profile]]:
    """A whole run of the command with that cache, and its profile."""

    def made(*arguments: object, **changes: str) -> tuple[Finished, Profile]:
        path = tmp_path / "out.pb.gz"
        options = {"STALLSCOPE_CACHE": str(cache), **changes}
        finished = run("-o", path, "--force", *arguments, **options).check_succeeded()
        return finished, load(path)

    return made


@pytest.fixture
def held(cache: Path) -> Held:
    return partial(claimed, cache)


@pytest.fixture
def workload() -> Iterator[Workload]:
    """Threads of Python at work."""
    with Workload("python_threads", 100_000, linger=True) as made:
        made.release()
        yield made


@pytest.mark.parametrize("scope", ["-p", "-t", "-n", "--cgroup"])
def test_first_trace_is_complete(
    scope: str, workload: Workload, cache: Path, traced: Callable[..., tuple[Finished, Profile]]
) -> None:
    with new_group(next(iter(control_groups().values()))) as group:
        (group / "cgroup.procs").write_text(str(workload.pid))
        aims = {"-p": workload.pid, "-t": workload.tids[1], "-n": "python_threads[.]py", "--cgroup": group}
        finished, profile = traced(scope, aims[scope], "-d", 1)
        (group.parent / "cgroup.procs").write_text(str(workload.pid))
    assert complete(profile) >= COMPLETE, worded(profile.comments)
    assert not any(CUT_SHORT in comment for comment in worded(profile.comments))
    assert any(path.suffix == ".rows" for path in cache.iterdir())
    assert not [path for path in cache.iterdir() if path.suffix != ".rows"]
    assert finished.err == ""
    # Neither the processes that compiled nor their waits are in it.
    assert not [times for times in profile.threads if times.process == "unwind tables"]


def test_the_trace_begins_when_the_tables_are_there(
    workload: Workload, cache: Path, held: Held, tmp_path: Path
) -> None:
    path = tmp_path / "out.pb.gz"
    with Tracer("-p", workload.pid, "-d", 1, "-o", path, STALLSCOPE_CACHE=str(cache)) as tracer:
        with held():
            tracer.wait_until(lambda: compiling(tracer), "it waits for the C library")
            time.sleep(1.2)  # longer than `-a` waits
            assert not began(tracer)
            released = time.monotonic_ns()
        finished = tracer.finish().check_succeeded()
    line = re.search(r"\r\x1b\[Kcompiling unwind tables: \d+ of \d+ files, libc\.so\.6 …\r", finished.tty)
    assert line
    assert finished.err == ""
    profile = load(path)
    assert profile.start_ns > time.time_ns() - (time.monotonic_ns() - released)
    assert 1_000_000_000 <= profile.duration_ns < 60_000_000_000
    assert complete(profile) >= COMPLETE, worded(profile.comments)


def test_ctrl_c_goes_on_without_waiting(workload: Workload, cache: Path, held: Held, tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    with held(), Tracer("-p", workload.pid, "-o", path, STALLSCOPE_CACHE=str(cache)) as tracer:
        tracer.wait_until(lambda: compiling(tracer), "it waits for the C library")
        tracer.interrupt()
        tracer.wait_until(lambda: began(tracer), "it traces")
        time.sleep(0.5)
        assert tracer.process.poll() is None
        finished = tracer.interrupt().finish().check_succeeded()
    profile = load(path)
    assert complete(profile) < COMPLETE
    (note,) = [comment for comment in worded(profile.comments) if CUT_SHORT in comment]
    assert note in finished.out
    assert "compile what is left (1 file) with `trace-doctor --prepare`" in note
    (share,) = re.findall(r"^>?([\d.]+) % of the time in user code is ", note)
    assert float(share) == pytest.approx(100 - complete(profile), abs=0.5)


def test_sigterm_while_it_waits_ends_it(workload: Workload, cache: Path, held: Held, tmp_path: Path) -> None:
    with held(), Tracer("-p", workload.pid, "-o", tmp_path / "out.pb.gz", STALLSCOPE_CACHE=str(cache)) as tracer:
        tracer.wait_until(lambda: compiling(tracer), "it waits for the C library")
        tracer.interrupt(signal.SIGTERM).finish().check_succeeded()


@pytest.mark.parametrize("scope", ["-p", "--"])
def test_no_wait(scope: str, workload: Workload, held: Held, traced: Callable[..., tuple[Finished, Profile]]) -> None:
    aim = ["-p", workload.pid, "-d", 1] if scope == "-p" else ["--", FOLDER / "sleeps", 20]
    with held():
        _, profile = traced("--no-wait", *aim)
    assert any(CUT_SHORT in comment for comment in worded(profile.comments))


def test_the_whole_host_is_not_waited_for(
    workload: Workload, cache: Path, held: Held, traced: Callable[..., tuple[Finished, Profile]]
) -> None:
    with held():
        _, profile = traced("-a", "-d", 2)
    (note,) = [comment for comment in worded(profile.comments) if CUT_SHORT in comment]
    assert float(note.split(" %")[0].lstrip(">")) > 1
    assert len(list(cache.glob("*.rows"))) >= 5, "what others need is compiled meanwhile"
    before = complete(profile)
    for _ in range(3):
        _, profile = traced("-a", "-d", 2)
    assert complete(profile) > before, "the first run warmed the cache"


def test_a_compiler_that_is_killed_costs_nothing(workload: Workload, cache: Path, held: Held, tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    with Tracer("-p", workload.pid, "-d", 1, "-o", path, STALLSCOPE_CACHE=str(cache)) as tracer:
        with held():
            tracer.wait_until(lambda: compiling(tracer), "it waits for the C library")
            killed = compilers(tracer.pid)
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            tracer.wait_until(lambda: bool({*compilers(tracer.pid)} - {*killed}), "another process takes over")
        tracer.finish().check_succeeded()
    assert killed
    assert complete(load(path)) >= COMPLETE, worded(load(path).comments)


def test_a_tracer_that_is_killed_leaves_no_compiler(
    workload: Workload, cache: Path, held: Held, tmp_path: Path
) -> None:
    with held(), Tracer("-p", workload.pid, "-o", tmp_path / "o.svg", STALLSCOPE_CACHE=str(cache)) as tracer:
        tracer.wait_until(lambda: compiling(tracer), "it waits for the C library")
        pids = compilers(tracer.pid)
        tracer.process.kill()
        tracer.process.wait()
    assert pids
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_tracers_at_once(workload: Workload, cache: Path, tmp_path: Path) -> None:
    paths = [tmp_path / "one.pb.gz", tmp_path / "two.pb.gz"]
    environ = environment(STALLSCOPE_CACHE=str(cache))
    command = [TRACE_OFFCPU, "-p", str(workload.pid), "-d", "1", "-o"]
    running = [subprocess.Popen([*command, str(path)], env=environ, stdout=subprocess.DEVNULL) for path in paths]
    assert [process.wait() for process in running] == [0, 0]
    for path in paths:
        assert complete(load(path)) >= COMPLETE, worded(load(path).comments)
    assert not [path for path in cache.iterdir() if path.suffix != ".rows"]


NAPS = """#include <unistd.h>
#include <pthread.h>
int __attribute__((noinline)) nap(int n) { usleep(2000); return n ? nap(n - 1) + 1 : 0; }
void *naps(void *p) { for (int i = 0; i < 100; i++) nap(5); return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, naps, 0); naps(0); pthread_join(t, 0); }
"""
SCRIPT = "import threading, time\ndef nap():\n    for _ in range(300): time.sleep(0.005)\n" + (
    "all = [threading.Thread(target=nap) for _ in range(4)]\n[t.start() for t in all]\n[t.join() for t in all]\n"
)


@pytest.fixture
def naps(require: Callable[[bool, str], None], tmp_path: Path) -> Callable[..., Path]:
    """A program of C without frame pointers."""
    require(shutil.which("gcc") is not None, "there is no gcc")

    def made(*flags: str) -> Path:
        (tmp_path / "naps.c").write_text(NAPS)
        command = ["gcc", "-O1", "-fomit-frame-pointer", "-pthread", *flags, "-o", "naps", "naps.c"]
        subprocess.run(command, check=True, cwd=tmp_path)
        return tmp_path / "naps"

    return made


@pytest.mark.parametrize("form", ["program", "script", "env", "shell", "chain", "static", "python"])
def test_first_trace_of_a_command_is_complete(
    form: str, tmp_path: Path, traced: Callable[..., tuple[Finished, Profile]], naps: Callable[..., Path]
) -> None:
    """The trace is complete, whichever way a program is begun."""
    program = naps("-static") if form == "static" else naps()
    script = tmp_path / "script"
    script.write_text(f"#!/usr/bin/env -S {SYSTEM_PYTHON} -u\n{SCRIPT}")
    script.chmod(0o755)
    command: list[object] = {
        "program": [program],
        "static": [program],
        "script": [script],
        "env": ["env", "A=1", "nice", "-n", 1, program],
        "shell": ["sh", "-c", f"{program}; true"],
        "chain": ["sh", "-c", f"exec env {program}"],
        "python": [*THREADS, 2000],
    }[form]
    finished, profile = traced("--", *command)
    assert complete(profile) >= COMPLETE, worded(profile.comments)
    assert not any(CUT_SHORT in comment for comment in worded(profile.comments))
    assert finished.err == ""


@pytest.mark.parametrize("changes", [{}, sudo()], ids=["root", "under sudo"])
def test_a_command_is_held_until_its_tables_are_there(changes: dict[str, str], cache: Path, held: Held) -> None:
    """The command does nothing before, and sees nothing of it: nobody traces it, its parent is the tracer, time is its
    own."""
    with open_folder_of() as folder:
        code = "exec grep -E '^(TracerPid|PPid|Uid|SigIgn|SigBlk):' /proc/self/status"
        script = folder / "script"
        script.write_text(f"#!/bin/sh\n{code}\n")
        script.chmod(0o755)
        options = {"STALLSCOPE_CACHE": str(cache), **changes}
        with Tracer("-o", folder / "out.pb.gz", "--", script, **options) as tracer:
            with held():
                tracer.wait_until(lambda: compiling(tracer), "it waits for the C library")
                time.sleep(0.3)
                assert tracer.process.poll() is None
                assert not began(tracer)
                tracer._out.seek(0)
                assert tracer._out.read() == b""
                pid = tracer.pid
            finished = tracer.finish().check_succeeded()
        said = dict(line.split(":\t") for line in finished.out.splitlines() if ":\t" in line)
    assert said["TracerPid"] == "0"
    assert int(said["PPid"]) == pid
    assert said["Uid"].split("\t")[0] == (changes.get("SUDO_UID") or "0")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        assert not int(said["SigIgn"], 16) & 1 << (number - 1)
    assert int(said["SigBlk"], 16) == 0


def test_ctrl_c_while_a_command_is_held_begins_it(cache: Path, held: Held, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    options = {"STALLSCOPE_CACHE": str(cache)}
    command = ["sh", "-c", f"touch {marker}; sleep 0.5; exit 3"]
    with held(), Tracer("-o", tmp_path / "out.pb.gz", "--", *command, **options) as tracer:
        tracer.wait_until(lambda: compiling(tracer), "it waits for the C library")
        assert not marker.exists()
        for task in Path(f"/proc/{tracer.pid}/task").iterdir():  # as the terminal does it: to all of the group
            for child in map(int, (task / "children").read_text().split()):
                if os.getpgid(child) == os.getpgid(tracer.pid):
                    os.kill(child, signal.SIGINT)
        tracer.interrupt()
        finished = tracer.finish()
    assert finished.status == 3  # it ended by itself
    assert marker.exists()
    assert "the command ended with status 3" in finished.out


def test_ctrl_c_without_a_terminal_ends_the_command(
    workload: Workload, cache: Path, held: Held, tmp_path: Path
) -> None:
    """Nobody was told that it begins the trace."""
    path = tmp_path / "out.pb.gz"
    with held():
        command = subprocess.Popen(
            command_line("-p", workload.pid, "-o", path),
            stderr=subprocess.PIPE,
            env=environment(STALLSCOPE_CACHE=str(cache)),
            text=True,
            preexec_fn=in_child,  # noqa: PLW1509  # it only sets signals
        )
        try:
            until = time.monotonic() + PATIENCE
            while not compilers(command.pid):
                assert time.monotonic() < until, "nothing is compiled"
                time.sleep(0.02)
            time.sleep(0.3)
            command.send_signal(signal.SIGINT)
            err = command.communicate(timeout=PATIENCE)[1]
        finally:
            command.kill()
            command.wait()
    cause, remedy = err.splitlines()
    assert cause.startswith("trace-offcpu: ended by SIGINT before the trace began")
    assert "--no-wait" in remedy
    assert command.returncode == 130
    assert not path.exists()


def test_after_preparing_nothing_is_waited_for(
    workload: Workload, cache: Path, traced: Callable[..., tuple[Finished, Profile]]
) -> None:
    doctor = [str(Path(TRACE_OFFCPU).with_name("trace-doctor")), "--prepare"]
    environ = environment(STALLSCOPE_CACHE=str(cache))
    for what, number in (([str(workload.pid)], 5), ([], 10)):
        done = subprocess.run([*doctor, *what], env=environ, capture_output=True, text=True, check=True)
        summary = r"(\d+) files: (\d+) compiled, (\d+) were there already.*; [\d,]+ rows, [\d.]+ MB in \S+; [\d.]+ s"
        found = re.fullmatch(summary, done.stdout.splitlines()[0])
        assert found, done.stdout
        assert int(found[2]) + int(found[3]) >= number
        assert done.stderr == ""
        finished, profile = traced("-p", workload.pid, "-d", 1)
        assert "compiling" not in finished.tty
        assert complete(profile) >= COMPLETE, worded(profile.comments)


def test_without_a_cache_it_says_that_it_compiles_every_time(
    workload: Workload, tmp_path: Path, traced: Callable[..., tuple[Finished, Profile]]
) -> None:
    (tmp_path / "file").write_text("")
    for _ in range(2):
        _, profile = traced("-p", workload.pid, "-d", 1, STALLSCOPE_CACHE=str(tmp_path / "file" / "cache"))
        assert complete(profile) >= COMPLETE, worded(profile.comments)
        assert "unwind tables had to be compiled, and will be the next time: no cache: File exists" in worded(
            profile.comments
        )


@pytest.mark.parametrize("waits", ["since the tracer was ready", "since before"])
def test_a_thread_that_waits_for_a_core_is_walked_when_tables_come(
    waits: str, cache: Path, held: Held, tmp_path: Path
) -> None:
    """The thread never blocks, and does not run: another, of 30,000 times its weight, has its core."""
    path = tmp_path / "out.pb.gz"
    alone = ("taskset", "-c", "0")
    before = waits == "since before"
    with (
        Workload("spinner", 60_000, prefix=("chrt", "--idle", "0", *alone), linger=True) as workload,
        ExitStack() as stack,
    ):
        workload.release()
        if before:
            stack.enter_context(at_work(alone))
        arguments = ["--no-wait", "-v", "-p", workload.pid, "-d", 4, "-o", path]
        with Tracer(*arguments, STALLSCOPE_CACHE=str(cache)) as tracer:
            with held(FOLDER / "spinner"):
                tracer.ready()
                if not before:
                    stack.enter_context(at_work(alone))
                time.sleep(1)
            finished = tracer.finish().check_succeeded()
    (again,) = re.findall(r"user stacks walked again while their threads waited: ([\d,]+)", finished.err)
    assert int(again) > 0
    found = [sample for sample in load(path).samples if sample.label("tid") == workload.pid]
    assert {sample.label("state") for sample in found} == {"runnable-preempted"}
    longest = max(found, key=lambda sample: sample.values[0])
    assert "main" in [frame.name for frame in longest.stack]
