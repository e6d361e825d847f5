"""File systems that ordinary users can make wait."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from stallscope.tracers.outside.mounts import Mounts, kind_of_mount, mount_of, user_of_kind

TEXT = b"""\
25 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
40 25 0:44 / /home/a/mnt rw,nosuid,nodev - fuse.sshfs a@b:/x\\040user_id=0 rw,user_id=1000,group_id=1000
41 25 0:45 / /cloud rw - fuse.gcs bucket rw,user_id=0,group_id=0,allow_other
42 25 0:46 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw,lowerdir=/a,upperdir=/b
43 25 0:47 / /broken
"""


@pytest.mark.parametrize(
    ("mount", "user"),
    [(25, 0), (40, 1000), (41, 0), (42, 0)],
    ids=["ext4", "sshfs", "root's", "docker"],
)
def test_mounts_of_the_administrators_namespace(mount: int, user: int) -> None:
    kind = kind_of_mount(TEXT, mount)
    assert kind is not None
    assert user_of_kind(*kind) == user


def test_a_mount_that_pretends_to_be_another_one() -> None:
    """The kernel escapes spaces, tabs, newlines and backslashes of a path, and no other end of a line."""
    other = b"39 25 0:43 / /home/a/\r40 rw - overlay overlay rw\n"
    assert kind_of_mount(other + TEXT, 40) == (b"fuse.sshfs", b"rw,user_id=1000,group_id=1000")


@pytest.mark.parametrize("mount", [0, 4, 43, 99])
def test_unknown_mounts(mount: int) -> None:
    assert kind_of_mount(TEXT, mount) is None


def test_files_here(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    fd = os.open(tmp_path / "file", os.O_PATH)
    assert mount_of(fd) is not None
    assert Mounts(0).are_trusted(fd)
    assert Mounts(0).user_id(fd) == 0
    os.close(fd)
    fd = os.memfd_create("of the kernel")
    assert Mounts(0).are_trusted(fd)
    assert Mounts(0).user_id(fd) is None
    os.close(fd)
