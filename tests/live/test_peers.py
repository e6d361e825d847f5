"""Processes for which those that were chosen wait, and that join the trace."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
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


@pytest.fixture
def pair() -> Iterator[tuple[int, int]]:
    """Ids of a server that sleeps before each answer, and of its client."""
    with subprocess.Popen(["python3", "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        port = server.stdout.readline().strip()
        with subprocess.Popen(["python3", "-c", CLIENT, port], stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout
            client.stdout.readline()
            yield server.pid, client.pid
            client.kill()
        server.kill()


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
