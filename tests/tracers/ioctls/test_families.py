"""Commands that a file understands."""

from __future__ import annotations

import os
import stat

import pytest
from stallscope.tracers.ioctls.families import File, family_of


@pytest.mark.parametrize(
    ("kind", "major", "minor", "path", "family"),
    [
        (stat.S_IFCHR, 136, 3, "/dev/pts/3", "tty"),
        (stat.S_IFCHR, 5, 2, "/dev/ptmx", "tty"),
        (stat.S_IFCHR, 10, 200, "/dev/net/tun", "tun"),
        (stat.S_IFCHR, 10, 200, "", "tun"),
        (stat.S_IFCHR, 195, 255, "/dev/nvidiactl", "nvidia"),
        (stat.S_IFCHR, 511, 0, "/dev/nvidia-uvm", "nvidia-uvm"),
        (stat.S_IFCHR, 511, 0, "/tmp/nvidia-uvm", ""),
        (stat.S_IFREG, 0, 0, "/dev/nvidia-uvm", ""),
        (stat.S_IFCHR, 1, 9, "/dev/urandom", "random"),
        (stat.S_IFCHR, 1, 3, "/dev/null", ""),
        (stat.S_IFBLK, 7, 0, "/dev/loop0", "loop"),
        (stat.S_IFBLK, 8, 0, "/dev/sda", "block"),
        (stat.S_IFSOCK, 0, 0, "socket:[4711]", "socket"),
        (stat.S_IFREG, 0, 0, "/tmp/x", ""),
        (0, 0, 0, "anon_inode:[perf_event]", "perf"),
        (0, 0, 0, "anon_inode:kvm-vcpu:0", "kvm"),
        (stat.S_IFDIR, 0, 0, "/", ""),
    ],
)
def test_family(kind: int, major: int, minor: int, path: str, family: str) -> None:
    assert family_of(File(kind | 0o600, major, minor, path)) == family


def test_a_device_of_this_machine() -> None:
    found = os.stat("/dev/tty")
    assert family_of(File(found.st_mode, os.major(found.st_rdev), os.minor(found.st_rdev), "/dev/tty")) == "tty"
