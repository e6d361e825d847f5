"""trace-scan --watch and --when: a process of which it is known when it begins to wait for a lock."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from commands import Tracer, run
from stallscope.converters.scan import folder

pytestmark = pytest.mark.usefixtures("live")

TRACE_SCAN = str(Path(sys.executable).with_name("trace-scan"))
LOCKS = """
import sys, threading, time
lock = threading.Lock()

def hold():
    for line in sys.stdin:
        with lock:
            time.sleep(float(line))

threading.Thread(target=hold, name="holder", daemon=True).start()
print(flush=True)
while True:
    with lock:
        sum(range(20_000))
    time.sleep(0.005)
"""


class Locker:
    """Process whose main thread works; another one holds its lock for as long as it is told."""

    def __init__(self, path: Path) -> None:
        path.write_text(LOCKS)
        self.process = Popen([sys.executable, path], stdin=PIPE, stdout=PIPE, text=True)
        assert self.process.stdout
        self.process.stdout.readline()

    @property
    def pid(self) -> int:
        return self.process.pid

    def hold(self, seconds: float) -> float:
        """Returns when it begins, in seconds since the epoch."""
        assert self.process.stdin
        print(seconds, file=self.process.stdin, flush=True)
        return time.time()


@contextmanager
def locker(tmp_path: Path) -> Iterator[Locker]:
    made = Locker(tmp_path / "locker.py")
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        for stream in (made.process.stdin, made.process.stdout):
            assert stream
            stream.close()


def lines(tracer: Tracer) -> list[dict[str, Any]]:
    """The intervals that --json has told so far."""
    tracer._out.flush()
    with open(f"/proc/self/fd/{tracer._out.fileno()}") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def test_a_lock_is_told_when_it_is_held_and_kept_once(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    condition = "lock(main) > 60% and name == '*locker*'"
    with (
        locker(tmp_path) as process,
        Tracer("-p", process.pid, "--watch", "1s", "--json", "--when", condition, "--pause", "1s",
               "-o", kept / "x-%H%M%S.d", command=TRACE_SCAN) as tracer,
    ):  # fmt: skip
        tracer.wait_until(lambda: len(lines(tracer)) >= 2, "two intervals")
        began = process.hold(6.0)
        tracer.wait_until(lambda: len([each for each in lines(tracer) if each["when"]]) >= 2, "the lock is held")
        time.sleep(6.0 - min(time.time() - began, 6.0))
        before = len(lines(tracer))
        tracer.wait_until(lambda: len(lines(tracer)) >= before + 2, "it is free again")
        tracer.interrupt().finish().check_succeeded()
        found = lines(tracer)
    for each, after in zip(found, found[1:], strict=False):
        assert abs(each["start_ns"] + each["duration_ns"] - after["start_ns"]) <= 1_000, "a gap"
    held = [each for each in found if each["when"]]
    for each in found:
        begin, end = each["start_ns"] / 1e9, (each["start_ns"] + each["duration_ns"]) / 1e9
        overlap = max(min(end, began + 6.0) - max(begin, began), 0.0) / (end - begin)
        if overlap > 0.9:
            assert each in held
            assert each["verdicts"][0]["kind"] == "lock"
            assert each["when"][0]["pid"] == process.pid
            assert each["when"][0]["values"][0]["share"] > 0.6
        elif overlap < 0.3:
            assert each not in held
    (name,) = kept.iterdir()
    assert [each["kept"] for each in found if each["kept"]] == [[str(name)]] == [held[0]["kept"]]
    assert sorted(each.name for each in name.iterdir()) == sorted(folder.FILES), "with what threads did over time"
    again = run("--from", name, "--json", command=TRACE_SCAN).check_succeeded()
    summary = json.loads(again.out)["summary"]
    assert summary["duration_ns"] == held[0]["duration_ns"]
    page = run("--from", name, "-o", tmp_path / "x.html", command=TRACE_SCAN).check_succeeded()
    assert "wrote " in page.out


def test_the_last_intervals_are_kept_and_the_partial_one_is_told(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "mine.txt").write_text("mine")
    with (
        locker(tmp_path) as process,
        Tracer("-p", process.pid, "--watch", "1s", "--json", "--keep", 2, "-o", kept / "x-%H%M%S.pb.gz",
               command=TRACE_SCAN) as tracer,
    ):  # fmt: skip
        tracer.wait_until(lambda: len(lines(tracer)) >= 4, "four intervals")
        os.kill(tracer.pid, signal.SIGTERM)
        tracer.finish().check_succeeded()
        found = lines(tracer)
    assert found[-1]["duration_ns"] < 30e9
    assert sorted(str(each) for each in kept.glob("*.gz")) == [each["kept"][0] for each in found[-2:]]
    assert (kept / "mine.txt").read_text() == "mine"


def test_a_command_that_ends(tmp_path: Path) -> None:
    code = "import time; [time.sleep(0.01) for _ in range(250)]"
    ended = run("--watch", "1s", "--", sys.executable, "-c", code, command=TRACE_SCAN).check_succeeded()
    told = ended.out.splitlines()
    assert len(told) >= 2
    assert all("polling " in line for line in told[:-1]), told


def test_it_leaves_nothing_when_it_is_killed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    with (
        locker(tmp_path) as process,
        Tracer("-p", process.pid, "--watch", "1s", "--json", "-o", kept / "x-%H%M%S.d", command=TRACE_SCAN) as tracer,
    ):
        tracer.wait_until(lambda: len(lines(tracer)) >= 2, "two intervals")
        children = {int(each) for each in Path(f"/proc/{tracer.pid}/task/{tracer.pid}/children").read_text().split()}
        os.kill(tracer.pid, signal.SIGKILL)
        tracer.process.wait()
        tracer.wait_until(lambda: not any(is_running(pid) for pid in children), "its processes have ended")
    names = {each.name for each in kept.glob("*/*")}
    assert names <= set(folder.FILES), names


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_nobody_reads_the_lines(tmp_path: Path) -> None:
    with locker(tmp_path) as process:
        line = f"{TRACE_SCAN} -p {process.pid} --watch 1s | head -n 1"
        begun = Popen(["bash", "-o", "pipefail", "-c", line], stdout=PIPE, stderr=PIPE, text=True)
        try:
            out, err = begun.communicate(timeout=90)
        finally:
            begun.kill()
            begun.wait()
    assert out.count("\n") == 1
    assert "Traceback" not in err
    assert begun.returncode == 141
