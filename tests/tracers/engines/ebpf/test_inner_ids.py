"""Ids of threads in other pid namespaces."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.tracers.base import procfs
from stallscope.tracers.engines.ebpf.inner_ids import InnerIds


def test_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "tids", lambda pid: [pid, pid + 1])
    monkeypatch.setattr(procfs, "innermost_id", lambda tid: tid - 40)
    processes = {50: SimpleNamespace(nspid=10, pid=50), 60: SimpleNamespace(nspid=60, pid=60)}
    capture: Any = SimpleNamespace(spaces=SimpleNamespace(processes=processes))
    ids = InnerIds(capture)
    assert [ids.outside(50, 10), ids.outside(50, 11), ids.outside(50, 50)] == [50, 51, 0]
    assert [ids.outside(60, 61), ids.outside(70, 71)] == [61, 71]
    assert ids.of(60) == {}
