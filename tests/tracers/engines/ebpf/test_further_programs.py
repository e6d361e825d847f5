from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.tracers.engines.ebpf.further_programs import SIZES, wanted
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.kernel import kernel_types
from stallscope.tracers.kernel.shapes import SHAPES
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from type_information import type_information


def test_programs_of_all_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_types, "_KERNEL_BTF", tmp_path / "btf")
    (tmp_path / "btf").write_bytes(type_information("btf_trace_flock_lock_inode", "btf_trace_tcp_retransmit_skb"))
    assert {"refused_flock", "tcp_resent"} <= wanted(collectors([OffCpu()]), SHAPES[0])
    assert wanted(collectors([OnCpu()]), SHAPES[0]) == set()
    assert min(SIZES.values()) > 1
