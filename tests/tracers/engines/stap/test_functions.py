"""The functions of a module, from files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from runner import FOLDER
from stallscope.tracers.apis.wanted import Library, Wanted
from stallscope.tracers.engines.protocol import EngineUnavailable
from stallscope.tracers.engines.stap.functions import Function, choose

SLEEPS = str(FOLDER / "sleeps")
CUDA = str(FOLDER / "libcudart.so.12")


def wanted(symbols: str) -> Wanted:
    return Wanted(libraries=(Library.at(SLEEPS),), symbols=re.compile(symbols))


def test_functions_that_are_named() -> None:
    chosen = choose(wanted("^sleep_"), (), ())
    assert {name for _, name in chosen.functions} == {"sleep_1ms", "sleep_10ms", "sleep_25ms"}
    assert chosen.shown(wanted("^sleep_"))["sleep_1ms"] == Function(SLEEPS, "sleep_1ms")
    assert not chosen.remarks


def test_functions_of_cuda() -> None:
    names = {name for path, name in choose(Wanted(), (CUDA, SLEEPS, "/nowhere"), (SLEEPS,)).functions if path == CUDA}
    assert "cudaMemcpy" in names
    assert "cudaLaunchKernel" not in names


def test_none() -> None:
    with pytest.raises(EngineUnavailable, match="none of the files"):
        choose(Wanted(), (SLEEPS,), (SLEEPS,))


def test_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stallscope.tracers.engines.stap.functions.MOST", 2)
    with pytest.raises(EngineUnavailable, match="3 functions are too many"):
        choose(wanted("^sleep_"), (), ())


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    damaged = tmp_path / "libcudart.so.12"
    damaged.write_bytes(b"\x7fELF" + b"\0" * 60)
    with pytest.raises(EngineUnavailable, match="none of the files"):
        choose(Wanted(), (str(damaged),), ())
