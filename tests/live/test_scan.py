"""A scan of several processes, each with a trouble of its own: the verdict of each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import Tracer, run
from runner import FOLDER
from stallscope.converters.scan import folder

pytestmark = pytest.mark.usefixtures("live")

TRACE_SCAN = str(Path(sys.executable).with_name("trace-scan"))
CLIENT = """
import socket, sys
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(flush=True)
while True:
    server.sendall(b"x")
    server.recv(1)
"""
SERVER = """
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
client, _ = listener.accept()
while client.recv(1):
    time.sleep(0.02)
    client.sendall(b"x")
"""


@contextmanager
def python(path: Path, code: str, *arguments: str) -> Iterator[tuple[int, str]]:
    """A script that runs until the end of the block: its pid, and the first line that it prints."""
    path.write_text(code)
    process = subprocess.Popen([sys.executable, path, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        yield process.pid, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_each_process_has_its_verdict(tmp_path: Path) -> None:
    with (
        python(tmp_path / "server.py", SERVER) as (server, port),
        python(tmp_path / "client.py", CLIENT, port) as (client, _),
    ):
        pids = f"{server},{client}"
        kept = str(tmp_path / "scan.d")
        ended = run("-p", pids, "-d", "1", "-o", kept, command=TRACE_SCAN).check_succeeded()
    made = json.loads((tmp_path / "scan.d" / folder.SUMMARY).read_text())
    rows = {pid: row for row in made["processes"] for pid in row["pids"]}
    assert rows[client]["kind"] == "peer"
    assert rows[client]["share"] > 0.8
    assert rows[client]["ended_by"]["pids"] == [server]
    assert rows[server]["kind"] in ("sleep", "polling")
    assert "Scanned 2 processes" in ended.out
    again = run("--from", kept, command=TRACE_SCAN).check_succeeded()
    assert again.out == ended.out[: ended.out.index("wrote ")]
    assert json.loads(run("--from", kept, "--json", command=TRACE_SCAN).check_succeeded().out) == made


def test_a_command_that_serialises_in_a_driver(tmp_path: Path) -> None:
    job = f"for rank in 0 1 2 3 4 5 6 7; do RANK=$rank {FOLDER / 'demo'} 2500 >/dev/null & done; wait"
    ended = run("-o", str(tmp_path / "scan.d"), "--", "sh", "-c", job, command=TRACE_SCAN).check_succeeded()
    made = json.loads((tmp_path / "scan.d" / folder.SUMMARY).read_text())
    (row,) = [each for each in made["processes"] if each["name"] == "demo"]
    assert (row["kind"], len(row["pids"])) == ("driver", 8)
    assert "topk" in row["frames"]
    assert ended.out.count("\n") < 80


def below(pid: int) -> set[int]:
    """Children of a process, with theirs."""
    try:
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # it has ended
        return set()
    found = {int(word) for each in lists for word in each.split()}
    return found.union(*map(below, found))


def test_neither_the_scan_nor_its_helpers_are_part_of_the_host() -> None:
    with Tracer("-a", "-d", "1", "--json", command=TRACE_SCAN) as scan:
        ours = {scan.pid}

        def has_ended() -> bool:
            ours.update(below(scan.pid))
            return scan.process.poll() is not None

        scan.wait_until(has_ended, "the end of the scan")
        made = json.loads(scan.finish().check_succeeded().out)
    assert len(ours) > 2
    assert made["host"]["waits_for"]
    for each in made["host"]["waits_for"]:
        assert ours.isdisjoint((*each["waiter_pids"], *each["ended_by_pids"])), each
    for row in made["processes"]:
        assert ours.isdisjoint((*row["pids"], *(row["ended_by"] or {"pids": ()})["pids"])), row


STEPS = """
import time
def train_step():
    time.sleep(0.04)
print(flush=True)
while True:
    train_step()
    time.sleep(0.01)
"""


def test_steps_have_a_pace(tmp_path: Path) -> None:
    """The truth is what the program sleeps: a step takes no less, however loaded the machine is."""
    with python(tmp_path / "train.py", STEPS) as (pid, _):
        options = ("-p", str(pid), "-d", "2", "--step", "train.py:train_step", "--vm-breakpoints")
        ended = run(*options, "--json", command=TRACE_SCAN).check_succeeded()
    ((found,),) = (each["paces"] for each in ended.summary["steps"])
    assert found["pid"] == pid
    assert found["mean_ns"] >= 40_000_000
    assert found["between_ns"] >= 10_000_000
    assert 0 < found["steps_per_second"] <= 20
    assert found["loader_ns"] == 0
