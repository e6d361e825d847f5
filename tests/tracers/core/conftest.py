"""An object of ours, opened and loaded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stallscope.tracers.core import engine
from stallscope.tracers.core.engine import SHAPES, EngineOptions
from stallscope.tracers.core.object import Object
from stallscope.tracers.core.scope import Scope


@pytest.fixture
def opened() -> Iterator[Object]:
    made = Object(engine.object_path())
    yield made
    made.close()


@pytest.fixture
def loaded(root: None) -> Iterator[Object]:
    """With the programs that follow forks and execs."""
    made = engine.load_shape(EngineOptions(Scope(everything=True), (), table_entries=1 << 14), SHAPES[0])
    yield made
    made.close()
