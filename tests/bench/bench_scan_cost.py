"""Throughput of PostgreSQL, Redis and a NumPy job bare, under trace-scan (with and without the events that a page
draws), and under what one would run instead.

For the servers that is libbpf-tools' offcputime and wakeuptime, with perf record for what runs on the cores (Debian's
libbpf-tools have no profile); for the job it is py-spy --idle. Rounds take turns; medians, and shares of the bare
throughput of the same round. TORCH_PYTHON=/path/to/python with PyTorch adds a job that trains. For a short run:
`python tests/bench/bench_scan_cost.py --rounds 1 --seconds 3`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from peers import wait_for_link

GOAL = 0.05
"""Share of the throughput that a scan may take."""
NOBODY = 65534
"""PostgreSQL refuses to run as root."""
SCAN = Path(sys.executable).with_name("trace-scan")
PY_SPY = Path(sys.executable).with_name("py-spy")
ATTACHED, LONGEST = 1.0, 20
"""Seconds after the first probe between two looks at what the tracer runs, and how often it is looked at most."""
CALM = 0.3
"""Share of a core below which it has prepared its tables: what is compared is the trace, not its start."""
NULL = subprocess.DEVNULL
PLAIN, KEPT = "trace-scan", "trace-scan -o scan.d"
"""Names of a scan, and of one that keeps the events of the scheduler one by one, which a page draws: no peer does."""
STEPS = """
import sys, time
end, steps = time.monotonic() + float(sys.argv[1]), 0
{setup}
while time.monotonic() < end:
    {step}
    steps += 1
print(steps / float(sys.argv[1]))
"""
NUMPY = STEPS.format(
    setup="import numpy as np; x = np.random.rand(256, 256)",
    step="x = np.tanh(x @ x / 256); y = sorted(x.ravel().tolist())[:9]",
)
TORCH = STEPS.format(
    setup="import torch; net = torch.nn.Linear(512, 512); of = torch.optim.SGD(net.parameters(), 0.01)",
    step="of.zero_grad(); net(torch.rand(64, 512)).square().mean().backward(); of.step()",
)


def _tracer(name: str, seconds: float, folder: str) -> list[list[str]]:
    """Commands that trace the whole host until they are interrupted, or a little longer than the load runs."""
    length = str(round(seconds + 20))
    if name in (PLAIN, KEPT):
        return [[str(SCAN), "-d", length, *(("-o", f"{folder}/scan.d") if name == KEPT else ())]]
    path = f"{os.environ['PATH']}:/usr/sbin"
    found = [shutil.which(each, path=path) for each in ("offcputime", "wakeuptime", "perf")]
    if None in found:
        sys.exit("offcputime, wakeuptime or perf is missing: apt-get install libbpf-tools linux-perf")
    off, wake, perf = map(str, found)
    return [[off, length], [wake, length], [perf, "record", "-q", "-a", "-g", "-F", "49", "-o", f"{folder}/perf.data"]]


@contextmanager
def _traced(name: str, seconds: float) -> Iterator[None]:
    """Runs the tracers of that name as long as this lasts; for "bare", none."""
    with tempfile.TemporaryDirectory() as folder:
        commands = [] if name == "bare" else _tracer(name, seconds, folder)
        with contextlib.ExitStack() as stack:
            running = [stack.enter_context(_running(command)) for command in commands]
            for _ in range(LONGEST if running else 0):
                before = sum(_cpu_of(each.pid) for each in running)
                time.sleep(ATTACHED)
                if sum(_cpu_of(each.pid) for each in running) - before < CALM * ATTACHED:
                    break
            yield


def _cpu_of(pid: int) -> float:
    """Seconds that a process and its descendants have run."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(_cpu_of(int(child)) for child in children)


@contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=NULL, stderr=NULL)
    try:
        if Path(command[0]).name != "perf":
            wait_for_link(process.pid)
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        _wait(process, 120)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _rate(pattern: str, command: list[str], user: int | None = None) -> float:
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", user=user, check=True)
    if (found := re.search(pattern, done.stdout)) is None:
        sys.exit(f"{command[0]} printed no rate:\n{done.stdout}")
    return float(found[1])


class Server(NamedTuple):
    """A server of PostgreSQL with pgbench's tables."""

    pid: int
    home: Path
    socket: str

    def command(self, name: str) -> list[str]:
        """Command line of a program of PostgreSQL that connects to it."""
        return [f"{self.home}/{name}", "-h", self.socket, "-U", "postgres"]


