from __future__ import annotations

from stallscope.tracers.base import filesystems


def test_names() -> None:
    assert filesystems.name_of(0x6969) == "nfs"
    assert filesystems.name_of(0xFF534D42) == filesystems.name_of(0xFFFFFFFFFF534D42) == "cifs"
    assert filesystems.name_of(1) == ""
