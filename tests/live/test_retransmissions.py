"""A client waits for a server on a link that loses what it carries: TCP sends it again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from slow_link import ENDS, SlowLink
from stallscope.converters import pprof
from stallscope.converters.model.wait_objects import EVENTS, TCP, WaitObject

PORT = 4000
SERVES = f"""
import socket
accepted, _ = socket.create_server(("{ENDS[0]}", {PORT})).accept()
print(flush=True)
while asked := accepted.recv(1000):
    accepted.sendall(bytes(1000))
"""
ASKS = f"""
import select, socket, sys, time
while True:
    try:
        made = socket.create_connection(("{ENDS[0]}", {PORT}))
        break
    except OSError:
        time.sleep(0.05)
events = select.epoll()
kept = [made, socket.create_server(("{ENDS[1]}", 0))]
for each in kept:
    events.register(each, select.EPOLLIN)
while True:
    made.sendall(bytes(10))
    left = 1000
    while left:
        if sys.argv[1:]:
            events.poll()
        left -= len(made.recv(left))
"""


@pytest.fixture(autouse=True)
def needed(live: None, require: Callable[[bool, str], None]) -> None:
    require(shutil.which("ip") is not None, "no iproute2")
    require(Path("/dev/net/tun").exists(), "no /dev/net/tun")


def traced(folder: Path, *, lose: int, several: bool = False) -> tuple[dict[str, Any], list[WaitObject], int]:
    """Returns what is said of a client that is traced for 3 s, its objects, and the pid of the server."""
    capture = folder / "capture.pb.gz"
    asks = [sys.executable, "-I", "-c", ASKS, *(["several"] if several else [])]
    with SlowLink(0.001, lose=lose) as link:
        server = link.start(0, [sys.executable, "-I", "-c", SERVES], stdout=subprocess.PIPE)
        client = link.start(1, asks)
        try:
            assert server.stdout
            server.stdout.readline()
            command = [str(Path(sys.executable).with_name("trace-offcpu")), "-p", str(client.pid), "-d", "3"]
            run = subprocess.run(
                [*command, "--json", "-o", str(capture)], capture_output=True, text=True, timeout=120, check=True
            )
        finally:
            for each in (client, server):
                each.kill()
                each.communicate()
    with capture.open("rb") as file:
        return json.loads(run.stdout), pprof.load(file).objects, server.pid


def test_what_tcp_sends_again_is_told(tmp_path: Path) -> None:
    said, objects, server = traced(tmp_path, lose=20)
    first = said["answer"][0]
    assert "for its peer" in first
    assert f"(pid {server}, {ENDS[0]}:{PORT})" in first
    assert "segments of that connection were sent again meanwhile" in first
    (connection,) = (each for each in objects if each.kind == TCP)
    # Each answer is a packet: of 20, one is lost, and sent again after 200 ms.
    assert connection.retransmissions >= 5
    on = next(wait["on"] for wait in said["waits"] if wait["on"])
    assert on["retransmissions"] == connection.retransmissions


def test_of_several_connections_that_with_most_is_told(tmp_path: Path) -> None:
    said, objects, _ = traced(tmp_path, lose=20, several=True)
    (events,) = (each for each in objects if each.kind == EVENTS)
    assert events.retransmissions >= 5
    assert events.resent_with == f"{ENDS[0]}:{PORT}"
    assert "segments of its connections were sent again meanwhile, most of them of the one to" in said["answer"][0]


def test_a_link_that_is_slow_and_loses_nothing(tmp_path: Path) -> None:
    said, objects, server = traced(tmp_path, lose=0)
    assert f"(pid {server}, {ENDS[0]}:{PORT})" in said["answer"][0]
    assert "sent again" not in " ".join(said["answer"])
    assert [each.retransmissions for each in objects if each.kind == TCP] == [0]
