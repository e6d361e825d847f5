"""Processes that are sampled, with processes of the test."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator

import pytest
from stallscope.tracers.base import procfs
from stallscope.tracers.base.procfs import Origin
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.eu_stack.following import Following

ROOT, CHILD, LATER, BELOW = 10, 11, 12, 13


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[int, Origin]:
    """The processes that there are: one that has forked another one before the trace."""
    found = {1: Origin(0, 1), os.getpid(): Origin(ROOT, 5), ROOT: Origin(1, 2), CHILD: Origin(ROOT, 3)}
    monkeypatch.setattr(procfs, "origins", lambda: dict(found))
    monkeypatch.setattr(procfs, "tgid_of", lambda tid: tid)
    return found


def test_only_what_is_forked_during_the_trace(table: dict[int, Origin]) -> None:
    looks = Following(Scope(tgids={ROOT}), None)
    assert looks.look() == {ROOT}, "neither what it had forked before nor the tracer"
    table |= {LATER: Origin(ROOT, 6), BELOW: Origin(LATER, 7), 20: Origin(CHILD, 8), 21: Origin(os.getpid(), 9)}
    assert looks.look() == {ROOT, LATER, BELOW}


def test_an_untraced_process_that_gets_a_traced_parent(table: dict[int, Origin]) -> None:
    looks = Following(Scope(tgids={ROOT}), None)
    table[20] = Origin(CHILD, 8)
    assert looks.look() == {ROOT}
    del table[CHILD]
    table[20] = Origin(ROOT, 8)
    assert looks.look() == {ROOT}


def test_a_traced_process_whose_parent_ends(table: dict[int, Origin]) -> None:
    looks = Following(Scope(tgids={ROOT}), None)
    table |= {LATER: Origin(ROOT, 6), BELOW: Origin(LATER, 7)}
    looks.look()
    del table[LATER]
    table[BELOW] = Origin(1, 7)
    assert looks.look() == {ROOT, BELOW}


def test_an_id_that_is_used_again(table: dict[int, Origin]) -> None:
    looks = Following(Scope(tgids={ROOT}), None)
    table[LATER] = Origin(ROOT, 6)
    assert looks.look() == {ROOT, LATER}
    table |= {LATER: Origin(1, 9), CHILD: Origin(ROOT, 10)}
    assert looks.look() == {ROOT, CHILD}


def test_options_of_the_scope(table: dict[int, Origin]) -> None:
    every = Following(Scope(tgids={ROOT, CHILD}, descendants=True), None)
    none = Following(Scope(tgids={ROOT}, children=False), None)
    thread = Following(Scope(tids={ROOT}), None)
    table |= {LATER: Origin(CHILD, 6), BELOW: Origin(ROOT, 6)}
    assert every.look() == {ROOT, CHILD, LATER, BELOW}
    assert none.look() == {ROOT}
    assert thread.look() == {ROOT}


def test_what_a_later_process_had_forked_before_it_matched(
    table: dict[int, Origin], monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = Scope(name=re.compile("x"))
    monkeypatch.setattr(Scope, "newcomers", lambda _: set())
    looks = Following(scope, None)
    assert looks.look() == set()

    def newcomers(scope: Scope) -> set[int]:
        scope.left_out[BELOW] = {}
        return {LATER} - scope.tgids

    monkeypatch.setattr(Scope, "newcomers", newcomers)
    table |= {LATER: Origin(1, 6), BELOW: Origin(LATER, 7)}
    assert looks.look() == {LATER}
    table[20] = Origin(LATER, 8)
    assert looks.look() == {LATER, 20}


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """A shell, and a process that it has forked."""
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE) as shell:
        assert shell.stdout
        child = int(shell.stdout.readline())
        yield shell.pid, child
        os.kill(child, 9)
        shell.kill()


def test_real_processes(family: tuple[int, int]) -> None:
    shell, child = family
    for descendants, expected in ((False, {shell}), (True, {shell, child})):
        scope = Scope(pids=[shell], descendants=descendants)
        scope.resolve()
        assert Following(scope, None).look() == expected
