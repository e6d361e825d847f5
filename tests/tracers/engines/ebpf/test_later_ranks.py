"""Ranks that are set after a fork, in processes of this test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from stallscope.converters.model.origins import ENVIRONMENT, MEMORY
from stallscope.tracers.base.conditions import Conditions
from stallscope.tracers.engines.ebpf import later_ranks
from stallscope.tracers.engines.ebpf.later_ranks import LaterRanks
from stallscope.tracers.symbols.process import ProcessSpaces

FORKS = """
import os, sys
for number in range(int(sys.argv[1])):
    if not os.fork():
        {set}
        print(os.getpid(), number, flush=True)
        sys.stdin.read()
        os._exit(0)
sys.stdin.read()
"""
BY_ENVIRON = "os.environ['RANK'] = str(number); os.environ['WORLD_SIZE'] = sys.argv[1]"
MANY = "[os.putenv(f'X{i}', 'x' * 100) for i in range(600)]; os.environ['RANK'] = str(number)"


@contextmanager
def forked(number: int, how: str, environment: dict[str, str] | None = None) -> Iterator[dict[int, int]]:
    """Pids and ranks of processes that one process has forked."""
    command = [sys.executable, "-I", "-c", FORKS.format(set=how), str(number)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
    ) as process:
        assert process.stdin and process.stdout
        found = dict(map(int, process.stdout.readline().split()) for _ in range(number))
        yield found
        process.stdin.close()


def looked(pids: dict[int, int]) -> Conditions:
    spaces, conditions = ProcessSpaces(), Conditions()
    for pid in pids:
        spaces.adopt(pid)
        conditions.look(pid)
    conditions.later = LaterRanks(spaces, conditions)
    return conditions


@pytest.mark.parametrize("how", [BY_ENVIRON, MANY])
def test_ranks_that_a_forked_process_sets(how: str) -> None:
    with forked(3, how) as pids:
        found = looked(pids).finish(pids)
        assert {pid: int(found[pid].ranks["rank"]) for pid in pids} == pids
        assert {each.origin.source for each in found.values() if each.origin} == {MEMORY}
        assert how == MANY or {each.ranks["world-size"] for each in found.values()} == {"3"}


def test_they_are_seen_while_a_trace_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later_ranks, "_SLICE", 10.0)
    with forked(2, BY_ENVIRON) as pids:
        conditions = looked(pids)
        conditions.poll()
        conditions.later = None
    found = conditions.finish(pids)  # the processes are gone
    assert {pid: int(found[pid].ranks["rank"]) for pid in pids} == pids


def test_the_last_one_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is enough for one of two; then the other one is alone without a rank."""
    monkeypatch.setattr(later_ranks, "_BETWEEN", 0.0)
    with forked(2, BY_ENVIRON) as pids:
        conditions = looked(pids)
        times = iter((0.0, 0.0, 1.0, *[2.0] * 9))
        monkeypatch.setattr(later_ranks, "time", SimpleNamespace(monotonic=lambda: next(times)))
        conditions.later.poll()  # type: ignore[union-attr]
        assert len(conditions.without_rank()) == 1
        conditions.later.poll()  # type: ignore[union-attr]
        assert not conditions.without_rank()


def test_what_they_were_started_with_counts() -> None:
    with forked(2, BY_ENVIRON, {"RANK": "7"}) as pids:
        found = looked(pids).finish(pids)
    assert {each.ranks["rank"] for each in found.values()} == {"7"}
    assert {each.origin.source for each in found.values() if each.origin} == {ENVIRONMENT}


def test_processes_without_one_and_single_ones_have_none() -> None:
    for number, how in ((2, "pass"), (1, BY_ENVIRON)):
        with forked(number, how) as pids:
            found = looked(pids).finish(pids)
        assert {each.ranks.get("rank") for each in found.values()} == {None}


def test_the_time_for_it_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later_ranks, "_LAST", 0.0)
    with forked(2, BY_ENVIRON) as pids:
        found = looked(pids).finish(pids)
    assert {each.ranks.get("rank") for each in found.values()} == {None}


def test_memory_that_cannot_be_read_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> bytes:
        raise OSError

    monkeypatch.setattr(later_ranks, "_read", refused)
    with forked(2, BY_ENVIRON) as pids:
        found = looked(pids).finish(pids)
    assert {each.ranks.get("rank") for each in found.values()} == {None}
