"""Meaning of a command's number, against the numbers that Python's own modules have."""

from __future__ import annotations

import fcntl
import stat
import termios

import pytest
from stallscope.tracers.ioctls.commands import Parts, name, parts
from stallscope.tracers.ioctls.families import File

TTY = File(stat.S_IFCHR, 136, 0, "/dev/pts/0")
TUN = File(stat.S_IFCHR, 10, 200, "/dev/net/tun")
KVM = File(stat.S_IFCHR, 10, 232, "/dev/kvm")
DISK = File(stat.S_IFBLK, 8, 0, "/dev/sda")
LOOP = File(stat.S_IFBLK, 7, 0, "/dev/loop0")
REGULAR = File(stat.S_IFREG, 0, 0, "/tmp/x")
SOCKET = File(stat.S_IFSOCK, 0, 0, "socket:[1]")
CONTROL = File(stat.S_IFCHR, 195, 255, "/dev/nvidiactl")
UVM = File(stat.S_IFCHR, 500, 0, "/dev/nvidia-uvm")


@pytest.mark.parametrize(
    ("command", "meaning"),
    [
        (0x400454CA, Parts("_IOW", ord("T"), 202, 4)),
        (0x800454CF, Parts("_IOR", ord("T"), 207, 4)),
        (0xC020462A, Parts("_IOWR", ord("F"), 42, 32)),
        (0xAE80, Parts("_IO", 0xAE, 0x80, 0)),
        (0xFFFFFFFF, Parts("_IOWR", 0xFF, 0xFF, 0x3FFF)),
    ],
)
def test_parts(command: int, meaning: Parts) -> None:
    assert parts(command) == meaning


TERMINAL = ("TCGETS", "TCSETS", "TCSBRK", "TIOCGWINSZ", "TIOCSWINSZ", "TIOCGPGRP", "TIOCSCTTY", "TIOCSTI", "TIOCEXCL")


@pytest.mark.parametrize("called", TERMINAL)
def test_names_of_a_terminal(called: str) -> None:
    assert name(TTY, getattr(termios, called)) == called


@pytest.mark.parametrize(
    ("file", "command", "called"),
    [
        (TUN, 0x400454CA, "TUNSETIFF"),
        (TUN, 0x400454D9, "TUNSETQUEUE"),
        (KVM, 0xAE80, "KVM_RUN"),
        (DISK, 0x80081272, "BLKGETSIZE64"),
        (LOOP, 0x4C00, "LOOP_SET_FD"),
        (SOCKET, 0x8927, "SIOCGIFHWADDR"),
        (REGULAR, getattr(fcntl, "FICLONE", 0x40049409), "FICLONE"),
        (TTY, termios.FIONREAD, "FIONREAD"),
        (SOCKET, termios.FIONBIO, "FIONBIO"),
    ],
)
def test_names_of_common_devices(file: File, command: int, called: str) -> None:
    assert name(file, command) == called


def test_a_number_means_something_only_on_its_device() -> None:
    assert name(REGULAR, 1) == "FIBMAP"
    assert name(SOCKET, 1) == "0x1"
    assert name(TTY, 0x400454CA) == "0x400454ca"
    assert name(UVM, 27) == "UVM_REGISTER_CHANNEL"
    assert name(CONTROL, 27) == "0x1b"


def test_every_file_is_asked_whether_it_is_a_terminal() -> None:
    assert name(REGULAR, termios.TCGETS) == name(File(stat.S_IFIFO, 0, 0, "pipe"), termios.TCGETS) == "TCGETS"
    assert name(REGULAR, termios.TIOCGPGRP) == "TIOCGPGRP"
    assert name(KVM, termios.TCGETS) == "0x5401"
    assert name(File(stat.S_IFCHR, 240, 0, "/dev/x"), termios.TCGETS) == "0x5401"


@pytest.mark.parametrize(
    ("file", "command", "detail", "called"),
    [
        (CONTROL, 0xC020462A, 0x20800102, "NV2080_CTRL_CMD_GPU_GET_INFO_V2"),
        (CONTROL, 0xC020462A, 0x20803002, "NV2080_CTRL_CMD_NVLINK_GET_NVLINK_STATUS"),
        (CONTROL, 0xC020462A, 0x20801303, "NV2080_CTRL_CMD_FB_GET_INFO_V2"),
        (CONTROL, 0xC020462A, 0x2080FFFF, "NV_ESC_RM_CONTROL 0x2080ffff"),
        (CONTROL, 0xC020462A, 0, "NV_ESC_RM_CONTROL"),
        (CONTROL, 0xC030462B, 0x2080, "NV_ESC_RM_ALLOC NV20_SUBDEVICE_0"),
        (CONTROL, 0xC030462B, 0xFFFF, "NV_ESC_RM_ALLOC 0xffff"),
        (CONTROL, 0xC0104629, 0, "NV_ESC_RM_FREE"),
        (CONTROL, 0x00000029, 0, "NV_ESC_RM_FREE"),
        (CONTROL, 0xC9004600 | 200, 0, "NV_ESC_CARD_INFO"),
        (UVM, 0x30000001, 0, "UVM_INITIALIZE"),
        (UVM, 51, 0, "UVM_MIGRATE"),
        (UVM, 0x30000003, 0, "0x30000003"),
    ],
)
def test_names_of_nvidia(file: File, command: int, detail: int, called: str) -> None:
    assert name(file, command, detail) == called
