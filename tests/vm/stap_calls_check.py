"""The checks of ``--engine stap`` with commands that time calls: the same workload under libbpf and SystemTap."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from runner import Workload
from stallscope.converters.model import Profile
from stallscope.converters.model.calls import CallTimes
from stallscope.converters.model.wakers import links, own_part
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.measures.protocol import Measure
from stallscope.tracers.measures.wakeup import WakeUp
from stallscope.tracers.probe_targets.wanted import Library, Wanted
from stap_check import FUNCTIONS, TOTALS, WORKLOAD, check_account, check_gone, ended, trace
from stap_modules import CALLS, PRODUCER, module_of
from tracing import collecting, run_traced

_Value = TypeVar("_Value")
_HELD_US = 100_000
"""Time in µs for which each call is held: at a switch the probes of both engines run one after the other, and under
emulation those of SystemTap take 2 ms."""


def ioctl() -> str:
    """trace-ioctl with both engines."""
    ours, theirs = _both("ioctl", ("ioctls", "held", 2, 5, _HELD_US), (Ioctl(),))
    calls, differs = _compare_calls(ours, theirs)
    functions = _compare_stacks(ours, theirs)
    mine, other = ({each.name: each.count for each in profile.shared} for profile in (ours, theirs))
    assert mine == other != {}, (mine, other)
    return f"{calls} calls, the same in both, with the same {functions} stacks; times within {differs:.1%}"


def wakeup() -> str:
    """trace-wakeup with both engines."""
    ours, theirs = _both("wakeup", WORKLOAD, (WakeUp(4),))
    one, other = (_woken(profile) for profile in (ours, theirs))
    print(one, other, sep="\n")
    assert one.keys() == other.keys(), one.keys() ^ other.keys()
    assert any("[timer]" in key.wakers and len(key.wakers) > 1 for key in one), "no chain"
    worst = 0.0
    for key, (time, count) in one.items():
        assert count == other[key][1], (key, count, other[key])
        # A part of waits has no number of its own: the few ms of a busy machine are much of it, and little of them all.
        whole = time if count else sum(each for each, _ in one.values())
        assert abs(time - other[key][0]) <= TOTALS * whole, (key, time, other[key])
        worst = max(worst, abs(time - other[key][0]) / whole)
    waits = sum(count for _, count in one.values())
    return f"{waits} waits ended by the same, through {len(one)} chains; times within {worst:.1%}"


def cuda() -> str:
    """trace-cuda with both engines."""
    move_to_memory(Path(PRODUCER))
    wanted = Wanted(libraries=(Library.at(PRODUCER),), symbols=re.compile(CALLS))
    ioctls = Ioctl(alone=False)
    more = ("--lib", PRODUCER, "--sym", CALLS)
    ours, theirs = _both("cuda", WORKLOAD, (ioctls, Calls(wanted)), more)
    calls, differs = _compare_calls(ours, theirs)
    functions = _compare_stacks(ours, theirs)
    assert calls >= 2 * WORKLOAD[1] - 1, calls
    return f"{calls} calls, the same in both, with the same {functions} stacks; times within {differs:.1%}"


def move_to_memory(program: Path) -> None:
    """The kernel takes no probes on files of the host."""
    data = program.read_bytes()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(program.parent)], check=True)
    program.write_bytes(data)
    program.chmod(0o755)


class _Chain(NamedTuple):
    functions: frozenset[str]
    """Functions of the thread that waited."""
    wakers: tuple[str, ...]


def _woken(profile: Profile) -> dict[_Chain, tuple[int, int]]:
    """Time and number of the waits of the workload's own functions, by stack and by who ended them."""
    found: dict[_Chain, tuple[int, int]] = {}
    for sample in profile.samples:
        names = frozenset(frame.name.lstrip("_") for frame in own_part(sample.stack))
        if names.isdisjoint(FUNCTIONS) or sample.label("open"):
            continue
        key = _Chain(names, tuple(link[-1].name.split("-")[0] for link in links(sample.stack)))
        time, count = found.get(key, (0, 0))
        found[key] = time + sample.values[0], count + sample.values[1]
    return {key: (time, count) for key, (time, count) in found.items() if time > _HELD_US * 100}


def _both(
    stem: str, workload: tuple[str | int, ...], measures: tuple[Measure, ...], more: Sequence[str] = ()
) -> tuple[Profile, Profile]:
    """The profiles of libbpf and of SystemTap, taken at the same time."""
    module, output = module_of(os.environ["STALLSCOPE_VM"], f"stap_{stem}"), f"/run/{stem}.pb.gz"
    with Workload(str(workload[0]), *workload[1:], linger=True) as running:
        theirs = trace(module, stem, running.pids, output, *more)
        scope = Scope(pids=list(running.pids))
        scope.resolve()
        ours = run_traced(running, ProbeOptions(scope, collecting(measures)), None)
        found = ended(theirs, output)
    check_account(found)
    check_gone()
    return ours.profile, found


def _compare_calls(ours: Profile, theirs: Profile) -> tuple[int, float]:
    """The number of calls, and by what share their times differ. Counts and errors have to be the same."""
    one, other = (_by_name(profile, lambda call: (call.count, call.errors)) for profile in (ours, theirs))
    print(one, other, sep="\n")
    assert one == other, (one, other)
    worst = 0.0
    mine, stap = (_by_name(profile, lambda call: call.total) for profile in (ours, theirs))
    for what, time in mine.items():
        print(what, time, stap[what])
        assert abs(time - stap[what]) <= TOTALS * time, (what, time, stap[what])
        worst = max(worst, abs(time - stap[what]) / time)
    blocked, same = (sum(call.blocked for call in profile.calls) for profile in (ours, theirs))
    assert abs(blocked - same) <= TOTALS * blocked, (blocked, same)
    return sum(call.count for call in theirs.calls), worst


def _by_name(profile: Profile, value: Callable[[CallTimes], _Value]) -> dict[tuple[str, str, int], _Value]:
    return {(call.name, call.where, call.pid): value(call) for call in profile.calls}


def _compare_stacks(ours: Profile, theirs: Profile) -> int:
    """Number of sets of functions calls were blocked in, which have to be the same."""
    one, other = (_blocked(profile) for profile in (ours, theirs))
    assert one.keys() == other.keys(), one.keys() ^ other.keys()
    for functions, time in one.items():
        assert abs(time - other[functions]) <= TOTALS * one.total(), (functions, time, other[functions])
    return len(one)


def _blocked(profile: Profile) -> Counter[frozenset[str]]:
    """Time blocked in calls, by the functions of the stacks, of at least a tenth of one wait."""
    times: Counter[frozenset[str]] = Counter()
    for sample in profile.samples:
        if sample.label("state") in ("interruptible", "uninterruptible"):
            times[frozenset(frame.name.lstrip("_") for frame in sample.stack)] += sample.values[0]
    return Counter({functions: time for functions, time in times.items() if time > _HELD_US * 100})
