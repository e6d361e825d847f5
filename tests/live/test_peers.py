"""Processes for which those that were chosen wait, and that join the trace."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import run
from stallscope.converters.scan import folder
from test_scan import TRACE_SCAN

pytestmark = pytest.mark.usefixtures("live")

SERVER = """
import socket, time

def render():
    time.sleep(0.2)

listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
client, _ = listening.accept()
while client.recv(1):
    render()
    client.sendall(b"x")
"""
CLIENT = """
import socket, sys

with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as server:
    print("ready", flush=True)
    while True:
        server.sendall(b"x")
        server.recv(1)
"""

ANSWERS = SERVER.replace("while client.recv(1):\n    render()", "while client.recv(1):\n    client.recv(1)")
"""Answers at once when both bytes of a request are there."""
IN_TWO_PARTS = CLIENT.replace('server.sendall(b"x")', 'server.sendall(b"x"); server.sendall(b"y")')
WITHOUT_DELAY = IN_TWO_PARTS.replace("    print(", "    server.setsockopt(6, 1, 1)  # TCP_NODELAY\n    print(")

ECHOES = SERVER.replace("    render()\n", "")
"""Answers at once: it lets softirqs run all the time, and with its own those that are due on the core."""


@contextmanager
def running(serves: str, asks: str) -> Iterator[tuple[int, int]]:
    """Ids of a server and of its client."""
    with subprocess.Popen(["python3", "-c", serves], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        port = server.stdout.readline().strip()
        with subprocess.Popen(["python3", "-c", asks, port], stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout
            client.stdout.readline()
            yield server.pid, client.pid
            client.kill()
        server.kill()


@pytest.fixture
def pair() -> Iterator[tuple[int, int]]:
    """Ids of a server that sleeps before each answer, and of its client."""
    with running(SERVER, CLIENT) as pids:
        yield pids


def test_a_server_is_traced_because_its_client_waits_for_it(pair: tuple[int, int], tmp_path: Path) -> None:
    server, client = pair
    kept = tmp_path / "scan.d"
    ended = run("-p", str(client), "-d", "4", "-o", str(kept), command=TRACE_SCAN).check_succeeded()
    made = json.loads((kept / folder.SUMMARY).read_text())
    (joined,) = [each for each in made["summary"]["remarks"] if each["code"] == "joined"]
    assert joined["pid"] == server
    assert 0 < joined["at"] < 4_000_000_000
    rows = {pid: row for row in made["processes"] for pid in row["pids"]}
    assert rows.keys() == {client, server}
    assert rows[client]["kind"] == "peer"
    assert "render" in made["summary"]["answer"][0], "what the server does meanwhile"
    assert "1 process, and 1 for which it waits, with 2 threads" in ended.out


def test_only_what_was_chosen(pair: tuple[int, int], tmp_path: Path) -> None:
    _, client = pair
    kept = tmp_path / "scan.d"
    run("-p", str(client), "-d", "2", "--no-peers", "-o", str(kept), command=TRACE_SCAN).check_succeeded()
    made = json.loads((kept / folder.SUMMARY).read_text())
    assert [row["pids"] for row in made["processes"]] == [[client]]
    assert "render" not in made["summary"]["answer"][0]


@pytest.mark.parametrize(("asks", "holds"), [(IN_TWO_PARTS, True), (WITHOUT_DELAY, False)])
def test_what_tcp_holds_back_until_an_acknowledgement(asks: str, holds: bool, tmp_path: Path) -> None:
    """A request in two small writes waits 40 ms for the acknowledgement of the first one (Nagle's algorithm)."""
    assert "render()" not in ANSWERS.partition("while")[2]
    kept = tmp_path / "scan.d"
    with running(ANSWERS, asks) as pids:
        scope = ("-p", ",".join(map(str, pids)), "-d", "2", "--budget", "100%")
        run(*scope, "-o", str(kept), command=TRACE_SCAN).check_succeeded()
    answer = json.loads((kept / folder.SUMMARY).read_text())["summary"]["answer"]
    assert ("TCP holds back what was sent" in answer[0]) == holds, answer


def test_softirqs_that_other_threads_let_run(tmp_path: Path) -> None:
    """A timer of TCP's ends the waits, and what it sends: no deed of the threads in which the kernel does it."""
    kept = tmp_path / "scan.d"
    with running(ECHOES, CLIENT), running(ECHOES, CLIENT), running(ANSWERS, IN_TWO_PARTS) as pids:
        scope = ("-p", ",".join(map(str, pids)), "-d", "2", "--budget", "100%")
        run(*scope, "-o", str(kept), command=TRACE_SCAN).check_succeeded()
    made = json.loads((kept / folder.SUMMARY).read_text())
    assert "TCP holds back what was sent" in made["summary"]["answer"][0], made["summary"]["answer"]
    assert {pid for row in made["processes"] for pid in row["pids"]} == set(pids)
