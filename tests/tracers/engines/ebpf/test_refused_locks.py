from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from stallscope.tracers.base.lock_table import Lock, Refused
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.refused_locks import PROGRAMS, taken, wanted
from stallscope.tracers.kernel import kernel_types
from stallscope.tracers.kernel.shapes import SHAPES
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from type_information import type_information


class Table:
    """A map with these entries."""

    def __init__(self, *entries: tuple[bytes, bytes]) -> None:
        self.entries = list(entries)

    def take(self) -> list[tuple[bytes, bytes]]:
        found, self.entries = self.entries, []
        return found


def entry(first: int, last: int, flags: int, access: int) -> tuple[bytes, bytes]:
    """Key and value that bpf/file_locks.bpf.c writes."""
    key = struct.pack("<QqqIIIIII", 99, first, last, 0xFE << 20 | 10, 7, flags, access, 8, 0)
    return key, struct.pack("<QQ", 5, 1000)


def test_requests_are_parsed_once() -> None:
    end = (1 << 63) - 1
    table: Any = Table(entry(0, end, 2, 1), entry(120, 120, 0, 1), entry(0, 9, 1024, 0))
    where = 7, 0xFE << 20 | 10, 99
    assert taken(table) == [
        Refused(Lock("flock", "write", *where, 0, 0), 5, 1000, 8),
        Refused(Lock("fcntl", "write", *where, 120, 120), 5, 1000, 8),
        Refused(Lock("OFD", "read", *where, 0, 9), 5, 1000, 8),
    ]
    assert taken(table) == []


def test_only_waits_need_them_and_only_where_the_kernel_reports_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_types, "_KERNEL_BTF", tmp_path / "btf")
    waits = collectors([OffCpu()])
    assert wanted(waits, SHAPES[0]) == set()
    (tmp_path / "btf").write_bytes(type_information("btf_trace_posix_lock_inode"))
    assert wanted(waits, SHAPES[0]) == {"refused_fcntl_lock"}
    (tmp_path / "btf").write_bytes(type_information("btf_trace_posix_lock_inode", "btf_trace_flock_lock_inode"))
    assert wanted(waits, SHAPES[0]) == PROGRAMS.keys()
    assert wanted(waits, SHAPES[-1]) == set()
    assert wanted(collectors([OnCpu()]), SHAPES[0]) == set()
