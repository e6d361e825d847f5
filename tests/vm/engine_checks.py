"""The checks of engines other than libbpf, in a guest: the users' command, against the workloads' own clocks."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import commands
import plan
from commands import Tracer, load
from runner import Workload
from stallscope.converters.model import Profile, Sample
from stallscope.converters.phrases.remarks import worded

ROOT = Path(__file__).resolve().parents[2]
WALL = str(Path(sys.executable).with_name("trace-wall"))
MS = 1_000_000
TIMES = 0.05
"""Share by which the waits of a function may differ from the workload's own clock."""
ITEMS, US = 20, 150_000
"""Waits of 150 ms: under emulation a switch alone takes some ms."""
POINTS = 0.06
"""Difference between a share and the share by the workload's own clock, at most, unless there are few samples."""
_FEW = 10
"""Events that may be lost, if that is told."""
_BTF = Path("/sys/kernel/btf")


def bcc() -> str:
    """Checks that auto goes on to bcc and says why; where libbpf can be used the kernel's type information is
    hidden."""
    if os.environ["STALLSCOPE_VM"] not in plan.TOO_OLD and _BTF.exists():
        subprocess.run(["/bin/mount", "-t", "tmpfs", "none", str(_BTF)], check=True)
    return _with_auto("bcc")


def stap_clock() -> str:
    """Checks what SystemTap says of waits and of running, where libbpf cannot be asked."""
    return _told(_waits_and_shares("--engine", "stap", "--stap-module", str(_module())))


def auto_stap() -> str:
    """A kernel without BPF that loads modules."""
    return _with_auto("stap")


def auto_perf() -> str:
    """A kernel without BPF that loads no module any more: auto tries the module, and goes on."""
    Path("/proc/sys/kernel/modules_disabled").write_text("1")
    return _with_auto("perf")


def perf() -> str:
    """Checks what perf says of waits and of running."""
    _hide_modules()
    return _told(_waits_and_shares("--engine", "perf"))


def eu_stack() -> str:
    """Shares of waits of known length by few samples, since each takes seconds under emulation."""
    output = Path("/run/engine.pb.gz")
    arguments = ("--engine", "eu-stack", "-F", "20", "-d", 100, "-o", output)
    with Workload("sleeps", 1000, 10) as workload, Tracer("-p", workload.pid, *arguments, command=WALL) as tracer:
        tracer.ready()
        workload.release()
        commands.PATIENCE = 200.0
        done = tracer.finish().check_succeeded()
    print(done.out, done.err)
    profile = load(output)
    number = _check_shares(profile, {f"sleep_{ms}ms": calls * ms for ms, calls in ((1, 4), (10, 2), (25, 1))})
    for times in profile.threads:
        together = times.on_cpu + times.runnable + sum(times.blocked.values())
        assert together == times.wall, times
    return f"shares as they have to be, of {number} samples; all of the threads' time is told"


def no_bpf() -> str:
    """Engines that need BPF say that there is none, and what else there is."""
    told = []
    for engine in ("libbpf", "bcc"):
        done = commands.run("--engine", engine, "-p", os.getpid(), "-d", 1, command=WALL)
        cause, remedy = done.check_failed(program="trace-wall")
        assert "no BPF" in cause, cause
        print(remedy)
        told.append(f"{engine}: {cause}")
    return "; ".join(told)


def _hide_modules() -> None:
    """perf looks at every file of the kernel's modules, which takes minutes over a file system of the network."""
    if Path("/lib/modules").is_dir():
        subprocess.run(["/bin/mount", "-t", "tmpfs", "none", "/lib/modules"], check=True)


def _module() -> Path:
    return ROOT / "build" / "vm" / f"stap-{os.environ['STALLSCOPE_VM']}.ko"


def _with_auto(engine: str) -> str:
    """Checks that auto chose ``engine``, and that its numbers are right. There is no option of it: that would choose
    it."""
    profile, worst, share = _waits_and_shares()
    told = [comment for comment in worded(profile.comments) if comment.startswith("taken with ")]
    assert len(told) == 1, worded(profile.comments)
    match = re.fullmatch(r"taken with (\S+), because other engines cannot be used \((.*)\)", told[0])
    assert match and match[1] == engine, told
    return f"{_told((profile, worst, share))}; {match[2]}"


def _told(found: tuple[Profile, float, float]) -> str:
    return f"waits within {found[1]:.1%} of their own clock, shares of what runs within {found[2]:.1%}"


