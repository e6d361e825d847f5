"""Comparison of runs of two versions of a program, of which one has more threads that wait for a lock."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from commands import Tracer
from stallscope.tracers.scan import main
from test_scan import TRACE_SCAN

pytestmark = pytest.mark.usefixtures("live")

PROGRAM = """
import fcntl, sys, threading

def take():
    with open(sys.argv[1]) as file:
        fcntl.flock(file, fcntl.LOCK_EX)

with open(sys.argv[1], "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    for _ in range(int(sys.argv[2])):
        threading.Thread(target=take, daemon=True).start()
    print(flush=True)
    sys.stdin.read()
"""
BEFORE, AFTER = 1, 3
"""Threads that wait for the lock from before the trace until after it, however busy the machine is."""
RUNS = 3
LEFT_OUT = [word for each in ("samples", "wakers", "locks", "ioctls", "calls") for word in ("--without", each)]
"""Measures that are not compared here, and make a scan take twice as long."""
STEADY = 0.9
"""Share of the longest waits of a side that a run has unless the machine stood still in it."""
SENTENCE = re.compile(
    r"In each second, python job.py is (?P<by>\S+) (?:± \S+ )?s (?P<sign>longer|shorter) waiting for a lock on a file "
    r"in \S.* → take → .* │ \w+ \((?P<before>\S+) → (?P<after>\S+) s, all its threads together\)"
    r"(?:: differs \((?P<chance>p [=<] \S+)\))?\."
)
NOISE = "Nothing takes more time than before, beyond the noise between runs."


@contextmanager
def job(path: Path, threads: int) -> Iterator[int]:
    """The program, all of whose threads have been started: its pid. It ends when this does."""
    process = subprocess.Popen(
        [sys.executable, path, path.with_suffix(f".{threads}"), str(threads)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    try:
        assert process.stdout.readline() == b"\n"
        yield process.pid
    finally:
        process.kill()
        process.stdin.close()
        process.stdout.close()
        process.wait()


@pytest.fixture(scope="module")
def sides(live: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """Captures of the runs of both, those of a pair made at the same time."""
    folder = tmp_path_factory.mktemp("runs")
    path = folder / "job.py"
    path.write_text(PROGRAM)
    kept: tuple[list[str], list[str]] = ([], [])
    for i in range(RUNS):
        with job(path, BEFORE) as one, job(path, AFTER) as other:
            names = [str(folder / f"{side}{i}.d") for side in "ab"]
            scans = [
                Tracer("-p", pid, "-d", "1", *LEFT_OUT, "-o", name, command=TRACE_SCAN)
                for pid, name in zip((one, other), names, strict=True)
            ]
            with scans[0], scans[1]:
                for scan, name, side in zip(scans, names, kept, strict=True):
                    scan.finish().check_succeeded()
                    side.append(name)
    return kept


def compared(*arguments: str) -> str:
    ran = CliRunner().invoke(main, ["--compare", *arguments])
    assert ran.exit_code == 0, ran.output
    return ran.output


def lock_row(*sides: str) -> dict[str, Any]:
    """Row of the waits for the lock. An account begins when its thread is found, which may be a little after the trace
    did; nobody waits for longer than the trace."""
    (row,) = [each for each in json.loads(compared(*sides, "--json"))["changes"] if each["kind"] == "file-lock"]
    for rates, threads in zip(row["runs"], (BEFORE, AFTER) if "/a" in sides[0] else (AFTER, BEFORE), strict=True):
        assert 0 < min(rates) <= max(rates) <= threads * 1.001
    found: dict[str, Any] = row
    return found


def check(told: re.Match[str] | None, row: dict[str, Any], sign: str) -> None:
    """The sentence is on this row, with its figures."""
    assert told
    assert told["sign"] == sign
    assert [float(told["before"]), float(told["after"])] == pytest.approx([row["before"], row["after"]], abs=0.006)
    assert float(told["by"]) == pytest.approx(abs(row["after"] - row["before"]), abs=0.006)
    assert bool(told["chance"]) is row["is_change"]


@pytest.mark.parametrize("sign", ["longer", "shorter"])
def test_several_runs_of_each(sign: str, sides: tuple[list[str], list[str]]) -> None:
    lists = [",".join(side) for side in (sides if sign == "longer" else sides[::-1])]
    row, first = lock_row(*lists), compared(*lists).splitlines()[0]
    if row["is_change"]:
        check(SENTENCE.search(first), row, sign)
    else:
        assert any(min(rates) < STEADY * max(rates) for rates in row["runs"])
    assert first.startswith(NOISE) is (sign == "shorter" or not row["is_change"])


def test_one_run_of_each(sides: tuple[list[str], list[str]]) -> None:
    pair = sides[0][0], sides[1][0]
    first, second, *_ = compared(*pair).splitlines()
    row = lock_row(*pair)
    assert not row["is_change"]
    check(SENTENCE.fullmatch(first), row, "longer")
    assert second.startswith("With one run on each side nobody can tell a change from the noise between runs")
