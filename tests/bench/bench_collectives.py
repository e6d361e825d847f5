"""Cost of a traced all-reduce of Gloo: 8 ranks of PyTorch on this machine meet in all-reduces of 1 KB, by turns without
a tracer, with trace-nccl, with its probes alone, and with bpftrace at the same functions.

TORCH_PYTHON names a Python that has PyTorch. Ranks share cores, so that the wall time of a call is mostly that of other
ranks: the CPU time of all ranks, by rank and call, is what a tracer adds to.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median
from typing import NamedTuple

from peers import interrupt

ROUNDS, CALLS, RANKS = 3, 300, 8
STEP = 10e6
"""ns of a step of training with one all-reduce."""
_ATTACHED = 6.0
"""Seconds that a tracer has to attach."""
_RANK = """
import sys, time, torch, torch.distributed as d
number, size, folder, calls = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
torch.set_num_threads(1)
d.init_process_group("gloo", init_method=f"file://{folder}/store", rank=number, world_size=size)
values = torch.ones(256)
d.all_reduce(values)
print("ready", torch.__file__, flush=True)
for line in sys.stdin:
    d.barrier()
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    for _ in range(calls):
        d.all_reduce(values)
    print(time.perf_counter_ns() - wall, time.process_time_ns() - cpu, flush=True)
"""
_GLOO = "_ZN4c10d16ProcessGroupGloo"
_REDUCE = f"{_GLOO}9allreduceERSt6vectorIN2at6TensorESaIS3_EERKNS_16AllreduceOptionsE"
_POINTER = "N3c1013intrusive_ptrINS0_9AsyncWorkENS1_6detail34intrusive_target_default_null_typeIS3_EEEE"


def one_liner(library: str) -> str:
    """Program for bpftrace: the time of each call of an all-reduce until it is done."""
    return (
        f"uprobe:{library}:{_REDUCE} {{ @begun[tid] = nsecs; }} "
        f"uprobe:{library}:{_GLOO}7enqueueE{_POINTER} {{ @work[pid, *(uint64 *)arg1] = @begun[tid]; }} "
        f"uprobe:{library}:{_GLOO}9AsyncWork14finishWorkGlooEv /@work[pid, arg0]/ "
        "{ @ns[pid] = hist(nsecs - @work[pid, arg0]); delete(@work[pid, arg0]); }"
    )


class Cost(NamedTuple):
    """ns for each call."""

    wall: float
    cpu: float
    """CPU time of a rank."""


class Ranks:
    """The ranks, which meet when they are told to."""

    def __init__(self, python: str, folder: str) -> None:
        self._ranks = [
            subprocess.Popen(
                [python, "-c", _RANK, str(number), str(RANKS), folder, str(CALLS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(RANKS)
        ]
        self.library = str(Path(self._answers()[0][1]).with_name("lib") / "libtorch_cpu.so")
        self.pids = ",".join(str(rank.pid) for rank in self._ranks)

    def _answers(self) -> list[list[str]]:
        return [rank.stdout.readline().split() for rank in self._ranks if rank.stdout]

    def meet(self) -> Cost:
        """Lets them make their calls."""
        for rank in self._ranks:
            assert rank.stdin
            rank.stdin.write("\n")
            rank.stdin.flush()
        times = [list(map(int, answer)) for answer in self._answers()]
        return Cost(*(sum(column) / RANKS / CALLS for column in zip(*times, strict=True)))

    def end(self) -> None:
        """Ends them."""
        for rank in self._ranks:
            rank.kill()
            rank.wait()


@contextmanager
def tracer(command: list[str]) -> Iterator[None]:
    """Command that is attached meanwhile, and interrupted at the end. An error if it is not there."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(_ATTACHED)
        if process.poll() is not None:
            sys.exit(f"{command[0]} ended with status {process.returncode}")
        yield
    finally:
        interrupt(process)


def probes(pids: str) -> None:
    """Traces with the probes of trace-nccl only, until it is interrupted."""
    from stallscope.tracers.base.scope import Scope
    from stallscope.tracers.engines.ebpf.measures.registry import collectors
    from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
    from stallscope.tracers.engines.ebpf.session import Session
    from stallscope.tracers.kernel.records import RecordSink
    from stallscope.tracers.measures.argument_options import ArgumentOptions
    from stallscope.tracers.measures.calls import Calls
    from stallscope.tracers.probe_targets.collectives import Collectives

    scope = Scope(pids=list(map(int, pids.split(","))))
    scope.resolve()
    sink = RecordSink()
    engine = Probes(
        ProbeOptions(scope, collectors([Calls(Collectives(), arguments=ArgumentOptions())]), user_stacks=False), sink
    )
    try:
        Session(engine, None, None).run(sink)
    finally:
        engine.close()


def main() -> None:
    if len(sys.argv) > 1:
        probes(sys.argv[1])
        return
    python = os.environ.get("TORCH_PYTHON") or sys.exit("TORCH_PYTHON names no Python with PyTorch")
    bpftrace = shutil.which("bpftrace", path=f"{os.environ['PATH']}:/usr/sbin")
    if bpftrace is None:
        sys.exit("bpftrace is missing: apt-get install bpftrace")
    with tempfile.TemporaryDirectory() as folder:
        ranks = Ranks(python, folder)
        ours = [
            str(Path(sys.executable).with_name("trace-nccl")),
            "-p",
            ranks.pids,
            "--force",
            "-o",
            f"{folder}/x.pb.gz",
        ]
        tracers = {
            "without a tracer": [],
            "trace-nccl": ours,
            "its probes alone": [sys.executable, __file__, ranks.pids],
            "bpftrace": [bpftrace, "-e", one_liner(ranks.library)],
        }
        found: dict[str, list[Cost]] = {name: [] for name in tracers}
        try:
            for _ in range(ROUNDS):
                for name, command in tracers.items():
                    with tracer(command) if command else nullcontext():
                        found[name].append(ranks.meet())
        finally:
            ranks.end()
    bare = Cost(*map(median, zip(*found["without a tracer"], strict=True)))
    print(f"{RANKS} ranks, all-reduce of 1 KB: {bare.wall:,.0f} ns per call, {bare.cpu:,.0f} of CPU time of each rank")
    for name, costs in list(found.items())[1:]:
        wall, cpu = (median(column) for column in zip(*costs, strict=True))
        added = cpu - bare.cpu
        print(
            f"{name:16} {wall - bare.wall:+9,.0f} ns per call, {added:+8,.0f} of CPU time: "
            f"{added / STEP:.2%} of a 10 ms step"
        )


if __name__ == "__main__":
    main()