def _waits_and_shares(*options: str) -> tuple[Profile, float, float]:
    """Profile, and the largest differences of the waits of functions, and of the shares of functions that run."""
    with _together(("slow_producer", ITEMS, US), ("shares", 12_000)) as workloads:
        profile, (waits, running) = _traced(workloads, *options)
    worst = 0.0
    for wait in waits["waits"]:
        time = sum(s.values[0] for s in _with(profile, wait["function"]) if s.label("state") != "runnable-preempted")
        (times,) = [times for times in profile.threads if times.tid == wait["tid"]]
        # Of its own clock, what it ran, and waited for a core after a preemption, is no part of waits.
        between = times.on_cpu + sum(
            s.values[0]
            for s in profile.samples
            if s.label("tid") == times.tid and s.label("state") == "runnable-preempted"
        )
        differs = max(wait["ns"] - between - time, time - wait["ns"], 0) / wait["ns"]
        print(f"{wait['function']}: {time / MS:.1f} ms of {wait['ns'] / MS:.1f} ms, {between / MS:.1f} ms between")
        assert differs <= TIMES, (wait, time, between)
        worst = max(worst, abs(time - wait["ns"]) / wait["ns"])
    # bcc walks frame pointers, which some of the functions do not have: their stacks may run on to the limit. SystemTap
    # skips events where a core is taken from the guest, and says so. perf does not report some switches, or has
    # no sample of them: the engine finds that out, and says so.
    is_stap = "--stap-module" in options or any(
        each.startswith("taken with stap,") for each in worded(profile.comments)
    )
    is_perf = "perf" in options or any(each.startswith("taken with perf,") for each in worded(profile.comments))
    may = ("stacks cut", *(("events", "intervals") if is_stap else ("intervals", "stacks") if is_perf else ()))
    lost = {what: number for what, number in profile.lost.items() if number and what not in may}
    assert not lost, lost
    assert profile.lost["events"] <= _FEW if is_stap else True, profile.lost
    assert max(profile.lost["intervals"], profile.lost.get("stacks", 0)) <= 2 * _FEW, profile.lost
    _check_account(profile)
    return profile, worst, _shares(profile, running)


def _check_account(profile: Profile) -> None:
    """On-CPU, blocked and runnable time are the thread's wall time."""
    assert profile.threads
    for times in profile.threads:
        together = times.on_cpu + times.runnable + sum(times.blocked.values())
        assert abs(together - times.wall) <= 0.01 * times.wall, (times, together)


def _shares(profile: Profile, truth: dict[str, Any]) -> float:
    """Largest difference of the shares of time on a core, by function. What walks frame pointers does not see callers
    without: innermost alone."""
    clock = {str(each["function"]): int(each["ns"]) for each in truth["waits"]}
    found = Counter[str]()
    number = 0
    for sample in profile.samples:
        names = [frame.name for frame in sample.stack]
        where = next((name for name in reversed(names) if name in clock), "")
        if sample.label("state") == "running" and where:
            found[where] += sample.values[0]
            number += sample.values[4]
    # system_spin is in the kernel, whose caller has no frame pointer; library_spin is called through library_inner.
    both = [name for name in clock if name in found]
    print(number, found, clock)
    assert len(both) >= 3, (found, clock)
    mine, own = (sum(times[name] for name in both) for times in (found, clock))
    for name in both:
        share = clock[name] / own
        assert abs(found[name] / mine - share) <= _bound(share, number), (name, number, found, clock)
    return max(abs(found[name] / mine - clock[name] / own) for name in both)


def _bound(share: float, number: int) -> float:
    """Bound for the difference of a share of so many samples: by what few samples do, three deviations."""
    return max(POINTS, 3 * (share * (1 - share) / (number / 2)) ** 0.5)


def _check_shares(profile: Profile, weights: dict[str, int]) -> int:
    """The number of samples in these functions."""
    inside = {name: _with(profile, name) for name in weights}
    found = {name: sum(sample.values[0] for sample in samples) for name, samples in inside.items()}
    number = sum(sample.values[4] for samples in inside.values() for sample in samples)
    print(number, found, weights)
    assert number >= 8, (number, found)
    for name, weight in weights.items():
        share = weight / sum(weights.values())
        assert abs(found[name] / sum(found.values()) - share) <= _bound(share, number), (name, found, number)
    return number


def _with(profile: Profile, function: str) -> list[Sample]:
    return [sample for sample in profile.samples if any(frame.name == function for frame in sample.stack)]


@contextlib.contextmanager
def _together(*programs: tuple[object, ...]) -> Iterator[list[Workload]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Workload(str(name), *rest, linger=True)) for name, *rest in programs]


def _traced(workloads: list[Workload], *options: str) -> tuple[Profile, list[dict[str, Any]]]:
    """Profile that trace-wall wrote of the workloads, from before they begin until after they are done; and their
    truths."""
    commands.PATIENCE = 300.0  # compiling, and reading of symbols, take minutes on a busy machine
    output = Path("/run/engine.pb.gz")
    pids = ",".join(str(each.pid) for each in workloads)
    frequency = () if "-F" in options else ("-F", "199")
    with Tracer("-p", pids, *frequency, "--force", "-o", output, *options, command=WALL) as tracer:
        tracer.ready()
        for each in workloads:
            each.release()
        truths = [each.truth() for each in workloads]
        done = tracer.interrupt().finish().check_succeeded()
    print(done.out, done.err)
    return load(output), truths
