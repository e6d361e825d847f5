"""Fixtures for tests that trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from runner import Workload
from stallscope.converters.errors import StallscopeError
from stallscope.tracers.core import engine as engine_module
from stallscope.tracers.core import privilege
from stallscope.tracers.core.assemble import Filter
from stallscope.tracers.core.engine import OFF_CPU_PROBES, Engine, EngineOptions, Shape
from stallscope.tracers.core.scope import Scope
from tracing import Trace, Traced, run_traced


@pytest.fixture
def live(require: Callable[[bool, str], None]) -> None:
    """Skips where BPF cannot run; with REQUIRE_LIVE=1 fails there."""
    require(privilege.allowed(), "tracing needs root")
    try:
        Engine(EngineOptions(Scope(), OFF_CPU_PROBES), lambda data: None).close()
    except StallscopeError as error:
        require(False, f"BPF cannot run here: {error}")


@pytest.fixture
def trace(live: None, monkeypatch: pytest.MonkeyPatch) -> Trace:
    def run(
        name: str,
        *arguments: object,
        scope: Scope | None = None,
        shape: Shape | None = None,
        chosen: Filter | None = None,
        duration: float | None = None,
        **options: Any,
    ) -> Traced:
        """Attaches to a workload that waits at its gate, lets it run to its end, and looks at the trace."""
        if shape is not None:
            monkeypatch.setattr(engine_module, "_RAW_SHAPES" if options.get("btf") else "_BTF_SHAPES", (shape,))
        with Workload(name, *arguments, linger=True) as workload:
            scope = scope or Scope(pids=list(workload.pids))
            scope.resolve()
            return run_traced(workload, EngineOptions(scope, OFF_CPU_PROBES, **options), chosen or Filter(), duration)

    return run
