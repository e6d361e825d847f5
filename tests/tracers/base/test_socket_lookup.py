from __future__ import annotations

import os
import socket
from collections.abc import Callable

import pytest
from socket_answers import OTHER, OWN, answer
from stallscope.tracers.base import socket_tables
from stallscope.tracers.base.socket_lookup import inode_of, parse_inode
from stallscope.tracers.base.socket_tables import tables_of


@pytest.mark.parametrize(
    ("data", "inode"),
    [
        (answer(), 77),
        (answer(address=bytes(10) + b"\xff\xff\x7f\0\0\1"), 77),
        (answer(port=81), 0),
        (answer(other=5001), 0),
        (answer(address=b"\x7f\0\0\2" + bytes(12)), 0),
        (answer(kind=2), 0),
        (answer()[:-1], 0),
        (b"", 0),
    ],
)
def test_answers(data: bytes, inode: int) -> None:
    assert parse_inode(data, OWN, OTHER) == inode


@pytest.mark.parametrize("end", ["", "x", "127.0.0.1:", "127.0.0.1:65536", "[::1]:80", "127.0.0:80", ":80", "[x]:80"])
def test_no_ends(end: str) -> None:
    assert inode_of(os.getpid(), OWN, end) == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_of_this_host(host: str, monkeypatch: pytest.MonkeyPatch, require: Callable[[bool, str], None]) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        require(False, "no IPv6 here")
    with server, socket.create_connection(server.getsockname()[:2]) as client:
        accepted, _ = server.accept()
        with accepted:
            texts = [f"[{each[0]}]:{each[1]}" if ":" in host else f"{each[0]}:{each[1]}" for each in (
                accepted.getsockname(), client.getsockname())]  # fmt: skip
            inode = os.fstat(accepted.fileno()).st_ino
            assert inode_of(os.getpid(), *texts) == inode
            # Of a table that is cut, too.
            monkeypatch.setattr(socket_tables, "_MOST", 200)
            assert tables_of(os.getpid()).other_end("tcp", texts[1], texts[0]) == inode
            assert tables_of(os.getpid()).other_end("tcp", texts[1], "192.0.2.1:9") == 0


def test_a_process_that_is_not_there() -> None:
    assert inode_of(1 << 30, OWN, OTHER) == 0
