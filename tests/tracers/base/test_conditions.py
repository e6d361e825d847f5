from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from stallscope.converters.model.processes import CpuLimit, cpu_list
from stallscope.tracers.base import conditions
from stallscope.tracers.base.cgroups import Cgroups
from stallscope.tracers.base.conditions import Condition, Conditions, allowed_cpus, thread_variables

GONE = 1 << 22
"""Pids from here on belong to nobody."""
SLEEP = "import sys; print(flush=True); sys.stdin.read()"


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with sleeper({"OMP_NUM_THREADS": "64", "MKL_NUM_THREADS": "", "HOME": "/secret"}) as process:
        yield process
        process.kill()


def sleeper(environment: dict[str, str]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", SLEEP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout
    process.stdout.readline()
    return process


def test_cores_and_variables_of_a_process(child: subprocess.Popen[bytes]) -> None:
    assert allowed_cpus(child.pid) == cpu_list(os.sched_getaffinity(0))
    assert thread_variables(child.pid) == {"OMP_NUM_THREADS": "64", "MKL_NUM_THREADS": ""}
    one = {min(os.sched_getaffinity(0))}
    os.sched_setaffinity(child.pid, one)
    assert allowed_cpus(child.pid) == cpu_list(one)


def test_its_rank_is_read_from_the_same_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with sleeper({"RANK": "3", "SECRET": "RANK=4"}) as process:
        asked = Conditions()
        asked.look(process.pid)
        assert asked.finish([process.pid])[process.pid].ranks == {"rank": "3"}
        # Its GPUs may be opened later; then they are not looked for again.
        monkeypatch.setattr(conditions, "gpus_of", lambda pid: {"gpu": "2"})
        asked.look(process.pid)
        monkeypatch.setattr(conditions, "gpus_of", lambda pid: {})
        asked.copy(process.pid, GONE)
        process.kill()
        assert asked.finish([process.pid])[process.pid].ranks == {"rank": "3", "gpu": "2"}
        assert asked.finish([GONE])[GONE].ranks == {}, "it stands for others"


def test_nobody_has_nothing() -> None:
    assert allowed_cpus(GONE) == ""
    assert thread_variables(GONE) is None
    asked = Conditions()
    asked.look(GONE)
    assert asked.finish([GONE]) == {GONE: Condition()}


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"OMP_NUM_THREADS=8\0OMP_NUM_THREADS=9\0", {"OMP_NUM_THREADS": "8"}),
        (b"omp_num_threads=8\0XOMP_NUM_THREADS=8\0OMP_NUM_THREADS\0PASSWORD=x\0", {}),
        (b"OMP_NUM_THREADS=\xff\x1b[2J=\n", {"OMP_NUM_THREADS": "\udcff\x1b[2J=\n"}),
        (b"MKL_NUM_THREADS=" + b"9" * 100, {"MKL_NUM_THREADS": "9" * 40 + "..."}),
        (b"\0\0=\0\xff=1\0RAYON_NUM_THREADS=2", {"RAYON_NUM_THREADS": "2"}),
        (b"", None),
        (b"A=" + b"x" * (1 << 18) + b"\0OMP_NUM_THREADS=1\0", {}),
    ],
)
def test_hostile_environments(data: bytes, found: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "head", lambda pid, name, most: data[:most] if name == "environ" else None)
    assert thread_variables(7) == found


def test_a_process_that_ended_is_as_it_was_seen(child: subprocess.Popen[bytes]) -> None:
    asked = Conditions()
    asked.look(child.pid)
    asked.forked(child.pid, GONE)
    child.kill()
    child.wait()
    found = asked.finish([child.pid, GONE])
    assert found[child.pid].environment == {"OMP_NUM_THREADS": "64", "MKL_NUM_THREADS": ""}
    assert found[child.pid].cpus == cpu_list(os.sched_getaffinity(0))
    assert found[GONE] == replace(found[child.pid], origin=found[GONE].origin)
    origin = found[GONE].origin
    assert origin
    assert (origin.pid, origin.ancestors[0].pid) == (GONE, child.pid)


