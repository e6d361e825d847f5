from __future__ import annotations

import os
import socket
import struct

import pytest
from stallscope.tracers.base.listeners import Listener, listeners_of, parse_listeners
from stallscope.tracers.base.socket_tables import InternetSocket, SocketTables, tables_of

DONE = struct.pack("=IHHII", 20, 3, 2, 1, 0) + bytes(4)


def message(
    inode: int, port: int, queued: int, backlog: int, *, state: int = 10, family: int = socket.AF_INET, kind: int = 20
) -> bytes:
    address = (b"\x7f\0\0\1" + bytes(12)) if family == socket.AF_INET else bytes(16)
    body = struct.pack("=BBBB", family, state, 0, 0) + port.to_bytes(2, "big") + bytes(2) + address + bytes(16 + 12)
    body += struct.pack("=IIIII", 0, queued, backlog, 0, inode)
    return struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body


def test_an_answer() -> None:
    text = message(7, 80, 3, 128) + message(8, 443, 0, 5, family=socket.AF_INET6)
    assert parse_listeners(text) == ([Listener(7, "127.0.0.1:80", 3, 128), Listener(8, "[::]:443", 0, 5)], False)
    assert parse_listeners(text + DONE) == (parse_listeners(text)[0], True)


@pytest.mark.parametrize(
    "data",
    [
        message(7, 80, 3, 128, state=1),
        message(7, 80, 3, 128, kind=19),
        message(7, 80, 3, 128)[:-1],
        struct.pack("=IHHII", 1 << 31, 20, 2, 1, 0),
        struct.pack("=IHHII", 15, 20, 2, 1, 0),
        struct.pack("=IHHII", 36, 2, 0, 1, 0) + bytes(20),
        b"\xff" * 7,
        b"",
    ],
)
def test_anything_else(data: bytes) -> None:
    assert parse_listeners(data)[0] == []


def test_of_this_host() -> None:
    server = socket.create_server(("127.0.0.1", 0), backlog=3)
    address = server.getsockname()
    with server, socket.create_connection(address), socket.create_connection(address):
        inode = os.fstat(server.fileno()).st_ino
        (found,) = [each for each in listeners_of(os.getpid()) if each.inode == inode]
        assert found == Listener(inode, f"127.0.0.1:{address[1]}", 2, 3)
        assert tables_of(os.getpid()).listener(found.local, found.local) == found
    assert listeners_of(1 << 30) == []


LOCAL = [InternetSocket(1, "tcp", "0.0.0.0:80", "", True, 4), InternetSocket(2, "tcp", "10.0.0.5:81", "", True)]


@pytest.mark.parametrize(
    ("local", "remote", "inode"),
    [
        ("127.0.0.1:5000", "127.0.0.1:80", 1),
        ("10.0.0.5:5000", "10.0.0.5:80", 1),
        ("10.0.0.5:5000", "10.0.0.5:81", 2),
        ("10.0.0.5:5000", "10.0.0.6:80", 0),  # may be another host
        ("127.0.0.1:5000", "127.0.0.1:81", 0),
        ("10.0.0.5:5000", "10.0.0.5:82", 0),
        ("", "127.0.0.1:80", 0),
        ("[::1]:5000", "[::1]:80", 0),  # that one is not for IPv6
    ],
)
def test_who_listens_at_an_address(local: str, remote: str, inode: int) -> None:
    found = SocketTables(LOCAL, {}).listener(local, remote)
    assert (found.inode if found else 0) == inode


def test_queues() -> None:
    tables = SocketTables(LOCAL, {})
    assert tables.listener("127.0.0.1:1", "127.0.0.1:80") == Listener(1, "0.0.0.0:80", 4, 0)
    better = Listener(1, "0.0.0.0:80", 5, 9)
    assert SocketTables(LOCAL, {}, [better]).listener("127.0.0.1:1", "127.0.0.1:80") == better
    both = [better, Listener(3, "[::]:80", 1, 9)]
    assert SocketTables(LOCAL, {}, both).listener("[::1]:1", "[::1]:80") == both[1]
    of_several = SocketTables(LOCAL, {}, [better, better._replace(inode=4)])
    known = of_several.listener("127.0.0.1:1", "127.0.0.1:80")
    assert known is not None
    assert (known.queued, known.backlog) == (0, 0)  # with SO_REUSEPORT it is not known which one gets it
