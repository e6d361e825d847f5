"""Sockets that wait for connections, with their accept queues, by sock_diag(7): /proc tells only how many wait.

Formats: struct inet_diag_req_v2 and inet_diag_msg of include/uapi/linux/inet_diag.h. Of a socket that listens, the
receive queue is the number of connections that are not accepted yet, and the send queue is its backlog
(tcp_diag_get_info() of net/ipv4/tcp_diag.c).
"""

from __future__ import annotations

import socket
import struct
import time
from typing import NamedTuple

from .addresses import LISTENS, address_text
from .networks import diagnoses

_BY_FAMILY, _REQUEST_DUMP = 20, 0x301
"""include/uapi/linux/netlink.h and sock_diag.h."""
_HEAD = struct.Struct("=IHHII")
"""struct nlmsghdr."""
_REQUEST = struct.Struct("=BBBBI48x")
_ANSWER = struct.Struct("=BBBB2s2s16s16s12xIIIII")
_DONE, _ERROR = 3, 2
_PATIENCE, _LONGEST = 0.2, 0.5
"""Seconds for an answer, and for all of them."""
_MOST = 1 << 14
"""Sockets that are kept."""


class Listener(NamedTuple):
    """A TCP socket that waits for connections."""

    inode: int
    local: str
    queued: int
    """Connections that wait to be accepted."""
    backlog: int
    """Maximum of these; 0: it is not known."""


def listeners_of(pid: int) -> list[Listener]:
    """Sockets of a process's network namespace; [] if they cannot be asked for."""
    try:
        return [each for family in (socket.AF_INET, socket.AF_INET6) for each in _dumped(pid, family)]
    except OSError:
        return []


def _dumped(pid: int, family: int) -> list[Listener]:
    found: list[Listener] = []
    until = time.monotonic() + _LONGEST
    with diagnoses(pid) as asked:
        asked.settimeout(_PATIENCE)
        body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, 1 << LISTENS)
        asked.send(_HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, _REQUEST_DUMP, 1, 0) + body)
        while time.monotonic() < until and len(found) < _MOST:
            some, ended = parse_listeners(asked.recv(1 << 16))
            found += some
            if ended:
                break
    return found


def parse_listeners(data: bytes) -> tuple[list[Listener], bool]:
    """Sockets in one part of an answer, and whether it is the last one."""
    found: list[Listener] = []
    at = 0
    while at + _HEAD.size <= len(data):
        size, kind, *_ = _HEAD.unpack_from(data, at)
        if kind in (_DONE, _ERROR) or size < _HEAD.size:
            return found, True
        if kind == _BY_FAMILY and size >= _HEAD.size + _ANSWER.size and at + size <= len(data):
            family, state, _, _, port, _, address, _, _, queued, backlog, _, inode = _ANSWER.unpack_from(
                data, at + _HEAD.size
            )
            if state == LISTENS:
                own = address[:4] if family == socket.AF_INET else address
                found.append(Listener(inode, address_text(own, int.from_bytes(port, "big")), queued, backlog))
        at += size + 3 & ~3
    return found, not data
