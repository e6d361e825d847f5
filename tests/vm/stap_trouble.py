"""Checks of ``--engine stap`` where it is hard, in a guest: storms of switches, deep stacks, and violent ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from commands import Tracer, load
from runner import Workload
from stacks_truth import reaches_start
from stallscope.converters.model import Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.tracers.engines.stap.compiling import MOST_FRAMES, NAME

ROOT = Path(__file__).resolve().parents[2]
OFFCPU = str(Path(sys.executable).with_name("trace-offcpu"))
OUTPUT = Path("/run/stap.pb.gz")
PINGPONGS, ROUNDS = 3, 2500
"""Six threads that do nothing but switch: more than ten thousand switches, one after the other on each core."""
AROUND = 12
"""A thread's switches before and after its work, at most."""
CHARACTERS = 2048
DEEP = 60
"""Frames of descend() in a thread of cpp_frames; in another one there are more than any tracer keeps."""


def stap_storm() -> str:
    """Checks that what the scripts saw of each thread's switches, and what they say they lost, is what the kernel
    counted."""
    with contextlib.ExitStack() as stack:
        workloads = [stack.enter_context(Workload("futex_pingpong", ROUNDS, linger=True)) for _ in range(PINGPONGS)]
        profile, truths = _traced(workloads)
    counted, kernel = _switches(profile, truths)
    lost = profile.lost["events"] + profile.lost["intervals"]
    missing = sum((kernel - counted).values())
    print(counted, kernel, profile.lost, worded(profile.comments))
    assert not any("did not come to its end" in comment for comment in worded(profile.comments)), worded(
        profile.comments
    )
    assert not profile.lost["lines not understood"], profile.lost
    assert missing <= lost + len(kernel), (counted, kernel, profile.lost)
    assert max((counted - kernel).values(), default=0) <= AROUND, (counted, kernel)
    _check_closed(profile)
    _wait_for(lambda: not _modules(), "a module stays loaded")
    told = f"{lost} events told as lost" if lost else "none lost"
    return f"{kernel.total():,} switches by the kernel's count, {counted.total():,} seen, {told}"


def _check_closed(profile: Profile) -> None:
    """Every nanosecond of a thread is in one state, what is told as lost, too. A thread that is woken on one core
    while it leaves another one has the state TASK_WAKING for that moment: in storms this is frequent."""
    for times in profile.threads:
        parts = times.on_cpu + times.runnable + sum(times.blocked.values())
        assert parts == times.wall, (times, times.wall - parts)


def _switches(profile: Profile, truths: list[dict[str, Any]]) -> tuple[Counter[int], Counter[int]]:
    """Waits in the profile by thread, and the kernel's count of its switches while it worked."""
    kernel = Counter({t["tid"]: t["voluntary"] + t["involuntary"] for each in truths for t in each["threads"]})
    counted: Counter[int] = Counter()
    for sample in profile.samples:
        # Waits for a core after a wake-up are the second part of waits that are counted already.
        if sample.label("tid") in kernel and sample.label("state") != "runnable-woken" and not sample.label("open"):
            counted[int(str(sample.label("tid")))] += sample.values[1]
    return counted, kernel


def stap_deep() -> str:
    """Stacks of C++ that are longer than 2,048 characters; and one that is cut, which is told."""
    with Workload("cpp_frames", 1500, linger=True) as workload:
        profile, _ = _traced([workload])
    stacks = {
        name: max((s.stack for s in profile.samples if s.label("thread") == name), key=len)
        for name in ("deep", "too_deep")
    }
    names = {name: [frame.name for frame in stack if frame.kind == "native"] for name, stack in stacks.items()}
    text = ";".join(names["deep"])
    print(text, len(text), len(names["too_deep"]), worded(profile.comments))
    assert sum("descend" in name for name in names["deep"]) == DEEP, names["deep"]
    assert len(text) > CHARACTERS, len(text)
    assert len(names["too_deep"]) == MOST_FRAMES, len(names["too_deep"])
    assert any(f"more than {MOST_FRAMES} frames are cut" in comment for comment in worded(profile.comments)), worded(
        profile.comments
    )
    return f"{len(names['deep'])} frames in {len(text):,} characters; {MOST_FRAMES} of a longer stack, which is told"


