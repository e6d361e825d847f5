"""Fixtures of all tests of this engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from captures import Table
from stallscope.tracers.engines.ebpf import stacks
from stallscope.tracers.symbols.process import ProcessSpaces


@pytest.fixture(autouse=True)
def closed_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sessions leave the files of the traced processes open for whoever names the functions: here, nobody may."""
    made: list[ProcessSpaces] = []
    begin = ProcessSpaces.__init__

    def begin_noted(spaces: ProcessSpaces, fd_budget: int | None = None) -> None:
        begin(spaces, fd_budget)
        made.append(spaces)

    monkeypatch.setattr(ProcessSpaces, "__init__", begin_noted)
    yield
    for spaces in made:
        spaces.close()


@pytest.fixture
def named_by_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The addresses of captures.py have their names, whatever this machine's files are."""
    monkeypatch.setattr(stacks, "Symboliser", Table)
    monkeypatch.setattr(stacks.Kallsyms, "read", lambda **_: None)
