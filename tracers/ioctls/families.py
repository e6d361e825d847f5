"""The family of commands that a file understands, from its kind, its device number and its path."""

from __future__ import annotations

import re
import stat
from typing import NamedTuple

NVIDIA, UVM = "nvidia", "nvidia-uvm"


class File(NamedTuple):
    """File that an ioctl was called on. ``mode``: st_mode; ``rdev``: of a device, else 0; ``path``: "" if not known."""

    mode: int
    major: int
    minor: int
    path: str


_CHARACTER = {
    4: "tty",
    5: "tty",
    13: "input",
    21: "block",  # sg: the commands of SCSI disks
    81: "video",
    89: "i2c",
    90: "mtd",
    108: "ppp",
    116: "sound",
    **dict.fromkeys(range(136, 144), "tty"),
    153: "spi",
    188: "tty",
    189: "usb",
    195: NVIDIA,
    204: "tty",
    226: "drm",
    229: "tty",
    231: "rdma",
}
"""Majors of character devices: Documentation/admin-guide/devices.txt of Linux."""
_MISC = {
    126: "userfaultfd",
    130: "watchdog",
    135: "rtc",
    196: "vfio",
    200: "tun",
    223: "uinput",
    229: "fuse",
    232: "kvm",
    234: "btrfs",
    235: "autofs",
    236: "dm",
    237: "loop",
    238: "vhost",
    241: "vhost",
}
"""Minors of major 10."""
_MINORS = {1: {8: "random", 9: "random"}, 10: _MISC}
"""Majors whose devices have nothing in common."""
_BLOCK = {7: "loop", 9: "md", 43: "nbd"}
_PATHS = (
    (re.compile(r"/dev/nvidia-uvm(-tools)?"), UVM),
    (re.compile(r"/dev/nvidia(ctl|-modeset|\d+)"), NVIDIA),
    (re.compile(r"/dev/dri/.*"), "drm"),
    (re.compile(r"/dev/kfd"), "kfd"),
    (re.compile(r"/dev/rtc\d*"), "rtc"),
    (re.compile(r"/dev/watchdog\d*"), "watchdog"),
    (re.compile(r"/dev/nvme\d+"), "nvme"),
    (re.compile(r"/dev/hidraw\d+"), "hidraw"),
    (re.compile(r"/dev/media\d+"), "media"),
    (re.compile(r"/dev/gpiochip\d+"), "gpio"),
    (re.compile(r"/dev/ptp\d+"), "ptp"),
    (re.compile(r"/dev/pps\d+"), "pps"),
    (re.compile(r"/dev/ipmi.*"), "ipmi"),
    (re.compile(r"/dev/vfio/.*"), "vfio"),
    (re.compile(r"/dev/vhost-.*"), "vhost"),
    (re.compile(r"/dev/infiniband/.*"), "rdma"),
    (re.compile(r"/dev/dma_heap/.*"), "dmaheap"),
    (re.compile(r"/dev/udmabuf"), "udmabuf"),
    (re.compile(r"/dev/tap\d+"), "tun"),
    (re.compile(r"/dev/(binderfs/)?(hw|vnd)?binder"), "binder"),
    (re.compile(r"/dev/sgx.*"), "sgx"),
)
"""Devices whose numbers are given at run time. Of a character device only."""
_ANONYMOUS = (
    (re.compile(r"anon_inode:\[?perf_event\]?"), "perf"),
    (re.compile(r"anon_inode:kvm-.*"), "kvm"),
    (re.compile(r"anon_inode:\[?userfaultfd\]?"), "userfaultfd"),
    (re.compile(r"anon_inode:seccomp notify"), "seccomp"),
    (re.compile(r"anon_inode:sync_file"), "sync"),
    (re.compile(r"anon_inode:\[?vfio-.*"), "vfio"),
    (re.compile(r"/dmabuf:.*"), "dmabuf"),
    (re.compile(r"(user|mnt|net|pid|uts|ipc|cgroup|time):\[\d+\]"), "namespace"),
)
"""Files without a name in a file system, as /proc/PID/fd shows them."""


def family_of(file: File) -> str:
    """The family, as the first column of the table names it; "" for a file that is not of a known device."""
    if stat.S_ISSOCK(file.mode):
        return "socket"
    if stat.S_ISBLK(file.mode):
        return _BLOCK.get(file.major, "block")
    if stat.S_ISCHR(file.mode):
        return _of_numbers(file) or next((family for path, family in _PATHS if path.fullmatch(file.path)), "")
    return next((family for path, family in _ANONYMOUS if path.fullmatch(file.path)), "")


def _of_numbers(file: File) -> str:
    if file.major in _MINORS:
        return _MINORS[file.major].get(file.minor, "")
    return _CHARACTER.get(file.major, "")
