from __future__ import annotations

import pytest
from stallscope.tracers.base.layers import Layers

HEAD = b"""\
20 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw
21 20 8:17 / /var/lib/docker rw - xfs /dev/sdb1 rw,attr2
22 20 0:40 /sub /data rw - btrfs /dev/sdc1 rw,subvol=/sub
23 20 0:41 /sub /other\\040data rw - btrfs /dev/mapper/vg-lv rw,subvol=/sub
"""
NUMBERS = {b"/dev/sdc1": "8:33", b"/dev/mapper/vg-lv": "253:0"}


def overlay(device: str, options: str) -> bytes:
    return f"40 20 {device} / /var/lib/docker/merged/{device} rw - overlay overlay rw,{options}\n".encode()


def on(devices: list[str], *lines: bytes) -> list[str]:
    return Layers(HEAD + b"".join(lines), lambda path: NUMBERS.get(path, "")).on(devices)


def test_btrfs() -> None:
    assert on(["8:33"]) == ["0:40"]
    assert on(["8:32", "253:0"]) == ["0:41"]
    assert on(["8:2"]) == []


@pytest.mark.parametrize(
    ("options", "devices", "is_on"),
    [
        ("lowerdir=/var/lib/docker/a:/var/lib/docker/b,upperdir=/var/lib/docker/c,workdir=/w", ["8:17"], True),
        ("lowerdir=/var/lib/docker/a:/usr,upperdir=/var/lib/docker/c,workdir=/w", ["8:17"], False),
        ("lowerdir=/var/lib/docker/a:/usr,upperdir=/var/lib/docker/c,workdir=/w", ["8:17", "8:2"], True),
        ("lowerdir=/var/lib/dockers/a,upperdir=/b", ["8:2"], True),
        ("lowerdir=/data/a::/data/b,upperdir=/data/c", ["8:33"], True),
        ("lowerdir=/other\\040data/a\\134:b,upperdir=/other\\040data/c", ["253:0"], True),
        ("lowerdir+=/var/lib/docker/a,lowerdir+=/usr", ["8:17"], False),
        ("lowerdir=lower,upperdir=/var/lib/docker/c", ["8:17"], False),
        ("lowerdir=" + ":".join(["/var/lib/docker/a"] * 600), ["8:17"], False),
        ("workdir=/var/lib/docker/w", ["8:17"], False),
    ],
)
def test_overlays(options: str, devices: list[str], is_on: bool) -> None:
    assert ("0:77" in on(devices, overlay("0:77", options))) is is_on


def test_a_later_mount_hides_an_earlier_one() -> None:
    hides = b"30 20 8:49 / /var/lib/docker rw - xfs /dev/sdd1 rw\n"
    line = overlay("0:77", "lowerdir=/var/lib/docker/a,upperdir=/var/lib/docker/b")
    assert on(["8:17"], hides, line) == []
    assert on(["8:49"], hides, line) == ["0:77"]


@pytest.mark.parametrize(
    "line", [b"", b"\xff\xfe", b"1 2 3", b"1 2 0:9 / / rw - btrfs", b"1 2 0:9 - overlay x lowerdir=/"]
)
def test_malformed_lines(line: bytes) -> None:
    assert Layers(line + b"\n").on(["8:2"]) == []


def test_only_files_of_devices_are_looked_at() -> None:
    lines = b"22 20 0:40 / /d rw - btrfs /etc/passwd rw\n23 20 0:41 / /e rw - btrfs /dev/null rw\n"
    assert Layers(lines).on(["", "1:3"]) == []
