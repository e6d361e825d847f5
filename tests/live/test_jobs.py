"""Jobs of stand-ins for the ranks of a program: grouped by evidence, with the late rank told by name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import TRACE_OFFCPU, load, run

TRACE_SCAN, TRACE_CONVERT = (str(Path(TRACE_OFFCPU).with_name(f"trace-{name}")) for name in ("scan", "convert"))

pytestmark = pytest.mark.usefixtures("live")

RANK = """
import os, socket, sys, time
def allreduce(number, size, ring):
    left, right = ring[number - 1][0], ring[number][1]
    right.send(b"x" * 8) if number == 0 else None
    for _ in range(2):
        token = left.recv(8)
        if number or _ == 0:
            right.send(token)
def load_batch(seconds):
    time.sleep(seconds)
def train(number, size, ring, slow):
    while True:
        load_batch({-1: 0.05, number: 0.02}.get(slow, 0.002))
        allreduce(number, size, ring)
"""
BODY = (
    RANK
    + """
size, slow, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if how == "exec":
    fds = [int(fd) for fd in sys.argv[4].split(",")]
    ring = [tuple(socket.socket(fileno=fd) for fd in fds[i:i + 2]) for i in range(0, len(fds), 2)]
    train(int(os.environ["RANK"]), size, ring, slow)
ring = [socket.socketpair() for _ in range(size)]
for each in ring:
    for end in each:
        end.set_inheritable(True)
pids = []
for number in range(size):
    pid = os.fork()
    if not pid:
        if how == "before":
            fds = ",".join(str(end.fileno()) for pair in ring for end in pair)
            os.environ.update(RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE=str(size))
            os.execv(sys.executable, [sys.executable, sys.argv[0], str(size), str(slow), "exec", fds])
        os.environ.update(RANK=str(number), WORLD_SIZE=str(size))
        train(number, size, ring, slow)
    pids.append(pid)
print(*pids, flush=True)
sys.stdin.read()
for pid in pids:
    os.kill(pid, 9)
"""
)


@contextmanager
def job(folder: Path, size: int, slow: int, how: str) -> Iterator[list[int]]:
    """Pids of ranks of which one loads slowly (-1: none). ``how``: the rank is set ``before`` their program begins, or
    ``after`` the fork."""
    script = folder / "train.py"
    script.write_text(BODY)
    command = [sys.executable, str(script), str(size), str(slow), how]
    environment = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE")}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin and process.stdout
        yield [int(pid) for pid in process.stdout.readline().split()]
        process.stdin.close()


def scanned(pids: Sequence[int], folder: Path) -> dict[str, Any]:
    joined = ",".join(map(str, pids))
    done = run("-p", joined, "-d", 2, "--json", "-o", folder / "scan.d", command=TRACE_SCAN)
    return done.check_succeeded().summary


@pytest.mark.parametrize(("how", "source"), [("before", "environment"), ("after", "memory")])
def test_the_slow_one_of_eight_ranks_is_told_by_name(how: str, source: str, tmp_path: Path) -> None:
    with job(tmp_path, 8, 3, how) as pids:
        data = scanned(pids, tmp_path)
    (found,) = data["jobs"]
    assert [(each["rank"], each["pid"]) for each in found["ranks"]] == list(enumerate(pids))
    assert {each["rank_source"] for each in found["ranks"]} == {source}
    assert found["size"] == 8
    assert "train.py" in found["launcher"]["name"]
    late = found["straggler"]
    assert late["ranks"] == [3]
    assert late["kind"] == "sleep"
    assert any("load_batch" in frame for frame in late["frames"])
    assert late["waits"] < late["others_wait"]
    assert all(
        abs(sum(each["kinds_ns"].values()) - each["wall_ns"]) < 0.02 * each["wall_ns"] for each in found["ranks"]
    )
    # The report says so again, elsewhere, and every sample has its rank.
    again = run("--from", tmp_path / "scan.d", command=TRACE_SCAN).check_succeeded()
    assert f"rank 3 (pid {pids[3]})*" in again.out
    capture = tmp_path / "scan.d" / "capture.pb.gz"
    ranks = {each.label("pid"): each.label("rank") for each in load(capture).samples}
    assert {pid: ranks[pid] for pid in pids} == {pid: str(number) for number, pid in enumerate(pids)}
    answer = run("--answer", capture, command=TRACE_CONVERT).check_succeeded().out
    assert f"rank 3 (pid {pids[3]}" in answer


def test_ranks_that_are_alike_have_no_straggler(tmp_path: Path) -> None:
    with job(tmp_path, 4, -1, "before") as pids:
        (found,) = scanned(pids, tmp_path)["jobs"]
    assert len(found["ranks"]) == 4
    late = found["straggler"]
    assert late is None or late["kind"] == "runnable", "others may take the cores"


def test_two_jobs_of_one_host_are_kept_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with job(tmp_path / "a", 3, -1, "before") as first, job(tmp_path / "b", 3, 1, "after") as second:
        found = scanned([*first, *second], tmp_path)["jobs"]
    assert sorted([each["pid"] for each in one["ranks"]] for one in found) == sorted([first, second])
