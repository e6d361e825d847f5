"""The list of engines: each is imported when it is asked for, and made from the options."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from stallscope.tracers.command.engines import ENGINES, LIMITED, OnDemand, all_engines
from stallscope.tracers.engines.ebpf.engine import Ebpf

NOTHING: dict[str, Any] = dict.fromkeys(LIMITED.values())


def test_names_are_those_of_the_engines() -> None:
    assert [engine.name for engine in all_engines()] == list(ENGINES)


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_has_only_options_that_are_known(name: str) -> None:
    entry = ENGINES[name]
    assert set(entry.options) <= LIMITED.keys()
    assert entry.lacking(NOTHING) == []
    everything = dict.fromkeys(LIMITED.values(), True)
    assert set(entry.lacking(everything)) == LIMITED.keys() - set(entry.options)


def test_engines_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def of(given: object) -> Ebpf:
        made.append(given)
        return Ebpf()

    monkeypatch.setattr(Ebpf, "of", of)
    engines = OnDemand(["libbpf", "stap"], {"given": 1})
    assert not made
    assert engines[0] is engines[0] is engines[:1][0]
    assert made == [{"given": 1}]
    assert len(engines) == 2


def test_no_engine_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, stallscope.tracers.wall; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    engines = {f"stallscope.tracers.{entry.kind.strip('.').rpartition('.')[0]}" for entry in ENGINES.values()}  # type: ignore[union-attr]
    assert len(engines) == len(ENGINES)
    assert engines.isdisjoint(loaded)
