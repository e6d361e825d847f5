"""Calls of the kernel's functions, as the probes count them. With real ones: the check `func` of tests/vm."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model.calls import BUCKETS
from stallscope.tracers.engines.ebpf.measures import calls, event_probes, kernel_calls
from stallscope.tracers.engines.ebpf.measures.kernel_calls import KernelCallsCollector, KernelProbes
from stallscope.tracers.engines.ebpf.measures.protocol import Ended
from stallscope.tracers.engines.ebpf.probes import object_path
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.records import ORIGIN, RUNNING
from stallscope.tracers.measures.calls import KernelCalls

NONE = Ended(0, 1, [])


class Link:
    def close(self) -> None:
        return


@pytest.fixture
def attached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Functions that have a probe."""
    made: list[str] = []

    def attach(_: object, program: str, name: str, number: int, *, at_return: bool = False) -> Link:
        if name.startswith("bad"):
            raise BpfError("no", 22, [])
        made.append(f"{program} {name} {number} {at_return}")
        return Link()

    monkeypatch.setattr(kernel_calls, "attach_function", attach)
    return made


def test_layouts_are_those_of_the_probes() -> None:
    opened = Object(object_path())
    try:
        assert opened.find_map("kernel_calls").value_size == opened.find_map("kernel_call_blanks").value_size
        assert {f"{name}{suffix}" for name in kernel_calls._PROGRAMS for suffix in ("", "_raw")} <= set(opened.programs)
    finally:
        opened.close()


def test_returns_are_watched_first(attached: list[str]) -> None:
    probes: Any = KernelProbes(None, "_raw", ["bad", "vfs_read"])  # type: ignore[arg-type]
    assert attached == ["calls_kernel_return_raw vfs_read 1 True", "calls_kernel_enter_raw vfs_read 1 False"]
    assert list(probes.remarks()) == [
        "probes were on 1 function of the kernel, at entry and return",
        "the kernel takes no probe on 1 other function: bad",
    ]
    assert [probe.name for probe in probes.probes()] == ["vfs_read"]


def test_a_kernel_that_takes_none(attached: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for has, says in ((False, "takes no probes on its functions"), (True, "takes no probe on bad")):
        monkeypatch.setattr(event_probes, "has_kprobes", lambda has=has: has)
        with pytest.raises(StallscopeError, match=says):
            KernelProbes(None, "", ["bad"])  # type: ignore[arg-type]
    assert not attached


def measured(attached: list[str], sums: list[tuple[bytes, bytes]]) -> KernelCallsCollector:
    def table(items: list[tuple[bytes, bytes]]) -> Any:
        parts = b"".join(key for key, _ in items), b"".join(value for _, value in items)
        return SimpleNamespace(drain=lambda _slot: parts)

    measure: Any = KernelCallsCollector(KernelCalls(["vfs_read", "vfs_write"]))
    measure._table = table([])
    measure._parts._tables = {"ioctls": table([]), "copies": table([])}
    measure._tables = {"call_sums": table(sums), "call_failures": table([])}
    measure.probed = KernelProbes(None, "", measure._functions)  # type: ignore[arg-type]
    measure._programs = [SimpleNamespace(misses=2), SimpleNamespace(misses=1)]
    maps = SimpleNamespace(items=list, lookup_percpu_u64=lambda _: 0)
    measure.read(SimpleNamespace(find_map=lambda _: maps))
    found: KernelCallsCollector = measure
    return found


def test_calls_are_those_of_the_kernel(attached: list[str]) -> None:
    sums = calls._SUM.pack(3, 1000, 400, 600, 100, 200, 500, 0, 0, 0, 0, 3, *[0] * (BUCKETS - 1))
    measure = measured(attached, [(calls._KEY.pack(8, 7, 0, 1), sums)])
    (timed,) = measure.calls(NONE)
    call = timed.calls
    assert (call.name, call.device, call.library, call.count, call.total, call.own) == (
        *("vfs_write", "kernel", ""),
        *(3, 1000, 400),
    )
    assert measure.losses()["runs of probes, in any thread, that the kernel left out"] == 3
    assert list(measure.remarks())[-1] == "calls that had not ended are not counted"
    assert measure.functions() == frozenset()


def test_rows_name_the_function(attached: list[str]) -> None:
    measure = measured(attached, [])
    keys = ORIGIN.pack(5, 6, 0, 8, 7, 1, RUNNING | 1 << 8) + ORIGIN.pack(5, 6, 0, 8, 7, 1, 1 | 1 << 8)
    measure.totals().add(keys, calls._TIME.pack(3, 100, 0, 0) + calls._TIME.pack(0, 0, 600, 50))
    rows = sorted((row.state, row.values, row.call, row.origin.kstack) for row in measure.rows(NONE))
    assert {call for _, _, call, _ in rows} == {"vfs_write kernel"}
    assert {kstack for *_, kstack in rows} == {6}
    assert [values for _, values, *_ in rows if values[1]] == [(100, 3)]
    assert sorted(values[0] for _, values, *_ in rows) == [50, 100, 600]
