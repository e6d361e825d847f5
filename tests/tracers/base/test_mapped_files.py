from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest
from stallscope.tracers.base.mapped_files import parse_path, path_at

LINES = (
    b"55d0c0a00000-55d0c0a10000 r--p 00000000 fe:00 12 /data/a b\n"
    b"7f0000000000-7f0000010000 rw-s 00001000 00:01 13 /dev/zero (deleted)\n"
    b"7f0000010000-7f0000020000 rw-p 00000000 00:00 0 \n"
    b"7f0000020000-7f0000030000 r--p 00000000 fe:00 14 /data/x\\012y\xff\n"
)


@pytest.mark.parametrize(
    ("address", "device", "inode", "path"),
    [
        (0x55D0C0A00000, "254:0", 12, "/data/a b"),
        (0x55D0C0A0FFFF, "0:40", 12, "/data/a b"),  # of btrfs, maps tell the number of a subvolume
        (0x55D0C0A10000, "254:0", 12, "/data/a b"),  # mapped elsewhere by now
        (0x55D0C0A10000, "254:1", 12, ""),
        (0x55D0C0A10000, "254:0", 15, ""),
        (0x55D0C0A00000, "0:1", 13, ""),  # another file is there by now
        (0x7F0000000001, "0:1", 13, "/dev/zero (deleted)"),
        (0x7F0000010001, "0:0", 0, ""),
        (0x7F0000020001, "254:0", 14, "/data/x\ny\udcff"),
        (1 << 64, "254:1", 12, ""),
    ],
)
def test_what_is_mapped(address: int, device: str, inode: int, path: str) -> None:
    assert parse_path(LINES, address, device, inode) == path


@pytest.mark.parametrize("line", [b"", b"\xff\n", b"zz-1 r--p 0 0:0 1 /x\n", b"1" * 17 + b"-2 r--p 0 0:0 1 /x\n"])
def test_malformed_lines(line: bytes) -> None:
    assert parse_path(line + LINES, 0x55D0C0A00000, "254:0", 12) == "/data/a b"


def test_of_this_process(tmp_path: Path) -> None:
    path = tmp_path / "mapped"
    path.write_bytes(bytes(1 << 16))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        inode = path.stat().st_ino
        (line,) = [each for each in Path("/proc/self/maps").read_text().splitlines() if str(path) in each]
        assert path_at(os.getpid(), int(line.partition("-")[0], 16), "", inode) == str(path)
    assert path_at(1 << 30, 0, "", inode) == ""
