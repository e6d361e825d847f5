"""Engines other than libbpf, against it and against workloads whose truth is known."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import NOBODY, PATIENCE, Finished, Tracer, load, open_folder_of, run, together
from runner import FOLDER, Workload
from stallscope.converters.model import Profile
from stallscope.converters.phrases.remarks import worded
from tracing import RUNNABLE

TRACE_WALL, TRACE_OFFCPU, TRACE_ONCPU = (
    str(Path(sys.executable).with_name(f"trace-{stem}")) for stem in ("wall", "offcpu", "oncpu")
)
SECONDS = 4
POINTS = 0.05
SLEEPS = ("sleep_1ms", "sleep_10ms", "sleep_25ms")
LARGE_FRAMES = """
#include <string.h>
#include <time.h>
#define NAMED __attribute__((noinline))
NAMED void pause_(void) { struct timespec t = { 0, 5000000 }; nanosleep(&t, 0); __asm__ volatile(""); }
NAMED void large(int n) { volatile char b[4096]; memset((void *)b, n, sizeof(b)); n ? large(n - 1) : pause_(); b[0]++; }
int main(void) { for (int i = 0; i < 20; i++) large(7); }
"""
SPINS = {"spin_one": 0.1, "spin_three": 0.3, "deep_spin": 0.2, "library_spin": 0.2, "system_spin": 0.2}
CORES = len(os.sched_getaffinity(0))
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


@pytest.fixture
def perf(require: Callable[[bool, str], None]) -> None:
    """Skips where there is no perf; with REQUIRE_LIVE=1 fails there."""
    require(os.geteuid() == 0, "this needs root")
    require(shutil.which("perf") is not None, "there is no perf")


@pytest.fixture
def paranoid(perf: None) -> Iterator[Callable[[int], None]]:
    """``paranoid(level)`` sets kernel.perf_event_paranoid until the test ends."""
    before = _PARANOID.read_text()

    def change(level: int) -> None:
        _PARANOID.write_text(f"{level}\n")

    yield change
    _PARANOID.write_text(before)


@pytest.fixture
def eu_stack(require: Callable[[bool, str], None]) -> None:
    """Skips where there is no eu-stack; with REQUIRE_LIVE=1 fails there."""
    require(os.geteuid() == 0, "this needs root")
    require(shutil.which("eu-stack") is not None, "there is no eu-stack")


@pytest.fixture
def folder() -> Iterator[Path]:
    """One in which everybody may write."""
    with open_folder_of() as made:
        yield made


def shares(profile: Profile, functions: tuple[str, ...], *, running: bool) -> dict[str, float]:
    """Share of the time on cores, or of waits and what follows them, that is in each of these functions."""
    found: Counter[str] = Counter()
    for sample in profile.samples:
        state = str(sample.label("state"))
        if (state == "running") is not running or state == "runnable-preempted":
            continue
        names = {frame.name for frame in sample.stack}
        found.update({name: sample.values[0] for name in functions if name in names})
    return {name: found[name] / found.total() for name in functions}


def as_nobody(command: str, *arguments: object, cwd: Path) -> Finished:
    """The command as an ordinary user."""
    prefix = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    return run(*arguments, command=command, prefix=prefix, cwd=cwd, HOME=str(cwd))


def workload(name: str, *arguments: object, user: int = 0) -> Workload:
    prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
    return Workload(name, *arguments, prefix=prefix)


def lingering(name: str, *arguments: object) -> Workload:
    return Workload(name, *arguments, linger=True)


def close(one: dict[str, float], other: dict[str, float]) -> bool:
    return all(abs(one[name] - other[name]) <= POINTS for name in other)


@pytest.mark.usefixtures("live", "perf")
@pytest.mark.parametrize("call_graph", ["dwarf", "fp"])
def test_perf_agrees_with_libbpf(tmp_path: Path, call_graph: str) -> None:
    """Both trace at the same time: what else the machine does is the same for both."""
    engines: dict[str, tuple[object, ...]] = {"libbpf": (), "perf": ("--call-graph", call_graph)}
    with contextlib.ExitStack() as stack:
        workloads = [
            stack.enter_context(lingering("sleeps", 80)),
            stack.enter_context(lingering("shares", SECONDS * 1000)),
        ]
        pids = ",".join(str(each.pid) for each in workloads)
        with together(engines, tmp_path, "-p", pids, "-F", 997) as found:
            for each in workloads:
                each.release()
            for each in workloads:
                each.truth()
    for profile in found.values():
        for times in profile.threads:
            assert times.on_cpu + times.runnable + sum(times.blocked.values()) == pytest.approx(times.wall, rel=0.01)
    assert found["perf"].lost["events"] == 0
    if call_graph == "fp":
        # The workloads have no frame pointers: of functions that compute, the callers are not seen.
        waits = [s.values[0] for s in found["perf"].samples if s.label("state") == "interruptible"]
        assert sum(waits) > 0.9 * SECONDS * 1e9
        return
    one, other = (shares(found[engine], SLEEPS, running=False) for engine in ("perf", "libbpf"))
    assert close(one, other), (one, other)
    one, other = (shares(found[engine], tuple(SPINS), running=True) for engine in ("perf", "libbpf"))
    assert close(one, other), (one, other)
    assert close(one, SPINS), one


@pytest.mark.usefixtures("live", "perf")
def test_perf_tells_waiting_for_a_core_from_waiting(tmp_path: Path) -> None:
    """Most of a wait by its switches, in a crowd, is the time from the wake-up to a core."""
    engines: dict[str, tuple[object, ...]] = {"libbpf": (), "perf": ()}
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(lingering("work_and_rest", 200, 2000, 1000)) for _ in range(3 * CORES)]
        with together(engines, tmp_path, "-p", ",".join(str(each.pid) for each in crowd)) as found:
            for each in crowd:
                each.release()
            for each in crowd:
                each.truth()
    truth = {times.tid: times for times in found["libbpf"].threads if times.pid != times.tid}
    mine = {times.tid: times for times in found["perf"].threads if times.tid in truth}
    assert len(mine) == len(truth) == 2 * len(crowd)
    for tid, times in mine.items():
        assert times.on_cpu + times.runnable + sum(times.blocked.values()) == times.wall
        rows = [s.values[0] for s in found["perf"].samples if s.label("tid") == tid and s.label("state") in RUNNABLE]
        assert sum(rows) == times.runnable
    # The two traces do not begin together, but both before the crowd does.
    one, other = (sum(times.runnable for times in each.values()) for each in (mine, truth))
    assert other > 0.5 * sum(times.wall for times in truth.values()), "it is a crowd"
    assert abs(one - other) <= POINTS * other, (one, other)
    rests = [s for s in found["perf"].samples if "rest" in {frame.name for frame in s.stack}]
    woken = sum(s.values[0] for s in rests if s.label("state") == "runnable-woken")
    assert woken > 0.5 * sum(s.values[0] for s in rests)


def test_perf_shows_waits_of_a_command_from_its_beginning(perf: None, tmp_path: Path) -> None:
    path = tmp_path / "x.pb.gz"
    run("--engine", "perf", "-o", path, "--", FOLDER / "sleeps", 4, command=TRACE_OFFCPU).check_succeeded()
    profile = load(path)
    slept = [s for s in profile.samples if s.label("state") == "interruptible"]
    waits = {name: sum(s.values[1] for s in slept if name in {f.name for f in s.stack}) for name in SLEEPS}
    assert waits == {"sleep_1ms": 16, "sleep_10ms": 8, "sleep_25ms": 4}, (profile.lost, profile.samples)
    assert {s.label("process") for s in slept} == {"sleeps"}
    assert all(times.exited for times in profile.threads)


def test_perf_has_whole_stacks_of_programs_that_are_executed(perf: None, tmp_path: Path) -> None:
    """perf by itself ends them in libc in some four of ten runs: it takes libc to be where it was before the exec."""
    path = tmp_path / "x.pb.gz"
    for _ in range(8):
        options = ("--engine", "perf", "-F", 97, "--force", "-o", path)
        run(*options, "--", FOLDER / "shares", 200, command=TRACE_WALL).check_succeeded()
        samples = [(s.values[0], {f.name for f in s.stack}) for s in load(path).samples]
        inside = [(time, names) for time, names in samples if not names.isdisjoint(SPINS)]
        whole = sum(time for time, names in inside if "_start" in names)
        assert whole > 0.9 * sum(time for time, _ in inside) > 0, samples


def test_perf_tells_that_stacks_are_cut(perf: None, tmp_path: Path) -> None:
    """Eight frames of 4 KB each are more than perf copies by itself."""
    source, program = tmp_path / "frames.c", tmp_path / "frames"
    source.write_text(LARGE_FRAMES)
    subprocess.run(["gcc", "-O1", "-fomit-frame-pointer", "-o", program, source], check=True)
    found = {}
    for mode in ("dwarf", "dwarf,65528"):
        path = tmp_path / f"{mode}.pb.gz"
        options = ("--engine", "perf", "--call-graph", mode, "-o", path)
        run(*options, "--", program, command=TRACE_OFFCPU).check_succeeded()
        profile = load(path)
        waits = [s for s in profile.samples if "pause_" in {f.name for f in s.stack}]
        assert waits
        whole = sum(s.values[0] for s in waits if s.stack[0].name == "_start")
        found[mode] = whole / sum(s.values[0] for s in waits), " ".join(worded(profile.comments))
    assert found["dwarf"][0] == 0
    assert "in complete stacks; of others, callers are missing: --call-graph dwarf,65528" in found["dwarf"][1]
    assert found["dwarf,65528"][0] == 1
    assert "callers are missing" not in found["dwarf,65528"][1]


def test_perf_for_an_ordinary_user(paranoid: Callable[[int], None], folder: Path) -> None:
    """Level 2 shows what runs, without the kernel; level 1 waits, too; of another user's processes nothing is shown."""
    with workload("shares", 60000, user=NOBODY) as own, workload("shares", 60000) as others:
        for each in (own, others):
            each.release()
        path = folder / "x.pb.gz"
        options = ("-d", 1, "-F", 499, "--force", "-o", path)
        paranoid(2)
        done = as_nobody(TRACE_ONCPU, "-p", own.pid, *options, cwd=folder)
        done.check_succeeded()
        assert "taken with perf, because other engines cannot be used (libbpf: tracing needs root" in done.out
        found = shares(load(path), tuple(SPINS), running=True)
        assert found["system_spin"] < 0.1, "the kernel's part is hidden"
        assert found["spin_three"] > found["spin_one"] > 0
        done = as_nobody(TRACE_WALL, "--engine", "perf", "-p", own.pid, *options, cwd=folder)
        cause, remedy = done.check_failed(program="trace-wall")
        assert "kernel.perf_event_paranoid is 2" in cause
        assert "--engine eu-stack" in remedy
        done = as_nobody(TRACE_ONCPU, "--engine", "perf", "-p", others.pid, *options, cwd=folder)
        cause, remedy = done.check_failed(program="trace-oncpu")
        assert "perf record failed" in cause
        assert "your own processes" in remedy
        paranoid(1)
        with workload("sleeps", 1000, user=NOBODY) as sleeps:
            sleeps.release()
            as_nobody(TRACE_WALL, "--engine", "perf", "-p", sleeps.pid, *options, cwd=folder).check_succeeded()
        assert shares(load(path), SLEEPS, running=False)["sleep_25ms"] > 0.25


