"""The kernel's types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from stallscope.tracers.kernel import kernel_types
from stallscope.tracers.kernel.kernel_types import KernelTypes, kernel_has
from type_information import type_information


@pytest.fixture
def types() -> Iterator[KernelTypes]:
    with KernelTypes() as made:
        yield made


def test_fields(types: KernelTypes) -> None:
    size = types.size("mm_struct")
    assert 500 < size < 10_000
    places = {at: types.field_at("mm_struct", at, ("rw_semaphore",)) for at in range(0, size, 4)}
    assert list(places.values()).count("mmap_lock") == 1  # in a structure without a name
    (at,) = [at for at, name in places.items() if name == "mmap_lock"]
    assert types.field_at("mm_struct", at, ("mutex",)) == ""
    assert types.field_at("mm_struct", at + 8, ("rw_semaphore",)) == ""
    inode = {types.field_at("inode", at, ("rw_semaphore",)) for at in range(0, types.size("inode"), 4)}
    assert {"i_rwsem", "i_data.i_mmap_rwsem"} <= inode
    assert types.field_at("inode", types.size("inode"), ("rw_semaphore",)) == ""


def test_fields_of_arrays(types: KernelTypes) -> None:
    assert types.field_at("pglist_data", 0, ("zone",)) == "node_zones[0]"
    assert types.field_at("pglist_data", types.size("zone"), ("zone",)) == "node_zones[1]"
    assert types.field_at("pglist_data", types.size("zone") + 8, ("zone",)) == ""


def test_nothing_known(types: KernelTypes) -> None:
    assert types.size("no_such_struct") == 0
    assert types.field_at("no_such_struct", 0, ("mutex",)) == ""
    assert types.function_id("no_such_function") == 0
    assert types.function_id("schedule") > 0


def test_without_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KernelTypes, "__init__", lambda self: setattr(self, "_btf", None))
    with KernelTypes() as types:
        assert (types.size("mm_struct"), types.field_at("mm_struct", 0, ("mutex",)), types.function_id("schedule")) == (
            0,
            "",
            0,
        )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (type_information("a", "btf_trace_flock_lock_inode", "b"), True),
        (type_information("btf_trace_flock_lock_inode_x", "x_btf_trace_flock_lock_inode"), False),
        (type_information(), False),
        (type_information("btf_trace_flock_lock_inode")[:-5], False),
        (b"\0btf_trace_flock_lock_inode\0", False),  # without a header
        (b"", False),
    ],
)
def test_names(content: bytes, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "btf"
    monkeypatch.setattr(kernel_types, "_KERNEL_BTF", path)
    assert kernel_has("btf_trace_flock_lock_inode", otherwise=True)
    assert not kernel_has("btf_trace_flock_lock_inode")
    path.write_bytes(content)
    assert kernel_has("btf_trace_flock_lock_inode", otherwise=not expected) == expected


def test_names_that_this_kernel_has() -> None:
    content = Path("/sys/kernel/btf/vmlinux").read_bytes()
    for name in kernel_types._NAMES:
        assert kernel_has(name.decode()) == (b"\0" + name + b"\0" in content)
