"""Owners of the file systems that files are on: in the process that reads, see `child`."""

from __future__ import annotations

import ctypes
import fcntl
import os

from .lookups import head_of

_NS_GET_USERNS = 0xB701
"""ioctl_ns(2)."""
_MOST = 16 << 20
"""Bytes of a mountinfo."""

KERNEL_BACKED = frozenset(
    (
        # ext2-4, XFS, Btrfs, F2FS, tmpfs, ramfs, hugetlbfs, SquashFS, EROFS, ZFS, bcachefs, ISO 9660, UDF, FAT, exFAT,
        # NTFS3, JFS, NILFS2, cramfs
        *(0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x01021994, 0x858458F6, 0x958458F6, 0x73717368, 0xE0F5E1E2),
        *(0x2FC12FC1, 0xCA451A4E, 0x9660, 0x15013346, 0x4D44, 0x2011BAB0, 0x7366746E, 0x3153464A, 0x3434, 0x28CD3D45),
        # NFS, SMB (three), Ceph, Lustre, GPFS, AFS, OCFS2, GFS2, 9P, BeeGFS
        *(0x6969, 0x517B, 0xFF534D42, 0xFE534D42, 0x00C36400, 0x0BD00BD0, 0x47504653, 0x5346414F, 0x7461636F),
        *(0x01161970, 0x01021997, 0x19830326),
    )
)
"""f_type of statfs(2) of file systems that only the administrator mounts, or whose files are in the kernel's memory: no
ordinary user can keep a reader waiting. FUSE and overlays can be mounted by anybody in a user namespace."""

_libc = ctypes.CDLL(None, use_errno=True)


class Mounts:
    """Mounts that ordinary users cannot have made; ``pid``: a process that has some of them, 0: none."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._users: dict[int, int | None] = {}
        """Users by mount: `user_id`."""

    def are_trusted(self, fd: int) -> bool:
        """Whether the file system of an open file is the kernel's own, or was mounted by the administrator."""
        status = (ctypes.c_long * 64)()  # struct statfs has at most 15; f_type is the first
        if not _libc.fstatfs(fd, status) and status[0] & 0xFFFFFFFF in KERNEL_BACKED:
            return True
        return self.user_id(fd) == 0

    def user_id(self, fd: int) -> int | None:
        """The uid of the user for whom the file system of an open file was mounted in a namespace of the
        administrator's, which is not asked; 0: his own. None if it is in another user's namespace, or not known."""
        mount = mount_of(fd)
        if mount is None:
            return None
        if mount not in self._users:
            kind = kind_of_mount(head_of("/proc/self/mountinfo", _MOST) or b"", mount)
            if kind is None and self._pid:
                kind = self._of_process(mount)
            self._users[mount] = None if kind is None else user_of_kind(*kind)
        return self._users[mount]

    def _of_process(self, mount: int) -> tuple[bytes, bytes] | None:
        """Type and options of a mount as the process's mount namespace has them, if that belongs to our user namespace:
        in others, users mount."""
        link = f"/proc/{self._pid}/ns/mnt"
        space = owner = -1
        try:
            space = os.open(link, os.O_RDONLY | os.O_CLOEXEC)
            owner = fcntl.ioctl(space, _NS_GET_USERNS)
            text = head_of(f"/proc/{self._pid}/mountinfo", _MOST) or b""
            same = os.path.samestat(os.stat(link), os.fstat(space))
            ours = os.path.samestat(os.stat("/proc/self/ns/user"), os.fstat(owner))
        except OSError:
            return None
        finally:
            for fd in (space, owner):
                if fd >= 0:
                    os.close(fd)
        return kind_of_mount(text, mount) if same and ours else None


def mount_of(fd: int) -> int | None:
    """The number of the mount of an open file: proc(5), fdinfo. The file keeps it from being used again."""
    for line in (head_of(f"/proc/self/fdinfo/{fd}", 4096) or b"").splitlines():
        if line.startswith(b"mnt_id:"):
            return int(line[7:])
    return None


def kind_of_mount(text: bytes, mount: int) -> tuple[bytes, bytes] | None:
    """The type and the options of the file system of a mount, as /proc/PID/mountinfo has it (proc(5))."""
    for line in text.split(b"\n"):  # a path can have any other end of a line
        if line.startswith(b"%d " % mount):
            words = line.partition(b" - ")[2].split(b" ")
            return (words[0], words[2]) if len(words) == 3 else None
    return None


def user_of_kind(kind: bytes, options: bytes) -> int | None:
    """User for whom a file system in the administrator's mount namespace is: users mount FUSE there by fusermount."""
    if kind not in {b"fuse", b"fuseblk"} and not kind.startswith(b"fuse."):
        return 0
    for option in options.split(b","):
        if option.startswith(b"user_id="):
            return int(option[8:])
    return None
