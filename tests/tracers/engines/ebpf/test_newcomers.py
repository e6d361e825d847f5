from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.tracers.engines.ebpf import newcomers
from stallscope.tracers.engines.ebpf.newcomers import Newcomers


def test_new_processes_are_taken_in_and_those_that_ended_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(newcomers, "time", SimpleNamespace(monotonic=lambda: now[0]))
    gone = 1 << 30
    found = {os.getppid()}
    scope: Any = SimpleNamespace(tgids={os.getpid(), gone}, ours=set(), newcomers=lambda: set(found))
    taken: list[list[tuple[int, int]]] = []

    def seed() -> list[tuple[int, int]]:
        now[0] += 1.0
        return [(7, os.getppid())]

    looks = Newcomers(scope, seed, taken.append)
    looks.look({3})
    assert scope.tgids == {os.getpid(), os.getppid()}
    assert scope.ours == {3}
    assert taken == [[(7, os.getppid())]]
    now[0] += 9.9
    looks.look(())
    assert len(taken) == 1, "it looks for a tenth of the time at most"
    now[0] += 0.2
    looks.look(())
    assert len(taken) == 2
    found.clear()
    now[0] += 20.0
    looks.look(())
    assert len(taken) == 2
