"""The checks of calls, in a guest: ioctls, functions, events, and questions about calls."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import ask_check
from guest_traces import traced
from runner import FOLDER
from stallscope.converters.model import Profile
from stallscope.tracers.engines.ebpf.measures.calls import CallsCollector
from stallscope.tracers.engines.ebpf.measures.event_probes import chosen_in_kernel
from stallscope.tracers.engines.ebpf.measures.ioctl import IoctlCollector
from stallscope.tracers.kernel.uprobes import best_way
from stallscope.tracers.measures.calls import Calls, KernelCalls
from stallscope.tracers.measures.events import Events
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.probe_targets import events as apis_of_events
from stallscope.tracers.probe_targets.events import EventTarget
from stallscope.tracers.probe_targets.wanted import Library, Wanted


def ioctl() -> str:
    """Every call of programs that timed their own: its number, its time, and what that time was."""
    worst, calls, kept = 0.0, 0, 0
    for what, count in (("tty", 500), ("tun", 50)) if Path("/dev/net/tun").exists() else (("tty", 500),):
        found = traced("ioctls", what, 2, count, measures=(Ioctl(),))
        lost = {kind: found.profile.lost[kind] for kind in IoctlCollector(Ioctl()).losses()}
        unreported = lost.pop("ioctls not reported by the kernel")
        for truth in found.truth["waits"]:
            (call,) = [c for c in found.profile.calls if (c.name, c.pid) == (truth["function"], truth["pid"])]
            assert call.count == sum(call.latencies), call
            assert call.count <= truth["calls"] <= call.count + unreported, (call, truth, unreported)
            assert call.total <= truth["ns"], (call, truth)
            assert call.on_cpu >= 0, call
            worst = max(worst, (truth["ns"] - call.total) / truth["calls"])
            calls += call.count
        samples = sum(sample.values[0] for sample in found.profile.samples)
        assert samples == sum(call.total for call in found.profile.calls), samples
        kept += unreported
        lost.pop("returns from ioctls") if unreported else None
        assert not any(lost.values()), lost
    counted = f"all but {kept:,} counted, which the kernel did not report" if kept else "all counted"
    return f"{calls:,} calls, {counted}; their own clock differs by at most {worst / 1000:.1f} µs a call on average"


def calls() -> str:
    """Every call of functions that measured what they did, in the best way that the kernel has."""
    way, worst, number = best_way(), 0.0, 0
    wanted = Wanted(libraries=(Library.at(str(FOLDER / "sleeps")),), symbols=re.compile("^sleep_"))
    found = traced("sleeps", 40, measures=(Calls(wanted),))
    timed = {(call.name, call.pid): call for call in found.profile.calls}
    for truth in found.truth["waits"]:
        call = timed[truth["function"], truth["pid"]]
        assert call.count == truth["calls"] == sum(call.latencies), (call, truth)
        assert call.total >= truth["ns"], (call, truth)
        worst = max(worst, (call.total - truth["ns"]) / truth["calls"])
        number += call.count
    assert not any(found.profile.lost[kind] for kind in CallsCollector(Calls()).losses()), found.profile.lost
    more = f"at most {worst / 1000:.1f} µs longer than what they measured inside; {_joined()}"
    return f"{number:,} calls, all counted, by {way.title}; {more}"


def _joined() -> str:
    """Ioctls are parts of the calls that make them: each is counted, and so is each ns, once."""
    wanted = Wanted(libraries=(Library.at(str(FOLDER / "ioctls")),), symbols=re.compile("^get_sizes$"))
    ioctls = Ioctl(alone=False)
    profile = traced("ioctls", "inside", 2, 200, measures=(ioctls, Calls(wanted))).profile
    unreported = profile.lost["ioctls not reported by the kernel"]
    made = sum(each.count for each in profile.call_ioctls)
    assert made <= 2 * 2 * 200 <= made + unreported, (made, unreported)
    assert {each.command for each in profile.call_ioctls} == {"TIOCGWINSZ"}
    calls = [call for call in profile.calls if call.library]
    assert sum(call.count for call in calls) == 2 * 200, calls
    assert sum(sample.values[0] for sample in profile.samples) == sum(call.own for call in calls)
    ioctl_time = sum(s.values[0] for s in profile.samples if any("TIOCGWINSZ" in frame.name for frame in s.stack))
    assert ioctl_time == sum(each.total for each in profile.call_ioctls)
    return f"{made} ioctls in 400 other calls are told as their parts"


def func() -> str:
    """Checks what trace-func counts: USDT probes, tracepoints, and functions of the kernel, with their stacks; and the
    time of the latter."""
    usdt = traced("usdt", 100, measures=(_events(f"u:{FOLDER}/usdt:*"),)).profile
    assert _counts(usdt) == {"shop:sale": 100, "shop:look": 300, "shop:audit": 100}, (usdt.calls, usdt.comments)
    places = "t:syscalls:sys_enter_nanosleep", "k:hrtimer_nanosleep"
    found = traced("sleeps", 20, measures=(_events(*places),))
    sleeps = sum(wait["calls"] for wait in found.truth["waits"])
    assert _counts(found.profile) == {"syscalls:sys_enter_nanosleep": sleeps, "hrtimer_nanosleep": sleeps}
    whole = Counter[bool]()
    for sample in found.profile.samples:
        names = [frame.name for frame in sample.stack]
        of_kernel = "hrtimer_nanosleep" in names and "do_syscall_64" in names
        whole[any(name[:6] == "sleep_" for name in names) and of_kernel] += sample.values[0]
    print(whole, [sample.stack for sample in found.profile.samples][:4])
    # The tracepoint is before the function.
    assert whole[True] == sleeps, whole
    for profile in (usdt, found.profile):
        assert not any(profile.lost[kind] for kind in ("events", "stacks of events")), profile.lost
    _check_kernel_calls()
    hits = sum(_counts(usdt).values())
    return f"{hits} hits of USDT probes, {sleeps} of a tracepoint and of a function of the kernel, which is timed, too"


def _check_kernel_calls() -> None:
    """Each is timed, and what it did meanwhile was to be blocked."""
    found = traced("sleeps", 20, measures=(KernelCalls(("hrtimer_nanosleep", "do_nanosleep")),))
    sleeps, ns = (sum(wait[key] for wait in found.truth["waits"]) for key in ("calls", "ns"))
    calls = {call.name: call for call in found.profile.calls}
    print(calls, found.truth["waits"], found.profile.comments)
    for call in calls.values():
        assert call.count == sleeps == sum(call.latencies), call
        assert 0.8 * ns <= call.total <= ns, (call, ns)
        assert call.blocked >= 0.8 * call.total, call
        assert call.device == "kernel", call
    assert calls["hrtimer_nanosleep"].inner == calls["do_nanosleep"].total
    samples = sum(sample.values[0] for sample in found.profile.samples)
    assert samples == calls["hrtimer_nanosleep"].total, samples
    inside = [sample for sample in found.profile.samples if any(f.name == "do_nanosleep kernel" for f in sample.stack)]
    assert sum(s.values[0] for s in inside if s.label("state") == "interruptible") >= 0.8 * ns, inside
    assert any(frame.name == "sleep_1ms" for sample in inside for frame in sample.stack)


def _events(*texts: str) -> Events:
    wanted = apis_of_events.Events.all_of([], map(EventTarget.parse, texts))
    return Events(wanted, chosen_in_kernel(wanted))


def _counts(profile: Profile) -> dict[str, int]:
    found = Counter[str]()
    for call in profile.calls:
        found[call.name] += call.count
    return dict(found)


def ask() -> str:
    """Questions about calls: all that took more than 0.5 ms, and slow ones alone."""
    lines: list[str] = []
    found = traced("sleeps", 20, measures=(ask_check.calls(lines),))
    number = ask_check.check(found, lines, ask_check.functions(1, 10, 25))
    lines = []
    slow = traced("sleeps", 20, measures=(ask_check.calls(lines, over=20_000_000),))
    return f"{number} calls, and {ask_check.check(slow, lines, ask_check.functions(25))} slow ones alone"
