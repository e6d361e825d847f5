"""Objects of waits, as the probes tell them: struct object_record of bpf/include/records.h."""

from __future__ import annotations

import stat
import struct
from typing import NamedTuple

from ..base.addresses import LISTENS, address_text

RECORD = struct.Struct("<IIQQQQQ6I6HI16s16s")
UNIX, INET, INET6 = 1, 2, 10
"""Families: include/linux/socket.h."""
TCP, UDP = 6, 17
"""Protocols: include/uapi/linux/in.h."""
READS, WRITES = 1, 2
_SEVERAL = (1 << 32) - 2
"""Instead of a descriptor: SEVERAL of bpf/include/descriptors.bpf.h."""
_MINOR_BITS = 20
"""Bits of the kernel's own numbers of devices: include/linux/kdev_t.h."""


class ObjectRecord(NamedTuple):
    """A file, pipe, socket or device on which a thread waited first."""

    tgid: int
    id: int
    inode: int
    magic: int
    """Magic number of its file system, as statfs(2) has it."""
    peer: int
    """Inode of the Unix socket at the other end; 0: none."""
    address: int
    """Address of a page fault, which has no descriptor; else 0."""
    dev: int
    rdev: int
    mode: int
    fd: int
    netns: int
    """The inode of its network namespace."""
    access: int
    """`READS` or `WRITES`, or both, of a pipe's end."""
    family: int
    socket_type: int
    protocol: int
    state: int
    local_port: int
    remote_port: int
    tid: int
    """Thread whose descriptor ``fd`` is: a thread can have a table of its own."""
    local: bytes
    remote: bytes

    @property
    def is_several(self) -> bool:
        """Whether it stands for several descriptors of poll() or select(), which are not told one by one."""
        return self.fd == _SEVERAL

    @property
    def device(self) -> str:
        """The file system's number, as mountinfo has it."""
        return device_text(self.dev)

    @property
    def kind(self) -> int:
        """The type of file, as in ``st_mode``; 0: it has none."""
        return stat.S_IFMT(self.mode)

    @property
    def listens(self) -> bool:
        """Whether it is a socket that waits for connections."""
        return bool(self.family) and self.state == LISTENS

    @property
    def ends(self) -> tuple[str, str]:
        """Both ends of an internet socket, as ``10.0.0.5:5432`` or ``[::1]:80``; "" without one."""
        return (
            _address(self.family, self.local, self.local_port),
            _address(self.family, self.remote, self.remote_port) if self.remote_port else "",
        )


def parse_object(data: bytes) -> ObjectRecord:
    """A record of the ring."""
    return ObjectRecord(*RECORD.unpack_from(data)[1:])


def device_text(number: int) -> str:
    """``8:1``"""
    return f"{number >> _MINOR_BITS}:{number & (1 << _MINOR_BITS) - 1}"


def _address(family: int, address: bytes, port: int) -> str:
    return address_text(address[:4] if family == INET else address, port)
