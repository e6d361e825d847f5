"""Addresses and states of sockets, as the kernel has them."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

LISTENS = 10
"""TCP_LISTEN of include/net/tcp_states.h; sockets of other families use it, too."""


def address_text(address: bytes, port: int) -> str:
    """``10.0.0.5:5432``, ``[::1]:80``; an IPv4 address that is mapped into IPv6 is told as such a one."""
    if len(address) == 4:
        return f"{IPv4Address(address)}:{port}"
    long = IPv6Address(address)
    return f"{long.ipv4_mapped}:{port}" if long.ipv4_mapped else f"[{long}]:{port}"
