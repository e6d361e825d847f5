"""Fixtures for the tests of the symboliser."""

from __future__ import annotations

import pytest
from stallscope.tracers.symbols.process import ProcessSpaces
from stallscope.tracers.symbols.symboliser import Symboliser


@pytest.fixture
def processes() -> ProcessSpaces:
    """The address spaces of no process yet."""
    return ProcessSpaces()


@pytest.fixture
def symboliser(processes: ProcessSpaces) -> Symboliser:
    """The subject, which names addresses of `processes`."""
    return Symboliser(processes)
