"""The check of ``--engine stap``, in a guest: the module was compiled on the host."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from runner import Workload
from stallscope.converters import pprof
from stallscope.converters.model import Profile
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.measures.offcpu import OffCpu
from stap_modules import ROOT, module_of
from tracing import run_traced

TOTALS = 0.05
"""Share by which times of the two engines may differ."""
WORKLOAD = ("slow_producer", 30, 150_000)
FUNCTIONS = ("take_item", "make_item")
"""Functions that wait in it, 150 ms at a time: at a switch the probes of the two engines run one after the other, and
under emulation those of SystemTap take 2 ms."""
_CLOSURE = 0.01
SKIPPED = 10
"""Events that SystemTap may skip, and say so: under emulation a core that holds a lock is stopped now and then."""
_MODULE = "stallscope_"
_PATIENCE = 180.0


def run() -> str:
    """The engine stap beside libbpf, on the same process at the same time; traces that end in every way."""
    module = module_of(os.environ["STALLSCOPE_VM"], "stap")
    with Workload(*WORKLOAD, linger=True) as workload:
        theirs = trace(module, "offcpu", workload.pid, "/run/stap.pb.gz")
        scope = Scope(pids=list(workload.pids))
        scope.resolve()
        ours = run_traced(workload, ProbeOptions(scope, collectors([OffCpu()])), None)
        found = ended(theirs, "/run/stap.pb.gz")
    differs = max(_difference(ours.profile, found, function) for function in FUNCTIONS)
    check_account(found)
    _check_ends(module)
    return f"the same stacks of {len(FUNCTIONS)} functions, times within {differs:.1%}; no module was left behind"


def trace(module: Path, stem: str, pids: int | Iterable[int], output: str, *more: str) -> subprocess.Popen[str]:
    """A trace that has begun."""
    before = len(_modules())
    words = [str(ROOT / f".venv/bin/trace-{stem}"), "--engine", "stap", "--stap-module", str(module)]
    for pid in [pids] if isinstance(pids, int) else pids:
        words += ["-p", str(pid)]
    process = subprocess.Popen([*words, *more, "--force", "-o", output], stderr=subprocess.PIPE, text=True)
    _wait_for(lambda: len(_modules()) > before or process.poll() is not None, "the module was not loaded")
    if process.poll() is not None:
        raise AssertionError(process.communicate()[1])
    time.sleep(1)
    return process


def ended(process: subprocess.Popen[str], output: str, *, by_us: bool = True) -> Profile:
    """Ends a trace, or waits until its targets have ended, and reads what it wrote."""
    if by_us:
        process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=_PATIENCE)[1]
    assert process.returncode == 0, errors
    with open(output, "rb") as file:
        return pprof.load(file)


def _difference(ours: Profile, theirs: Profile, function: str) -> float:
    """Share by which the times differ. The stacks have to have the same functions."""
    times = [_times(profile, function) for profile in (ours, theirs)]
    one, other = (set(each) for each in times)
    assert one == other, f"{function}: stacks with other functions: {one ^ other}"
    mine, stap = (each.total() for each in times)
    print(f"{function}: libbpf {mine / 1e6:.1f} ms, stap {stap / 1e6:.1f} ms")
    assert abs(mine - stap) <= TOTALS * mine, (function, mine, stap)
    return abs(mine - stap) / mine


def _times(profile: Profile, function: str) -> Counter[frozenset[str]]:
    """Off-CPU time of waits by the functions of their stacks. clone3 and __clone3 are one function."""
    times: Counter[frozenset[str]] = Counter()
    for sample in profile.samples:
        names = frozenset(frame.name.lstrip("_") for frame in sample.stack)
        if function in names and sample.label("state") in ("interruptible", "runnable-woken"):
            times[names] += sample.values[0]
    return times


def check_account(profile: Profile) -> None:
    """On-CPU, blocked and runnable time are the thread's wall time; nothing was lost but a few told events."""
    for times in profile.threads:
        parts = times.on_cpu + times.runnable + sum(times.blocked.values())
        assert abs(parts - times.wall) <= _CLOSURE * times.wall, (times, parts)
    print(profile.lost)
    lost = {what for what, number in profile.lost.items() if number} - {"events", "intervals"}
    events, intervals = profile.lost["events"], profile.lost["intervals"]
    # A switch that is skipped is one of two threads.
    assert not lost and events <= SKIPPED and intervals <= 2 * events, profile.lost


def _check_ends(module: Path) -> None:
    """Two traces at once; a tracer that is killed; a target that ends."""
    with Workload("slow_producer", 1000, 200_000) as workload:
        workload.release()
        first = trace(module, "wall", workload.pid, "/run/first.pb.gz")
        second = trace(module, "offcpu", workload.pid, "/run/second.pb.gz")
        assert len(_modules()) == 2, _modules()
        for process, output in ((first, "/run/first.pb.gz"), (second, "/run/second.pb.gz")):
            profile = ended(process, output)
            assert _times(profile, "make_item"), "two at once: one of them has seen nothing"
        killed = trace(module, "offcpu", workload.pid, "/run/never.pb.gz")
        killed.kill()
        killed.communicate()
        _wait_for(lambda: not _modules(), "the module of a tracer that was killed stays loaded")
        last = trace(module, "offcpu", workload.pid, "/run/last.pb.gz")
        workload.kill()
        errors = last.communicate(timeout=_PATIENCE)[1]
        assert last.returncode == 0, errors
    check_gone()


def check_gone() -> None:
    """No module of ours is loaded any more."""
    _wait_for(lambda: not _modules(), "a module stays loaded")


def _modules() -> list[str]:
    return [line.split()[0] for line in Path("/proc/modules").read_text().splitlines() if line.startswith(_MODULE)]


def _wait_for(condition: Callable[[], object], otherwise: str) -> None:
    until = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < until, otherwise
        time.sleep(0.1)
