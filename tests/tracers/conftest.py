"""Fixtures for the tests of the tracers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from stallscope.tracers.core import engine, privilege
from stallscope.tracers.core.bpfobject import Object
from stallscope.tracers.core.engine import SHAPES, EngineOptions
from stallscope.tracers.core.scope import Scope

Require = Callable[[bool, str], None]


@pytest.fixture
def root(require: Require) -> None:
    """Skips where BPF cannot be used; with REQUIRE_LIVE=1 fails there."""
    require(privilege.allowed(), "this needs root")


@pytest.fixture
def clang(require: Require) -> str:
    """The compiler of BPF programs."""
    found = shutil.which("clang")
    require(found is not None, "there is no clang")
    return str(found)


@pytest.fixture
def gcc(require: Require) -> str:
    """The compiler of the machine."""
    found = shutil.which("gcc")
    require(found is not None, "there is no gcc")
    return str(found)


@pytest.fixture
def opened() -> Iterator[Object]:
    """Our object, not loaded."""
    made = Object(engine.object_path())
    yield made
    made.close()


@pytest.fixture
def loaded(root: None) -> Iterator[Object]:
    """Our object with the programs that follow forks and execs."""
    made = engine.load_shape(EngineOptions(Scope(everything=True), (), table_entries=1 << 14), SHAPES[0])
    yield made
    made.close()
