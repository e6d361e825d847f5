"""Other ends of Unix sockets, by sock_diag(7): /proc does not tell them."""

from __future__ import annotations

import socket
import struct

from .networks import diagnoses

_BY_FAMILY = 20
"""include/uapi/linux/netlink.h and sock_diag.h."""
_HEAD = struct.Struct("=IHHII")
"""struct nlmsghdr."""
_REQUEST = struct.Struct("=BBHIIIII")
"""struct unix_diag_req of include/uapi/linux/unix_diag.h."""
_ANSWER = 16
"""Bytes of struct unix_diag_msg."""
_SHOW_PEER, _PEER = 4, 2
"""UDIAG_SHOW_PEER and UNIX_DIAG_PEER."""
_ANY_COOKIE, _ANY_STATE = 0xFFFFFFFF, 0xFFFFFFFF
_PATIENCE = 0.2


def peer_of(pid: int, inode: int) -> int:
    """The inode of the other end of a Unix socket of a process; 0 if it has none, or if that cannot be asked for."""
    try:
        with diagnoses(pid) as asked:
            asked.settimeout(_PATIENCE)
            body = _REQUEST.pack(
                socket.AF_UNIX, 0, 0, _ANY_STATE, inode & 0xFFFFFFFF, _SHOW_PEER, _ANY_COOKIE, _ANY_COOKIE
            )
            asked.send(_HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, 1, 1, 0) + body)
            return parse_peer(asked.recv(1 << 12))
    except OSError:
        return 0


def parse_peer(data: bytes) -> int:
    """The inode in an answer; 0 without one."""
    if len(data) < _HEAD.size + _ANSWER or _HEAD.unpack_from(data)[1] != _BY_FAMILY:
        return 0
    at = _HEAD.size + _ANSWER
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, at)
        if size < 4:
            return 0
        if kind == _PEER and size == 8 and at + 8 <= len(data):
            return int(struct.unpack_from("=I", data, at + 4)[0])
        at += size + 3 & ~3
    return 0