def test_perf_leaves_nothing_running_after_ctrl_c(perf: None, tmp_path: Path) -> None:
    path = tmp_path / "x.folded"
    with workload("sleeps", 1000) as sleeps:
        sleeps.release()
        with Tracer("--engine", "perf", "-p", sleeps.pid, "-o", path, command=TRACE_WALL) as tracer:
            tracer.ready().interrupt().finish().check_succeeded()
    assert "sleep_25ms" in path.read_text()


@pytest.mark.usefixtures("live", "eu_stack")
def test_eu_stack_agrees_with_libbpf(tmp_path: Path) -> None:
    """Both trace at the same time. Of few samples, as on a busy machine, less is expected. The waits are long: while
    eu-stack waits for a core, it may hold a thread stopped for longer than a short wait."""
    engines: dict[str, tuple[object, ...]] = {"libbpf": (), "eu-stack": ()}
    with contextlib.ExitStack() as stack:
        sleeps = stack.enter_context(lingering("sleeps", 40, 10))
        workloads = [sleeps, stack.enter_context(lingering("shares", 20_000))]
        pids = ",".join(str(each.pid) for each in workloads)
        with together(engines, tmp_path, "-p", pids, "-F", 97) as found:
            for each in workloads:
                each.release()
            for each in workloads:
                each.truth()
    sampled = found["eu-stack"]
    for times in sampled.threads:
        assert times.on_cpu + times.runnable + sum(times.blocked.values()) == times.wall
    for functions, running in ((SLEEPS, False), (tuple(SPINS), True)):
        one, other = (shares(found[name], functions, running=running) for name in ("eu-stack", "libbpf"))
        number = sum(s.values[4] for s in sampled.samples if {f.name for f in s.stack} & set(functions))
        assert number > 20
        for name, share in other.items():
            # Samples differ in weight, as their distances do: they are worth fewer equal ones.
            bound = max(POINTS, 3 * (share * (1 - share) / (number / 2)) ** 0.5)
            assert abs(one[name] - share) <= bound, (one, other, number)
    assert any("a thread was stopped for" in comment for comment in worded(sampled.comments))


