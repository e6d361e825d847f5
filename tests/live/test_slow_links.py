"""A client waits for a server on a link that is slow, or for a server that is slow on a link that is not."""

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

PORT = 4000
HEAD = """
import socket, sys, time
def get(one, left):
    while left:
        got = len(one.recv(left))
        left = left - got if got else sys.exit()
"""
SERVES = f"""{HEAD}
accepted, _ = socket.create_server((sys.argv[1], {PORT})).accept()
print(flush=True)
while True:
    get(accepted, 10)
    time.sleep(float(sys.argv[2]))
    accepted.sendall(bytes(int(sys.argv[3])))
"""
ASKS = f"""{HEAD}
while True:
    try:
        made = socket.create_connection((sys.argv[1], {PORT}))
        break
    except OSError:
        time.sleep(0.05)
while True:
    made.sendall(bytes(10))
    get(made, int(sys.argv[3]))
"""
READS = f"""
import socket, time
accepted, _ = socket.create_server(("{ENDS[0]}", {PORT})).accept()
print(flush=True)
while accepted.recv(20_000):
    time.sleep(0.01)
"""
SENDS = f"""
import socket, time
while True:
    try:
        made = socket.create_connection(("{ENDS[0]}", {PORT}))
        break
    except OSError:
        time.sleep(0.05)
while True:
    made.sendall(bytes(10_000))
"""
PYTHON = [sys.executable, "-I", "-c"]
OF_NETWORK = ("round trip", "moves", "sent again")


@pytest.fixture(autouse=True)
def needed(live: None, require: Callable[[bool, str], None]) -> None:
    require(shutil.which("ip") is not None, "no iproute2")
    require(Path("/dev/net/tun").exists(), "no /dev/net/tun")


def traced(
    link: SlowLink, serves: list[str], asks: list[str], *, end: int = 1, command: str = "trace-offcpu"
) -> dict[str, Any]:
    """Returns what is said of a client at this end, which is traced for 3 s."""
    server = link.start(0, [*PYTHON, *serves], stdout=subprocess.PIPE)
    client = link.start(end, [*PYTHON, *asks])
    try:
        assert server.stdout
        server.stdout.readline()
        line = [str(Path(sys.executable).with_name(command)), "-p", str(client.pid), "-d", "3", "--json"]
        run = subprocess.run(line, capture_output=True, text=True, timeout=120, check=True)
    finally:
        for each in (client, server):
            each.kill()
            each.communicate()
    said: dict[str, Any] = json.loads(run.stdout)
    return said


def asked(link: SlowLink, *, answer: int = 1000, slow: float = 0.0, at: str = ENDS[0], **more: Any) -> dict[str, Any]:
    """``slow``: seconds that each answer, of so many bytes, takes its server. ``at``: its address."""
    given = [at, str(slow), str(answer)]
    return traced(link, [SERVES, *given], [ASKS, *given], **more)


def first_link(said: dict[str, Any]) -> dict[str, Any]:
    """The figures of the link that the longest wait is on."""
    found: dict[str, Any] = next(wait["on"] for wait in said["waits"] if wait["on"])["link"]
    return found


def test_requests_over_a_link_that_takes_its_time() -> None:
    with SlowLink(0.01) as link:
        said = asked(link)
    assert "; a round trip on that connection takes 2" in said["answer"][0]
    found = first_link(said)
    assert found["remote"] == f"{ENDS[0]}:{PORT}"
    assert 20_000_000 <= found["round_trip_ns"] < 40_000_000
    assert found["by_rate_ns"] == 0, "whoever asks for little never has more to send"


def test_answers_that_a_link_takes_at_its_rate() -> None:
    with SlowLink(rate=2e6) as link:
        said = asked(link, answer=1_000_000)
    assert "; that connection moves 1." in said["answer"][0]
    assert 1e6 < first_link(said)["rate"] < 2.1e6
    assert first_link(said)["by_round_trips_ns"] == 0


@pytest.mark.parametrize("answer", [1000, 100_000])
def test_a_server_that_takes_its_time(answer: int) -> None:
    """TCP acknowledges its requests with its answers: its round trips of late are as long as these take."""
    with SlowLink() as link:
        said = asked(link, answer=answer, slow=0.02)
    assert "for its peer" in said["answer"][0]
    assert not [word for word in OF_NETWORK if word in " ".join(said["answer"])]


def test_a_reader_that_takes_its_time() -> None:
    with SlowLink() as link:
        said = traced(link, [READS], [SENDS])
    assert "→ send, for" in said["answer"][0]
    assert not [word for word in OF_NETWORK if word in " ".join(said["answer"])]


@pytest.mark.parametrize("at", ["127.0.0.1", ENDS[0]])
def test_a_connection_of_a_host_with_itself(at: str) -> None:
    with SlowLink(0.01) as link:
        said = asked(link, slow=0.005, at=at, end=0)
    assert not [word for word in OF_NETWORK if word in " ".join(said["answer"])]
    assert "link" not in next(wait["on"] for wait in said["waits"] if wait["on"])


def test_the_row_of_a_scan() -> None:
    with SlowLink(0.01) as link:
        said = asked(link, command="trace-scan")
    row = next(each for each in said["processes"] if each["kind"] in ("peer", "network"))
    assert row["network"].startswith("a round trip on that connection takes 2")
