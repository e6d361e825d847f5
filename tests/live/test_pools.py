"""Pools of threads: where their threads were created, and who gives them work."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from commands import Tracer
from runner import SYSTEM_PYTHON
from stallscope.converters import pprof
from stallscope.converters.facts.pools import pools_of
from stallscope.converters.scan import folder
from stallscope.converters.summary.judging import read
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.wakeup import WakeUp
from test_scan import TRACE_SCAN
from tracing import Trace

pytestmark = pytest.mark.usefixtures("live")

READERS, WRITERS = ("start_readers", "start_pool"), ("start_writers", "start_pool")
PROGRAM = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor

def load_batches(pool, task):
    for _ in range(4):
        pool.submit(task)

def score_batches(pool, task):
    for _ in range(3):
        pool.submit(task)

def main():
    print(flush=True)
    sys.stdin.readline()
    loaders, scorers = ThreadPoolExecutor(4), ThreadPoolExecutor(3)
    load_batches(loaders, threading.Barrier(4).wait)  # no thread is free before all are there
    score_batches(scorers, threading.Barrier(3).wait)
    until = time.monotonic() + 1
    while time.monotonic() < until:
        load_batches(loaders, sum)
        score_batches(scorers, sum)
        time.sleep(0.005)

main()
"""


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_two_pools_that_only_their_makers_tell_apart(trace: Trace, shape: Shape) -> None:
    measures = OffCpu(time="wall", creations=True), WakeUp(alone=False)
    traced = trace("two_pools", 500, 3, 2, measures=measures, shape=shape)
    profile = traced.profile
    made = Counter(times.made_in for times in profile.threads if times.tid != times.pid)
    assert made == {READERS: 3, WRITERS: 2}
    assert [times.made_in for times in profile.threads if times.tid == times.pid] == [()]
    assert traced.counters["lost_makers"] == 0
    pools = {pool.made_in: pool for pool in pools_of(read(profile).facts)}
    assert {place: (pool.threads, pool.thread, pool.runs) for place, pool in pools.items()} == {
        READERS: (3, "worker-*", "run_tasks"),
        WRITERS: (2, "worker-*", "run_tasks"),
    }
    for place, feeder in ((READERS, "feed_readers"), (WRITERS, "feed_writers")):
        waits = [s for s in traced.samples("run_tasks") if s.label("tid") in pools[place].tids]
        ended = [s for s in waits if s.label("state") == "interruptible" and s.label("open") != "yes"]
        # A thread that hardly ever had to wait for its work was given it by nobody.
        number = Counter[object]()
        for sample in ended:
            number[sample.label("tid")] += sample.values[profile.index("count")]
        assert pools[place].fed_in == () or feeder in pools[place].fed_in
        assert feeder in pools[place].fed_in or min(number.values(), default=0) <= 3


def test_other_commands_do_not_take_these_stacks(trace: Trace) -> None:
    profile = trace("two_pools", 100, 1, 1, measures=(OffCpu(),)).profile
    assert {times.made_in for times in profile.threads} == {()}


def test_pools_of_python(tmp_path: Path) -> None:
    script, kept = tmp_path / "job.py", tmp_path / "scan.d"
    script.write_text(PROGRAM)
    command = [SYSTEM_PYTHON, script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        try:
            process.stdout.readline()
            with Tracer("-p", process.pid, "-o", kept, command=TRACE_SCAN) as tracer:
                tracer.ready()
                process.stdin.write("\n")
                process.stdin.close()
                tracer.finish().check_succeeded()
        finally:
            process.kill()
    pools = json.loads((kept / folder.SUMMARY).read_text())["pools"]
    found = {pool["threads"]: pool for pool in pools}
    assert {number: pool["runs"] for number, pool in found.items()} == {4: "_worker", 3: "_worker"}
    for number, function in ((4, "load_batches"), (3, "score_batches")):
        made_in = found[number]["made_in"]
        assert made_in[1].endswith(f" {function}"), made_in
        assert made_in[-1] == "ThreadPoolExecutor.submit" or made_in[-1] == "submit"
    (saved,) = kept.glob("*.pb.gz")
    with saved.open("rb") as file:
        again = Counter(times.made_in for times in pprof.load(file).threads if times.made_in)
    assert again == {tuple(pool["made_in"]): pool["threads"] for pool in pools}
