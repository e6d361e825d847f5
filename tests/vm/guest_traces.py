"""Common code of the checks in a guest: traces of workloads, commands, and the share of complete stacks."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from runner import Workload
from stacks_truth import reaches_start
from stallscope.converters import pprof
from stallscope.converters.model import Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.kernel.records import MAX_FRAMES
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.protocol import Measure
from tracing import Traced, collecting, run_traced

ROOT = Path(__file__).resolve().parents[2]
TRACE = str(ROOT / ".venv/bin/trace-offcpu")
CLOSURE = 0.01
"""Share by which on-CPU, blocked and runnable time may miss a thread's wall time."""
WHOLE = 0.99
"""Share of the off-CPU time in stacks that reach the thread's start."""


def traced(name: str, *arguments: object, measures: tuple[Measure, ...] = (), **options: Any) -> Traced:
    with Workload(name, *arguments, linger=True) as workload:
        scope = Scope(pids=list(workload.pids))
        scope.resolve()
        return run_traced(workload, ProbeOptions(scope, collecting(measures or [OffCpu()]), **options), None)


def run(*command: str, timeout: float = 120) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(command)}: status {done.returncode}\n{said}"
    return said


def profile_by(*arguments: str, timeout: float = 120) -> Profile:
    """Profile that trace-offcpu writes when it is called so."""
    output = Path("/run/profile.pb.gz")
    print(run(TRACE, "--force", "-o", str(output), *arguments, timeout=timeout))
    with output.open("rb") as file:
        return pprof.load(file)


def whole_share(profile: Profile) -> float:
    """Share of the off-CPU time with user stacks that is in stacks which reach the thread's start.

    Those that are cut at the limit of frames cannot.
    """
    time: Counter[bool] = Counter()
    broken: Counter[str] = Counter()
    for sample in profile.samples:
        native = [frame.name for frame in sample.stack if frame.kind == "native"]
        if 0 < len(native) < MAX_FRAMES:
            whole = reaches_start(sample.stack)
            time[whole] += sample.values[0]
            broken[" → ".join(native[-6:])] += 0 if whole else sample.values[0]
    assert time.total(), "no user stacks"
    for stack, ns in broken.most_common(5):
        print(f"{ns / time.total():7.2%} {stack}")
    return time[True] / time.total()


def told_share(profile: Profile) -> float:
    """The share of complete stacks that the profile tells of itself, for programs whose outermost frame has no name."""
    told = re.search(r"([\d.]+)% of the time in user code is in complete stacks", "\n".join(worded(profile.comments)))
    return float(told[1]) / 100 if told else 1.0  # nothing is said when there is nothing to say