def test_eu_stack_tells_computing_from_sleeping(eu_stack: None, tmp_path: Path) -> None:
    """Each moment is counted where the thread was, though eu-stack stops it a little later than it looks."""
    path = tmp_path / "x.pb.gz"
    options = ("--engine", "eu-stack", "-F", 20, "-o", path)
    with (
        lingering("work_and_rest", 250, 3000, 17_000) as both,
        Tracer("-p", both.pid, *options, command=TRACE_WALL) as tracer,
    ):
        tracer.ready()
        both.release()
        truth = both.truth()
        done = tracer.interrupt().finish().check_succeeded()
    profile = load(path)
    for times in profile.threads:
        assert times.on_cpu + times.runnable + sum(times.blocked.values()) == times.wall
    found: Counter[tuple[str, str]] = Counter()
    number = 0
    for sample in profile.samples:
        names = {frame.name for frame in sample.stack}
        if sample.label("tid") != both.pid:
            where = next((name for name in ("work", "rest") if name in names), sample.stack[-1].name)
            found[str(sample.label("state")), where] += sample.values[0]
            number += sample.values[4]
    wall, cpu = (sum(thread[key] for thread in truth["threads"]) for key in ("wall_ns", "cpu_ns"))
    assert number > 20
    bound = max(POINTS, 1.5 / number**0.5)
    on_cores = sum(time for (state, _), time in found.items() if state == "running")
    assert on_cores == pytest.approx(cpu, rel=0.1)
    assert found["running", "work"] > (1 - bound) * on_cores, found
    assert found["interruptible", "work"] == 0, found
    # Before a sample the sleep takes as long as it should, and after it what the thread then waits for a core.
    asleep = found["interruptible", "rest"] + found["traced", "[stopped by eu-stack]"]
    assert 2 * 250 * 17_000_000 / wall - bound <= asleep / wall <= sum(w["ns"] for w in truth["waits"]) / wall + bound
    assert 0 < found["traced", "[stopped by eu-stack]"] < 0.5 * wall
    assert "turns → rest → nanosleep" in done.out
    assert "()" not in done.out


