"""Answers of sock_diag(7) on a TCP socket."""

from __future__ import annotations

import socket
import struct

OWN, OTHER = "127.0.0.1:80", "127.0.0.1:5000"


def answer(port: int = 80, other: int = 5000, address: bytes = b"\x7f\0\0\1" + bytes(12), kind: int = 20) -> bytes:
    """An answer without attributes."""
    body = struct.pack("=BBBB", socket.AF_INET, 1, 0, 0) + port.to_bytes(2, "big") + other.to_bytes(2, "big")
    body += address + address + bytes(12) + struct.pack("=IIIII", 0, 0, 0, 0, 77)
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 0) + body
