"""One TCP socket by both of its ends, by sock_diag(7): tables of very many sockets are not read to their end.

Formats: struct inet_diag_req_v2, inet_diag_sockid and inet_diag_msg of include/uapi/linux/inet_diag.h.
"""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

from .networks import diagnoses

_BY_FAMILY, _REQUEST = 20, 1
"""include/uapi/linux/netlink.h and sock_diag.h."""
_HEAD = struct.Struct("=IHHII")
"""struct nlmsghdr."""
_ASKED = struct.Struct("=BBBBI2s2s16s16sIII")
_ANSWER = struct.Struct("=BBBB2s2s16s16s12xIIIII")
_ANY_STATE, _ANY_COOKIE = 0xFFFFFFFF, 0xFFFFFFFF
INFO = 2
"""INET_DIAG_INFO: the attribute of an answer with what TCP knows of the connection."""
_PATIENCE = 0.2


class Answer(NamedTuple):
    """A socket that was found."""

    inode: int
    attributes: bytes
    """struct nlattr, one after the other."""


def inode_of(pid: int, own: str, other: str) -> int:
    """The inode of the socket with these ends in a process's network namespace; 0 if there is none, or if it cannot be
    asked for. Both are texts like ``10.0.0.5:80`` and ``[::1]:80``."""
    if not (request := request_for(own, other)):
        return 0
    try:
        with diagnoses(pid) as asked:
            asked.settimeout(_PATIENCE)
            asked.send(request)
            return parse_inode(asked.recv(1 << 12), own, other)
    except OSError:
        return 0


def request_for(own: str, other: str, attribute: int = 0) -> bytes:
    """A message that asks for the socket with these ends, and for an attribute of it; empty if they are no ends."""
    ends = [_parsed(end) for end in (own, other)]
    if None in ends or len({len(end[0]) for end in ends if end}) != 1:
        return b""
    (source, port), (target, target_port) = (end for end in ends if end)
    family = socket.AF_INET if len(source) == len(bytes(4)) else socket.AF_INET6
    extensions = 1 << attribute - 1 if attribute else 0
    body = _ASKED.pack(
        *(family, socket.IPPROTO_TCP, extensions, 0, _ANY_STATE),
        *(port.to_bytes(2, "big"), target_port.to_bytes(2, "big"), source, target, 0, _ANY_COOKIE, _ANY_COOKIE),
    )
    return _HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body


def parse_inode(data: bytes, own: str, other: str) -> int:
    """The inode in an answer; 0 if it is of another socket."""
    answer = answer_of(data, own, other)
    return answer.inode if answer else 0


def answer_of(data: bytes, own: str, other: str) -> Answer | None:
    """The socket in an answer; None if there is none, or if it is another one."""
    if len(data) < _HEAD.size + _ANSWER.size or _HEAD.unpack_from(data)[1] != _BY_FAMILY:
        return None
    _, _, _, _, port, target_port, source, target, _, _, _, _, inode = _ANSWER.unpack_from(data, _HEAD.size)
    for text, address, number in ((own, source, port), (other, target, target_port)):
        end = _parsed(text)
        # A socket for both versions has an IPv4 address as ::ffff:a.b.c.d.
        if end is None or (not address.startswith(end[0]) and not address.endswith(end[0])):
            return None
        if int.from_bytes(number, "big") != end[1]:
            return None
    return Answer(inode, data[_HEAD.size + _ANSWER.size :])


def _parsed(text: str) -> tuple[bytes, int] | None:
    """Address and port; None for anything else."""
    address, _, port = text.rpartition(":")
    try:
        family = socket.AF_INET6 if address.startswith("[") else socket.AF_INET
        number = int(port)
        packed = socket.inet_pton(family, address.strip("[]"))
    except (OSError, ValueError):
        return None
    return (packed, number) if 0 <= number < 1 << 16 else None
