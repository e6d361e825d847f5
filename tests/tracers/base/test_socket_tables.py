from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from stallscope.tracers.base.addresses import address_text
from stallscope.tracers.base.socket_tables import (
    InternetSocket,
    parse_internet,
    parse_unix,
    tables_of,
)

HEAD = b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LINE = b"   0: %b %b %b 00000000:00000000 00:00000000 00000000     0        0 %d 1 0000000000000000 100 0 0 10 0\n"


def test_lines() -> None:
    text = (
        HEAD
        + LINE % (b"0100007F:1F90", b"0500000A:1538", b"01", 17)
        + LINE % (b"00000000:0050", b"00000000:0000", b"0A", 18)
    )
    assert parse_internet(text, "tcp") == [
        InternetSocket(17, "tcp", "127.0.0.1:8080", "10.0.0.5:5432", False),
        InternetSocket(18, "tcp", "0.0.0.0:80", "", True),
    ]


@pytest.mark.parametrize(
    "line",
    [
        LINE % (b"0100007F", b"0500000A:1538", b"01", 17),
        LINE % (b"0100007F:1F90", b"0500000A05:1538", b"01", 17),
        LINE % (b"0100007F:1F90", b"zz:1538", b"01", 17),
        LINE % (b"0100007F:1F90", b"0500000A:1538", b"xx", 17),
        b"   0: 0100007F:1F90 0500000A:1538 01 0000",
        b"\xff\xff",
    ],
)
def test_malformed_lines_are_left_out(line: bytes) -> None:
    good = LINE % (b"0100007F:1F90", b"0500000A:1538", b"01", 19)
    assert [each.inode for each in parse_internet(HEAD + line + b"\n" + good, "tcp")] == [19]


def test_paths_of_unix_sockets() -> None:
    text = (
        b"Num       RefCount Protocol Flags    Type St Inode Path\n"
        b"0000000000000000: 00000002 00000000 00010000 0001 01 22 /run/a b.sock\n"
        b"0000000000000000: 00000003 00000000 00000000 0001 03 23\n"
        b"0000000000000000: 00000003 00000000 00000000 0001 03 24 @abstract\n"
        b"0000000000000000: 00000003 00000000 00000000 0001 03 " + b"9" * 5000 + b" /x\n"
    )
    assert parse_unix(text) == {22: "/run/a b.sock", 24: "@abstract"}


def test_addresses() -> None:
    assert address_text(bytes([10, 0, 0, 5]), 1) == "10.0.0.5:1"
    assert address_text(bytes(15) + b"\1", 80) == "[::1]:80"
    assert address_text(bytes(10) + b"\xff\xff\x0a\0\0\5", 80) == "10.0.0.5:80"


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_sockets_of_this_host(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("no such addresses here")
    with server, socket.create_connection(server.getsockname()[:2]) as client, server.accept()[0] as accepted:
        tables = tables_of(os.getpid())
        inode = os.fstat(client.fileno()).st_ino
        ours = tables.socket(inode)
        assert ours is not None
        assert ours.remote.endswith(f":{server.getsockname()[1]}")
        assert tables.other_end("tcp", ours.local, ours.remote) == os.fstat(accepted.fileno()).st_ino
        assert tables.other_end("udp", ours.local, ours.remote) == 0
        listening = tables.socket(os.fstat(server.fileno()).st_ino)
        assert listening is not None and listening.listens and not listening.remote
    assert tables.socket(1) is None


def test_a_bound_unix_socket(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "s"))
        assert tables_of(os.getpid()).paths[os.fstat(made.fileno()).st_ino] == str(tmp_path / "s")


def test_a_process_that_is_gone() -> None:
    assert tables_of(1 << 30).socket(1) is None
