"""Sockets of other network namespaces: two of them with a pair of network devices between."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from stallscope.tracers.base.listeners import listeners_of
from stallscope.tracers.base.networks import diagnoses, namespace_of, one_of_each
from stallscope.tracers.base.socket_namespaces import Namespaces
from stallscope.tracers.base.unix_peers import peer_of

SERVER, CLIENT = "10.111.0.1", "10.111.0.2"
HEAD = """
import os, socket, sys
print(flush=True)
sys.stdin.readline()
def told(*sockets): print(*(os.fstat(each.fileno()).st_ino for each in sockets), flush=True)
"""
SERVES = f"""
server = socket.create_server(("{SERVER}", 4000), backlog=5)
full = socket.create_server(("{SERVER}", 4001), backlog=7)
told(server)
accepted, _ = server.accept()
told(accepted, *socket.socketpair())
sys.stdin.read()
"""
ASKS = f"""
made = socket.create_connection(("{SERVER}", 4000))
other = socket.create_connection(("{SERVER}", 4001))
told(made)
print(made.getsockname()[1], flush=True)
sys.stdin.read()
"""


class Side(NamedTuple):
    """A program in a network namespace of its own."""

    process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        return self.process.pid

    def numbers(self) -> list[int]:
        """A line that it has printed."""
        assert self.process.stdout
        return [int(word) for word in self.process.stdout.readline().split()]

    def go_on(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def has(self, *args: str) -> None:
        """Runs a command in its namespace."""
        subprocess.run(["nsenter", "-t", str(self.pid), "-n", *args], check=True, timeout=60)


@pytest.fixture
def sides(live: None, require: Callable[[bool, str], None]) -> Iterator[tuple[Side, Side]]:
    """The one that serves and the one that asks, not connected yet."""
    require(shutil.which("ip") is not None, "no iproute2")
    found = []
    try:
        for source in (SERVES, ASKS):
            args = ["unshare", "--net", sys.executable, "-I", "-c", HEAD + source]
            found.append(Side(subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)))
            found[-1].numbers()
        server, client = found
        devices = ["ip", "link", "add", "one", "netns", str(server.pid), "type", "veth"]
        subprocess.run([*devices, "peer", "name", "one", "netns", str(client.pid)], check=True, timeout=60)
        for side, address in ((server, SERVER), (client, CLIENT)):
            side.has("ip", "address", "add", f"{address}/24", "dev", "one")
            side.has("ip", "link", "set", "one", "up")
        yield server, client
    finally:
        for side in found:
            side.process.kill()
            side.process.communicate()


def test_who_is_at_the_other_end(sides: tuple[Side, Side]) -> None:
    server, client = sides
    ours = namespace_of(os.getpid())
    server.go_on()
    (listening,) = server.numbers()
    client.go_on()
    (asking,), (port,) = client.numbers(), client.numbers()
    accepted, *pair = server.numbers()
    local, remote = f"{CLIENT}:{port}", f"{SERVER}:4000"

    # The queue, and the other end of a Unix socket, of another namespace than ours.
    queues = {each.local: each for each in listeners_of(server.pid)}
    assert queues[remote].inode == listening
    assert (queues[f"{SERVER}:4001"].queued, queues[f"{SERVER}:4001"].backlog) == (1, 7)
    assert not {each.local for each in listeners_of(client.pid)} & queues.keys()
    assert peer_of(server.pid, pair[0]) == 0, "they were closed at once"

    # A socket of a namespace, and its other end in another one.
    assert len({namespace_of(server.pid), namespace_of(client.pid), ours}) == 3
    known = Namespaces()
    from_client = known.of(namespace_of(client.pid), client.pid)
    assert from_client.socket(asking) is not None
    assert from_client.other_end("tcp", local, remote) == accepted
    assert known.of(0, server.pid).other_end("tcp", remote, local) == asking
    assert known.of(0, client.pid).other_end("tcp", local, f"{SERVER}:4002") == 0
    assert known.of(ours, os.getpid()).socket(asking) is None
    assert namespace_of(os.getpid()) == ours


def test_a_unix_socket_of_another_namespace(live: None) -> None:
    source = HEAD + "pair = socket.socketpair()\ntold(*pair)\nsys.stdin.read()"
    args = ["unshare", "--net", sys.executable, "-I", "-c", source]
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        side = Side(process)
        side.numbers()
        side.go_on()
        one, other = side.numbers()
        assert peer_of(side.pid, one) == other
        assert peer_of(os.getpid(), one) == 0
        process.kill()


def test_namespaces_there_are(sides: tuple[Side, Side]) -> None:
    pids = [os.getpid(), *(side.pid for side in sides)]
    numbers = [namespace_of(pid) for pid in pids]
    assert one_of_each([*pids, *pids, 1 << 30], 9) == dict(zip(numbers, pids, strict=True))
    assert one_of_each(pids, 2) == dict(zip(numbers[:2], pids[:2], strict=True))


def test_no_such_process() -> None:
    assert namespace_of(1 << 30) == 0
    with pytest.raises(OSError, match="No such file"):
        diagnoses(1 << 30)
    with diagnoses(os.getpid()) as made:
        assert made.family == socket.AF_NETLINK
