"""TCP segments that were sent again, by connection, as bpf/retransmissions.bpf.c counts them."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from ipaddress import ip_address
from typing import NamedTuple

from ....converters.model.wait_objects import EVENTS, TCP, WaitObject
from ...base.addresses import address_text
from ...kernel.bpfmap import Map
from ...kernel.bpfobject import Link, Object
from ...kernel.kernel_types import kernel_has
from ...kernel.objects import INET
from ...kernel.shapes import Shape
from .measures.protocol import Collector

PROGRAM = "tcp_resent"
LOST = "TCP segments that were sent again"
"""Kind of loss: of which connections they were is not known."""
_KEY, _VALUE = struct.Struct("<IHHHH16s16s"), struct.Struct("<QQQ")
"""struct resending_end and struct resent."""


class Resent(NamedTuple):
    """Segments of a connection that were sent again."""

    number: int = 0
    unanswered: int = 0
    """ns between two of them with no answer in between."""


class Sender(NamedTuple):
    """The end of a connection that sends."""

    netns: int
    """The inode of its network namespace."""
    local: str
    remote: str


class Retransmissions:
    """Segments that were sent again in a trace, or in an interval of one."""

    def __init__(self, found: Mapping[Sender, Resent] = {}) -> None:
        self._by_ends: dict[tuple[str, str], dict[int, Resent]] = defaultdict(dict)
        for sender, resent in found.items():
            self._by_ends[sender.local, sender.remote][sender.netns] = resent

    def told(self, what: WaitObject, netns: int, of_tcp: Collection[tuple[str, str]]) -> WaitObject:
        """The object with what was sent again on its connection, or on its connections. ``of_tcp``: both ends of each
        one of `EVENTS`."""
        pairs = of_tcp if what.kind == EVENTS else [(what.local, what.remote)] if what.kind == TCP else ()
        found = {pair: resent for pair in pairs if (resent := self.of(netns, *pair)).number}
        if not found:
            return what
        (_, remote), most = max(found.items(), key=lambda each: (each[1], each[0]))
        return replace(
            what,
            retransmissions=sum(each.number for each in found.values()),
            unanswered=most.unanswered,
            resent_with=remote if what.kind == EVENTS else "",
        )

    def of(self, netns: int, local: str, remote: str) -> Resent:
        """Segments of both ends of a connection, as far as the other end is on this host. None of one that does not
        leave the host: the loopback device loses nothing, and TCP sends again what is acknowledged late."""
        if not self._by_ends or not remote or is_within(local, remote):
            return Resent()
        own = self._by_ends.get((local, remote), {}).get(netns, Resent())
        other = self._other_end(netns, local, remote)
        return Resent(own.number + other.number, max(own.unanswered, other.unanswered))

    def _other_end(self, netns: int, local: str, remote: str) -> Resent:
        """Segments of the other end, if it is in the same namespace, or only one of all others has such an end."""
        there = self._by_ends.get((remote, local), {})
        if netns in there:
            return there[netns]
        elsewhere = list(there.values())
        return elsewhere[0] if len(elsewhere) == 1 else Resent()


def wanted(collectors: Iterable[Collector], shape: Shape) -> set[str]:
    """Name of the program, if waits have objects, and the kernel has the tracepoint."""
    of_use = any(each.knobs().get("wait_objects") for each in collectors)
    return {PROGRAM} if of_use and kernel_has("btf_trace_tcp_retransmit_skb", otherwise=shape.raw) else set()


def attached(loaded: Object) -> list[Link]:
    """The link of the program, if it was loaded."""
    program = loaded.programs[PROGRAM]
    return [program.attach()] if program.is_loaded else []


def taken(table: Map) -> Retransmissions:
    """Retransmissions since the last call."""
    return Retransmissions(dict(_parsed(key, value) for key, value in table.take()))


def _parsed(key: bytes, value: bytes) -> tuple[Sender, Resent]:
    netns, family, local_port, remote_port, _, local, remote = _KEY.unpack(key)
    length = 4 if family == INET else None
    ends = (address_text(local[:length], local_port), address_text(remote[:length], remote_port))
    number, unanswered, _ = _VALUE.unpack(value)
    return Sender(netns, *ends), Resent(number, unanswered)


def is_within(local: str, remote: str) -> bool:
    """Whether a connection is one of a host, or of a namespace, with itself."""
    address = _address(local)
    return address == _address(remote) or ip_address(address).is_loopback


def _address(end: str) -> str:
    return end.rpartition(":")[0].strip("[]")