def test_a_zombie_is_as_it_was_before(child: subprocess.Popen[bytes]) -> None:
    asked = Conditions()
    asked.look(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert asked.finish([child.pid])[child.pid].environment == {"OMP_NUM_THREADS": "64", "MKL_NUM_THREADS": ""}


def test_changes_are_seen_now_and_then(child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "_REFRESH", 0.0)
    asked = Conditions()
    asked.look(child.pid)
    one = {max(os.sched_getaffinity(0))}
    os.sched_setaffinity(child.pid, one)
    asked.poll()
    child.kill()
    child.wait()
    asked.poll()
    asked.poll()
    assert asked.finish([child.pid])[child.pid].cpus == cpu_list(one)


def test_an_exec_brings_another_environment(child: subprocess.Popen[bytes]) -> None:
    asked = Conditions()
    asked.look(os.getpid())
    asked.forked(os.getpid(), child.pid)
    asked.look(child.pid)
    environment = asked.finish([child.pid])[child.pid].environment
    assert environment == {"OMP_NUM_THREADS": "64", "MKL_NUM_THREADS": ""}


def test_looking_takes_a_small_share_of_the_time(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []
    clock = [0.0]

    def slow(pid: int) -> str:
        clock[0] += 0.1
        looked.append(pid)
        return "0"

    monkeypatch.setattr(conditions, "allowed_cpus", slow)
    monkeypatch.setattr(conditions.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(conditions.time, "thread_time", lambda: clock[0])
    asked = Conditions()
    for _ in range(1000):
        clock[0] += 0.01
        asked.look(child.pid)
    assert 0.2 / 0.1 <= len(looked) <= 1 + (0.2 + 0.03 * clock[0]) / 0.1 + 1
    looked.clear()
    found = asked.finish([child.pid] * 100)
    assert len(looked) <= 6
    assert found[child.pid].cpus == "0"


@pytest.mark.parametrize("is_work", [False, True])
def test_a_process_that_does_not_answer_hides_no_other(
    is_work: bool, child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it take the time for them, as one does that is much work."""
    clock, worked = [0.0], [0.0]

    def heads(pids: list[int], names: object) -> dict[int, list[bytes | None]]:
        if pids == [child.pid]:
            return {child.pid: [b"OMP_NUM_THREADS=8\0", b"python\0"]}
        clock[0] += 1
        worked[0] += is_work
        return {}

    monkeypatch.setattr(conditions, "heads", heads)
    monkeypatch.setattr(conditions.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(conditions.time, "thread_time", lambda: worked[0])
    asked = Conditions()
    asked.look(os.getpid())
    asked.look(child.pid)
    child.kill()
    child.wait()
    assert asked.finish([child.pid])[child.pid].environment == (None if is_work else {"OMP_NUM_THREADS": "8"})


def test_many_are_looked_at_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    clock = [0.0]

    def slow(pid: int) -> str:
        clock[0] += 0.003
        looked.append(pid)
        return ""

    monkeypatch.setattr(conditions, "allowed_cpus", slow)
    monkeypatch.setattr(conditions.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(conditions.time, "thread_time", lambda: clock[0])
    asked = Conditions()
    asked.look_soon(range(200))
    assert looked == [0, 1, 2, 3]
    for _ in range(10):
        asked.poll()
    assert looked == list(range(44))
    for _ in range(1000):
        clock[0] += 0.1
        asked.poll()
    assert looked == list(range(200))


def test_those_that_are_known_are_not_looked_at_for_being_taken_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Conditions()
    asked.look(os.getpid())
    monkeypatch.setattr(conditions, "allowed_cpus", lambda pid: pytest.fail(f"looked at {pid}"))
    asked.look_soon([os.getpid()])


def test_the_number_of_processes_is_bounded(child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "_MOST", 1)
    asked = Conditions()
    asked.look(os.getpid())
    asked.look(child.pid)
    asked.forked(os.getpid(), GONE)
    found = asked.finish([os.getpid(), child.pid, GONE])
    assert found[os.getpid()].cpus
    assert found[child.pid] == found[GONE] == Condition()


def test_quotas_of_processes(child: subprocess.Popen[bytes], tmp_path: Path) -> None:
    class Some(Cgroups):
        def of(self, membership: bytes) -> tuple[bytes, ...]:
            assert b":/" in membership
            return (b"/x",)

        def limits(self, folders: tuple[bytes, ...]) -> tuple[CpuLimit, ...]:
            return (CpuLimit("/x", 1, 2),) if folders == (b"/x",) else ()

    asked = Conditions(Some(tmp_path / "none"))
    asked.look(child.pid)
    begin = time.monotonic()
    found = asked.finish([child.pid, GONE])
    assert found[child.pid].limits == (CpuLimit("/x", 1, 2),)
    assert found[GONE].limits == ()
    assert time.monotonic() - begin < 60


def test_who_is_gone_is_forgotten(child: subprocess.Popen[bytes]) -> None:
    asked = Conditions()
    asked.look(child.pid)
    asked.forked(child.pid, GONE)
    asked.forget([GONE])
    assert list(asked._alive) == [child.pid]
    found = asked.finish([child.pid, GONE])
    assert found[GONE] == Condition()
    assert found[child.pid].environment
