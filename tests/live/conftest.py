"""Fixtures for tests that trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from runner import Workload
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base import privilege
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import probes as engine_module
from stallscope.tracers.engines.ebpf.measures.protocol import Collector
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
from stallscope.tracers.holder.client import HOLDER, Holder
from stallscope.tracers.kernel.shapes import Shape
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.protocol import Measure
from stallscope.tracers.outside.client import CLIENT, Client
from tracing import Trace, Traced, collecting, run_traced


@pytest.fixture(autouse=True)
def _as_in_a_new_command(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begins each test with helpers that have met nothing. A trace that ends waits less long for answers, and who did
    not answer is not asked again: in a command no other trace follows, here they do."""
    fresh = Client()
    for name in ("_silences", "_refused", "_silent", "_folders", "unread", "partly", "_hurries"):
        monkeypatch.setattr(CLIENT, name, getattr(fresh, name))
    unused = Holder()
    for name in ("_found", "_hangs", "locked", "left", "_is_lost", "_hurries"):
        monkeypatch.setattr(HOLDER, name, getattr(unused, name))
    yield
    if HOLDER._hangs:
        HOLDER.end()


@pytest.fixture(scope="session")
def live(require: Callable[[bool, str], None]) -> None:
    """Skips where BPF cannot run; with REQUIRE_LIVE=1 fails there. Asked once: loading the programs takes its time."""
    require(privilege.allowed(), "tracing needs root")
    try:
        Probes(ProbeOptions(Scope(), collectors([OffCpu()])), lambda data: None).close()
    except StallscopeError as error:
        require(False, f"BPF cannot run here: {error}")


@pytest.fixture
def trace(live: None, monkeypatch: pytest.MonkeyPatch) -> Trace:
    def run(
        name: str,
        *arguments: object,
        scope: Scope | None = None,
        shape: Shape | None = None,
        measure: Measure | Collector | None = None,
        also: tuple[Measure | Collector, ...] = (),
        measures: tuple[Measure | Collector, ...] = (),
        duration: float | None = None,
        **options: Any,
    ) -> Traced:
        """Attaches to a workload that waits at its gate, lets it run to its end, and looks at the trace."""
        if shape is not None:
            monkeypatch.setattr(engine_module, "RAW_SHAPES" if options.get("btf") else "BTF_SHAPES", (shape,))
        with Workload(name, *arguments, linger=True) as workload:
            scope = scope or Scope(pids=list(workload.pids))
            scope.resolve()
            chosen = measures or (measure or OffCpu(), *also)
            return run_traced(workload, ProbeOptions(scope, collecting(chosen), **options), duration)

    return run