@contextmanager
def postgres_server() -> Iterator[Server]:
    """A server of its own, whose user is `NOBODY`."""
    servers = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not servers:
        sys.exit("PostgreSQL is missing: apt-get install postgresql")
    home = servers[-1]
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)
        data = [f"{home}/initdb", "-D", f"{folder}/data", "-U", "postgres", "-A", "trust", "--no-sync"]
        subprocess.run(data, user=NOBODY, check=True, stdout=NULL, stderr=NULL, cwd="/")
        options = ["-D", f"{folder}/data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        process = subprocess.Popen([f"{home}/postgres", *options], user=NOBODY, stdout=NULL, stderr=NULL, cwd="/")
        server = Server(process.pid, home, folder)
        try:
            while subprocess.run(server.command("pg_isready"), stdout=NULL, stderr=NULL).returncode:
                if process.poll() is not None:
                    sys.exit("PostgreSQL has ended")
                time.sleep(0.1)
            filled = [*server.command("pgbench"), "-i", "-s", "4", "postgres"]
            subprocess.run(filled, user=NOBODY, check=True, stdout=NULL, stderr=NULL, cwd="/")
            yield server
        finally:
            process.terminate()
            _wait(process, 10)


@contextmanager
def postgres() -> Iterator[Callable[[float], float]]:
    """pgbench's transactions, 4 clients at a server of its own: transactions per second."""
    with postgres_server() as server:
        bench = [*server.command("pgbench"), "-n", "-c", "4"]
        yield lambda seconds: _rate(r"tps = ([\d.]+)", [*bench, "-T", str(round(seconds)), "postgres"], NOBODY)


@contextmanager
def redis() -> Iterator[Callable[[float], float]]:
    """redis-benchmark's SET, 20 clients at a server of its own: requests per second."""
    server, bench = shutil.which("redis-server"), shutil.which("redis-benchmark")
    if not server or not bench:
        sys.exit("Redis is missing: apt-get install redis-server redis-tools")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        command = [server, "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]
        process = subprocess.Popen(command, stdout=NULL, stderr=NULL)
        try:
            while not Path(path).exists():
                if process.poll() is not None:
                    sys.exit("Redis has ended")
                time.sleep(0.1)

            def requests(number: int) -> float:
                return _rate(
                    r"([\d.]+) requests per second", [bench, "-s", path, "-c", "20", "-t", "set", "-n", f"{number}"]
                )

            fast = requests(20_000)
            yield lambda seconds: requests(round(fast * seconds))
        finally:
            process.terminate()
            _wait(process, 10)


def _job(python: str, text: str, seconds: float, name: str) -> float:
    """Steps per second of a job that is bare, traced from outside, or asked by py-spy."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        if name in (PLAIN, KEPT):
            stack.enter_context(_traced(name, seconds))
        job = subprocess.Popen([python, "-c", text, str(seconds)], stdout=subprocess.PIPE, text=True)
        if name == "peers":
            line = [str(PY_SPY), "record", "--idle", "-n", "-p", str(job.pid), "-o", f"{folder}/spy.svg"]
            spy = subprocess.Popen([*line, "-d", str(round(seconds + 1))], stdout=NULL, stderr=NULL)
            stack.callback(_wait, spy, 60)
        output, _ = job.communicate(timeout=seconds + 120)
        return float(output)


def compare(what: str, measure: Callable[[str], float], rounds: int, peer: str) -> None:
    """Prints medians of rounds, in which all take turns."""
    found: dict[str, list[float]] = {"bare": [], PLAIN: [], KEPT: [], "peers": []}
    for _ in range(rounds):
        for name, rates in found.items():
            rates.append(measure(name))
    for name, rates in found.items():
        shares = [rate / bare - 1 for rate, bare in zip(rates, found["bare"], strict=True)]
        title = peer if name == "peers" else name
        change = "" if name == "bare" else f"  {statistics.median(shares):+7.1%}"
        print(f"{what:>12}  {title:<34} {statistics.median(rates):12,.1f} a second{change}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10)
    given = parser.parse_args()

    def traced(of: Callable[[float], float], name: str) -> float:
        with _traced(name, given.seconds):
            return of(given.seconds)

    print(f"{given.rounds} rounds of {given.seconds:g} s; change: median of the shares of the bare one of the round")
    for what, load in (("pgbench", postgres), ("redis", redis)):
        with load() as of:
            compare(what, lambda name: traced(of, name), given.rounds, "offcputime, wakeuptime, perf record")
    jobs = [("numpy", sys.executable, NUMPY)]
    if torch := shutil.which(os.environ.get("TORCH_PYTHON", "")):
        jobs.append(("torch", torch, TORCH))
    for what, python, text in jobs:
        compare(what, partial(_job, python, text, given.seconds), given.rounds, "py-spy --idle")
    print(f"goal: trace-scan takes less than its peers, and less than {GOAL:.0%}")


if __name__ == "__main__":
    main()
