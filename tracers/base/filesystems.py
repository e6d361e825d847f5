"""Names of file systems by the number in their super block: include/uapi/linux/magic.h, and the file systems' own."""

from __future__ import annotations

ANONYMOUS, PIPES, TERMINALS = 0x09041934, 0x50495045, 0x1CD1
"""Magic numbers of anonymous inodes, of pipes without a name, and of pseudo-terminals."""

_NAMES = {
    0xEF53: "ext4",  # ext2 and ext3, too
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0xF2F52010: "f2fs",
    0x2FC12FC1: "zfs",
    0xCA451A4E: "bcachefs",
    0x01021994: "tmpfs",
    0x794C7630: "overlay",
    0x73717368: "squashfs",
    0x65735546: "fuse",
    0x6969: "nfs",
    0x517B: "smb",
    0xFF534D42: "cifs",
    0xFE534D42: "smb2",
    0x00C36400: "ceph",
    0x0BD00BD0: "lustre",
    0x47504653: "gpfs",
    0x5346414F: "afs",
    0x01021997: "9p",
    0x19830326: "beegfs",
    0x9FA0: "proc",
    0x62656572: "sysfs",
    0x64626720: "debugfs",
    0x74726163: "tracefs",
    0x63677270: "cgroup2",
    TERMINALS: "devpts",
}


def name_of(magic: int) -> str:
    """Name as mount(8) has it; "" if it is not known."""
    return _NAMES.get(magic & 0xFFFFFFFF, "")