def test_eu_stack_accounts_for_all_of_a_command(eu_stack: None, tmp_path: Path) -> None:
    """Samples are rare on a busy machine: threads are there before their first one and after their last one."""
    path = tmp_path / "x.pb.gz"
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(workload("two_spinners", 60_000)).release()
        command = (FOLDER / "work_and_rest", 25, 20_000, 20_000)
        done = run("--engine", "eu-stack", "-o", path, "--", *command, command=TRACE_WALL).check_succeeded()
    (truth,) = (json.loads(line) for line in done.out.splitlines() if line.startswith('{"workload"'))
    profile = load(path)
    threads = [times for times in profile.threads if times.pid != times.tid]
    assert len(threads) == len(truth["threads"]) == 2
    ended = profile.lost["ends of threads"]
    assert 2 <= ended <= 3, "the main thread is seen after its end"
    # Besides what is told: the kernel says to some 10 ms when a thread began, and so long it is not in its function.
    missing, more = profile.lost["ns of ends of threads"], 2 * 30_000_000
    for key, found in (("wall_ns", "wall"), ("cpu_ns", "on_cpu")):
        true, told = sum(each[key] for each in truth["threads"]), sum(getattr(each, found) for each in threads)
        assert true - missing <= told <= 1.02 * true + more, (key, true, told, missing)
    assert f"{ended} threads ended between two looks: up to " in done.out


