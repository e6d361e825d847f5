"""Objects are made by a record of this process's own file."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.converters.model.wait_objects import FILE
from stallscope.tracers.base.tcp_figures import figures_of
from stallscope.tracers.engines.ebpf import connection_figures, retransmissions
from stallscope.tracers.engines.ebpf.retransmissions import Resent, Retransmissions, Sender
from stallscope.tracers.engines.ebpf.waited_for import WaitedFor
from stallscope.tracers.kernel.objects import RECORD, ObjectRecord

NUMBER = 9
MODULE = "stallscope.tracers.engines.ebpf.objects"


def rows(*numbers: int) -> Any:
    return [SimpleNamespace(origin=SimpleNamespace(object=number)) for number in numbers]


def test_a_trace_without_objects_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, MODULE, None)
    waited = WaitedFor(Retransmissions)
    waited.poll()
    waited.finish()
    assert waited.found(rows(NUMBER)) == []


def test_the_first_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("x")
    waited, me = WaitedFor(Retransmissions), os.getpid()
    with path.open() as file:
        status = os.fstat(file.fileno())
        dev = os.major(status.st_dev) << 20 | os.minor(status.st_dev)
        empty = ObjectRecord(me, NUMBER, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, me, bytes(16), bytes(16))
        record = empty._replace(fd=file.fileno(), inode=status.st_ino, mode=status.st_mode, dev=dev)
        waited.add(RECORD.pack(9, *record))
        waited.poll()
        waited.finish()
    (found,) = waited.found(rows(NUMBER, 0))
    assert (found.id, found.kind, found.name) == (NUMBER, FILE, str(path))
    assert waited.found(rows(NUMBER + 1)) == []


def connected(waited: WaitedFor, client: socket.socket) -> None:
    """Tells of a wait on this connection of this process, in a namespace with the number 3."""
    me, (local, remote) = os.getpid(), (client.getsockname(), client.getpeername())
    packed = [socket.inet_aton(address).ljust(16, b"\0") for address, _ in (local, remote)]
    file = (me, NUMBER, os.fstat(client.fileno()).st_ino, 0, 0, 0, 0, 0, 0o140777, client.fileno())
    waited.add(RECORD.pack(9, *ObjectRecord(*file, 3, 0, 2, 1, 6, 1, local[1], remote[1], me, *packed)))
    waited.poll()


def test_what_tcp_has_sent_again_in_each_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection of two threads, whose first interval has segments that were sent again, as if it left the host."""
    monkeypatch.setattr(retransmissions, "is_within", lambda *_: False)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        ends = [f"{address}:{port}" for address, port in (client.getsockname(), client.getpeername())]
        intervals = [Retransmissions({Sender(3, *ends): Resent(4)}), Retransmissions()]
        waited = WaitedFor(lambda: intervals.pop(0))
        connected(waited, client)
        waited.cut()
        assert [each.retransmissions for each in waited.found(rows(NUMBER))] == [4]
        waited.finish()
        assert [each.retransmissions for each in waited.found(rows(NUMBER))] == [0]


def test_what_tcp_knows_of_each_interval(monkeypatch: pytest.MonkeyPatch, require: Callable[[bool, str], None]) -> None:
    """A connection of two threads, which gets 3 segments in the first interval, and one in the second one."""
    monkeypatch.setattr(connection_figures, "is_within", lambda *_: False)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        with accepted:
            ends = f"{client.getsockname()[0]}:{client.getsockname()[1]}", f"127.0.0.1:{server.getsockname()[1]}"
            require(bool(figures_of(os.getpid(), [ends])), "no sock_diag here")
            waited = WaitedFor(Retransmissions)
            connected(waited, client)
            for number in (3, 1):
                for _ in range(number):
                    accepted.sendall(b"x")
                    client.recv(1)
                waited.cut()
                (found,) = waited.found(rows(NUMBER))
                assert [each.arrivals for each in found.links] == [number]
            waited.finish()
            assert [each.arrivals for each in waited.found(rows(NUMBER))[0].links] == [0]
