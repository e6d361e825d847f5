from __future__ import annotations

import os
import select
import socket

from stallscope.converters.model.wait_objects import MOST_PEERS, PIPE, TCP, UNIX, ObjectPeer
from stallscope.tracers.base.open_descriptors import Holder
from stallscope.tracers.base.socket_tables import tables_of
from stallscope.tracers.base.unix_peers import peer_of
from stallscope.tracers.engines.ebpf.event_peers import Connection, connections_of, peers_of
from stallscope.tracers.kernel.objects import ObjectRecord

ME = os.getpid()
EMPTY = ObjectRecord(ME, 5, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, ME, bytes(16), bytes(16))


def inode(fd: int) -> int:
    return os.fstat(fd).st_ino


def test_connections_of_an_epoll_descriptor() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe()
    with server, client, accepted, ours, theirs, select.epoll() as epoll:
        for fd in (client.fileno(), ours.fileno(), reader):
            epoll.register(fd)
        epoll.register(writer, select.EPOLLOUT)
        found, of_tcp = connections_of(EMPTY._replace(fd=epoll.fileno()), tables_of(ME))
        address = f"127.0.0.1:{server.getsockname()[1]}"
        expected = {
            f"socket:[{inode(accepted.fileno())}]": Connection(TCP, address, 0, serves=True),
            f"pipe:[{inode(reader)}]": Connection(PIPE, "", 2),
        }
        if peer_of(ME, inode(ours.fileno())):  # else the kernel has no CONFIG_UNIX_DIAG
            expected[f"socket:[{inode(theirs.fileno())}]"] = Connection(UNIX, "", 0)
        assert found == expected
        own = f"{client.getsockname()[0]}:{client.getsockname()[1]}"
        assert of_tcp == {(own, address)}
        accepted_one, _ = connections_of(EMPTY._replace(fd=(1 << 32) - 2), tables_of(ME))
        assert expected.items() <= accepted_one.items()  # all descriptors of a process that polls several
        assert accepted_one[f"socket:[{inode(client.fileno())}]"] == Connection(TCP, own, 0, serves=False)
    for fd in (reader, writer):
        os.close(fd)


def test_a_process_that_is_gone() -> None:
    assert connections_of(EMPTY._replace(tgid=1 << 30, tid=1 << 30, fd=3), tables_of(ME)) == ({}, set())
    assert connections_of(EMPTY._replace(tgid=1 << 30, tid=1 << 30, fd=(1 << 32) - 2), tables_of(ME)) == ({}, set())


REDIS = Connection(TCP, "127.0.0.1:6379", 0, serves=True)


def test_processes_with_most_connections_come_first() -> None:
    connections = {
        "socket:[1]": REDIS,
        "socket:[2]": REDIS,
        "socket:[3]": Connection(UNIX, "/s", 0),
        "pipe:[4]": Connection(PIPE, "", 2),
    }
    holders = {
        "socket:[1]": {Holder(7, 3)},
        "socket:[2]": {Holder(7, 3)},
        "socket:[3]": {Holder(8, 3), Holder(1, 3)},
        "pipe:[4]": {Holder(9, 1), Holder(10, 2), Holder(1, 2)},
    }
    found = peers_of(connections, holders, 1, lambda pid: f"p{pid}")
    assert found == [
        ObjectPeer("p7", 7, TCP, "127.0.0.1:6379", 2, serves=True),
        ObjectPeer("p8", 8, UNIX, "/s", 1),
        ObjectPeer("p10", 10, PIPE, "", 1),
    ]


def test_there_are_not_too_many() -> None:
    links = [f"socket:[{i}]" for i in range(MOST_PEERS + 5)]
    found = peers_of(dict.fromkeys(links, REDIS), {link: {Holder(i + 2, 3)} for i, link in enumerate(links)}, 1, str)
    assert len(found) == MOST_PEERS