def test_eu_stack_for_an_ordinary_user(eu_stack: None, paranoid: Callable[[int], None], folder: Path) -> None:
    path = folder / "x.pb.gz"
    options = ("--engine", "eu-stack", "-d", 2, "--force", "-o", path)
    with workload("sleeps", 1000, user=NOBODY) as own, workload("sleeps", 1000) as others:
        for each in (own, others):
            each.release()
        done = as_nobody(TRACE_WALL, "-p", own.pid, *options, cwd=folder).check_succeeded()
        assert "sleep_25ms" in done.out
        found = shares(load(path), SLEEPS, running=False)
        assert found["sleep_25ms"] > found["sleep_1ms"]
        cause, remedy = as_nobody(TRACE_WALL, "-p", others.pid, *options, cwd=folder).check_failed(program="trace-wall")
        assert cause.endswith(f"this user may not look into process {others.pid} (sleeps)")
        assert "your own processes" in remedy
        paranoid(3)
        cause, remedy = as_nobody(TRACE_WALL, "-p", own.pid, cwd=folder).check_failed(program="trace-wall")
        assert cause.startswith("tracing needs root")
        way = "for your own processes: sysctl kernel.perf_event_paranoid=1 (for perf), or"
        assert remedy.endswith(f"; {way} --engine eu-stack")
        _, remedy = as_nobody(TRACE_OFFCPU, "-p", own.pid, cwd=folder).check_failed(program="trace-offcpu")
        assert remedy.endswith(f"; {way} trace-wall --engine eu-stack")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill", "ctrl-c"])
def test_eu_stack_leaves_no_process_stopped(eu_stack: None, number: signal.Signals, tmp_path: Path) -> None:
    """The tracer may end whenever it is; here at moments that differ by some milliseconds."""
    with workload("sleeps", 1000) as sleeps:
        sleeps.release()
        for i in range(5):
            path = tmp_path / f"{i}.folded"
            arguments = ("--engine", "eu-stack", "-F", 997, "-p", sleeps.pid, "-o", path)
            with Tracer(*arguments, command=TRACE_WALL) as tracer:
                tracer.ready()
                time.sleep(0.1 + 0.003 * i)
                tracer.interrupt(number)
                tracer.wait_until(lambda: tracer.process.poll() is not None, "its end")
            before = switches(sleeps.pid)
            until = time.monotonic() + PATIENCE
            while switches(sleeps.pid) < before + 20:
                assert time.monotonic() < until, "it sleeps no more: it is stopped"
                time.sleep(0.01)


def switches(pid: int) -> int:
    """Number of waits of a process's main thread."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("voluntary_ctxt_switches")))