def stap_killed() -> str:
    """SIGKILL for the tracer, and for SystemTap's process, which is what staprun becomes: no module is left."""
    with Workload("slow_producer", 1000, 200_000) as workload:
        workload.release()
        for name in ("trace-offcpu", "stapio"):
            with _tracer(workload.pid) as tracer:
                tracer.ready()
                victims = [tracer.pid] if name == "trace-offcpu" else _pids(name)
                assert victims, f"no process {name}"
                for pid in victims:
                    os.kill(pid, signal.SIGKILL)
                done = tracer.finish()
                print(name, done.status, done.out[-500:], done.err, _modules(), _pids("stapio"))
            _wait_for(lambda: not _modules(), f"SIGKILL for {name}: a module stays loaded")
            _wait_for(lambda: not _pids("stapio"), f"SIGKILL for {name}: stapio goes on")
    return "no module is left after SIGKILL for the tracer, or for stapio"


_WAITS = """\
import ctypes, threading
c = ctypes.CDLL(None, use_errno=True)
def wait():
    print("ended", c.epoll_wait(c.epoll_create1(0), ctypes.create_string_buffer(64), 1, -1), ctypes.get_errno())
threading.Thread(target=wait).start()
threading.Thread(target=c.pause).start()
threading.Event().wait()
"""


def stap_waits() -> str:
    """Waits of all programs go on when a trace begins and ends. Some system calls would fail with EINTR."""
    with contextlib.ExitStack() as stack:
        words = [sys.executable, "-u", "-c", _WAITS]
        programs = [stack.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE)) for _ in range(2)]
        stack.callback(lambda: [each.kill() for each in programs])
        _wait_for(lambda: all(len(_voluntary(each.pid)) == 3 for each in programs), "a program does not begin")
        time.sleep(2)
        before = [_voluntary(each.pid) for each in programs]
        with _tracer(programs[0].pid) as tracer:
            tracer.ready()
            time.sleep(1)
            tracer.interrupt().finish().check_succeeded()
        time.sleep(1)
        after = [_voluntary(each.pid) for each in programs]
    print(before, after)
    assert before == after, (before, after)
    return f"no thread of a traced program, or of another one, was woken; {_check_sleepers(load(OUTPUT))}"


def _check_sleepers(profile: Profile) -> str:
    """Threads that slept all the time have whole stacks, of the user's code and of the kernel."""
    stacks = {sample.label("tid"): sample.stack for sample in profile.samples if sample.label("open")}
    print(*stacks.values(), sep="\n")
    assert len(stacks) == 3, stacks
    assert all(reaches_start(stack) for stack in stacks.values()), stacks
    assert all(any(frame.kind == "kernel" for frame in stack) for stack in stacks.values()), stacks
    names = {frame.name for stack in stacks.values() for frame in stack}
    assert {"epoll_wait", "pause"} <= names, names
    return f"the stacks of {len(stacks)} threads that slept all the time are whole"


def _voluntary(pid: int) -> list[int]:
    """Number of waits of each thread."""
    texts = [file.read_text() for file in sorted(Path(f"/proc/{pid}/task").glob("*/status"))]
    return [int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0]) for text in texts]


def _traced(workloads: Sequence[Workload]) -> tuple[Profile, list[dict[str, Any]]]:
    """Traces from before they begin until after they are done."""
    with _tracer(*(each.pid for each in workloads)) as tracer:
        tracer.ready()
        for each in workloads:
            each.release()
        truths = [each.truth() for each in workloads]
        tracer.interrupt().finish().check_succeeded()
    return load(OUTPUT), truths


def _tracer(*pids: int) -> Tracer:
    scope = ("-p", ",".join(map(str, pids)), "--force", "-o", OUTPUT)
    return Tracer("--engine", "stap", "--stap-module", _module(), *scope, command=OFFCPU)


def _modules() -> list[str]:
    return [line.split()[0] for line in Path("/proc/modules").read_text().splitlines() if line.startswith(NAME)]


def _wait_for(condition: Callable[[], object], otherwise: str) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, otherwise
        time.sleep(0.1)


def _pids(name: str) -> list[int]:
    return [int(pid) for pid in subprocess.run(["pidof", name], capture_output=True, text=True).stdout.split()]


def _module() -> Path:
    return ROOT / "build" / "vm" / f"stap-{os.environ['STALLSCOPE_VM']}.ko"
