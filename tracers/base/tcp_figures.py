"""Figures that TCP keeps of a connection: round trips, rates, and what was in the way of what was to be sent.

Formats: struct inet_diag_msg of include/uapi/linux/inet_diag.h, and struct tcp_info of include/uapi/linux/tcp.h, which
has grown at its end: what an older kernel does not have is 0.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import NamedTuple

from .networks import diagnoses
from .socket_lookup import INFO, answer_of, request_for

_PATIENCE = 0.2
"""Seconds for an answer."""
_ATTRIBUTE = struct.Struct("=HH")
"""struct nlattr."""
_KEPT = struct.Struct("=7xB8xI48xI48xQQ8xIII4xQQQQ")
"""The fields of `TcpFigures` in struct tcp_info, in its order."""
_UNKNOWN = (1 << 32) - 1
"""Least round trip before there is one: tcp_init_sock() of net/ipv4/tcp.c."""


class TcpFigures(NamedTuple):
    """Figures of one end. Times in µs; numbers and times from `acked` on count from the connection's begin."""

    flags: int
    """Bit 0: there was not more to send when `rate` was measured."""
    segment: int
    """Most bytes of one that is sent."""
    round_trip: int
    """Smoothed; with the time that what was sent has waited on its way."""
    acked: int
    """Bytes that the other end has acknowledged."""
    received: int
    """Bytes."""
    unsent: int
    """Bytes that wait to be sent now."""
    least_round_trip: int
    """Least of the last five minutes (net.ipv4.tcp_min_rtt_wlen); 0: there was none."""
    segments_received: int
    """Segments with data."""
    rate: int
    """Bytes a second that have reached the other end when last measured while there was more to send, or most of them,
    if there never was."""
    busy: int
    """Time with something sent, or to be sent, that is not acknowledged."""
    window_limited: int
    """Part of `busy` in which the other end's window was full."""
    buffer_limited: int
    """Part of `busy` in which the buffer was too small."""

    @property
    def has_more(self) -> bool:
        """Whether there was more to send than was under way, now or when `rate` was measured."""
        return bool(self.unsent or not self.flags & 1)


def figures_of(pid: int, ends: Collection[tuple[str, str]]) -> dict[tuple[str, str], TcpFigures]:
    """Figures of TCP connections of a process's network namespace, by their ends, its own first; without those that
    it does not have, or that cannot be asked for."""
    found: dict[tuple[str, str], TcpFigures] = {}
    if not ends:
        return found
    try:
        with diagnoses(pid) as asked:
            asked.settimeout(_PATIENCE)
            for own, other in ends:
                if request := request_for(own, other, INFO):
                    asked.send(request)
                    if figures := parse_figures(asked.recv(1 << 12), own, other):
                        found[own, other] = figures
    except OSError:
        pass
    return found


def parse_figures(data: bytes, own: str, other: str) -> TcpFigures | None:
    """Figures in an answer; None if there are none, or if it is of another socket."""
    answer = answer_of(data, own, other)
    at = 0
    attributes = answer.attributes if answer else b""
    while at + _ATTRIBUTE.size <= len(attributes):
        size, kind = _ATTRIBUTE.unpack_from(attributes, at)
        if size < _ATTRIBUTE.size:
            return None
        if kind == INFO:
            return _kept(attributes[at + _ATTRIBUTE.size : at + size])
        at += size + 3 & ~3
    return None


def _kept(info: bytes) -> TcpFigures:
    made = TcpFigures(*_KEPT.unpack_from(info.ljust(_KEPT.size, b"\0")))
    return made._replace(least_round_trip=0) if made.least_round_trip == _UNKNOWN else made
