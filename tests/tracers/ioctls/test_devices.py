"""Devices and files of ioctls, from what the kernel says of the file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from stallscope.tracers.ioctls import devices
from stallscope.tracers.ioctls.devices import device_of

CHR, BLK = stat.S_IFCHR, stat.S_IFBLK


def number(major: int, minor: int) -> int:
    """Number of a device as the kernel has it (MKDEV of linux/kdev_t.h)."""
    return major << 20 | minor


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two devices of a kernel."""
    for numbers, called in (("1:3", "null"), ("10:200", "net/tun")):
        (tmp_path / "char" / numbers).mkdir(parents=True)
        (tmp_path / "char" / numbers / "uevent").write_text(f"MAJOR=1\nDEVNAME={called}\nDEVMODE=0666\n")
    monkeypatch.setattr(devices, "_SYS", tmp_path)


@pytest.mark.parametrize(
    ("mode", "device", "filesystem", "basename", "name"),
    [
        (CHR, number(1, 3), b"devtmpfs", b"null", "/dev/null"),
        (CHR, number(10, 200), b"", b"", "/dev/net/tun"),
        (CHR, number(136, 7), b"devpts", b"7", "/dev/pts/7"),
        (CHR, number(195, 255), b"tmpfs", b"nvidiactl", "/dev/nvidiactl"),
        (CHR, number(195, 255), b"ext4", b"odd", "odd"),
        (CHR, number(195, 300), b"", b"", "char device 195:300"),
        (BLK, number(4000, 1), b"", b"", "block device 4000:1"),
        (stat.S_IFREG, 0x22, b"fuse", b"file", "file (fuse)"),
        (stat.S_IFREG, 0x22, b"", b"", "file"),
        (stat.S_IFDIR, 0x22, b"ext4", b"home", "folder (ext4)"),
        (stat.S_IFSOCK, 8, b"sockfs", b"", "socket"),
        (stat.S_IFIFO, 9, b"pipefs", b"", "pipe"),
        (0, 10, b"anon_inodefs", b"[perf_event]", "anon_inode:[perf_event]"),
        (0, 0, b"", b"", "no such descriptor"),
    ],
)
def test_names(  # noqa: PLR0917  # one case
    mode: int, device: int, filesystem: bytes, basename: bytes, name: str, known: None
) -> None:
    assert device_of(mode, device, filesystem, basename).name == name


def test_the_file_has_the_numbers_of_user_space() -> None:
    found = device_of(CHR, number(195, 254), b"devtmpfs", b"nvidia-modeset").file
    assert (found.mode, found.major, found.minor, found.path) == (CHR, 195, 254, "/dev/nvidia-modeset")
    assert device_of(stat.S_IFREG, number(8, 1), b"ext4", b"x").file[1:3] == (0, 0)


def test_a_device_of_this_machine() -> None:
    null = os.stat("/dev/null").st_rdev
    assert device_of(CHR, number(os.major(null), os.minor(null)), b"", b"").name == "/dev/null"
