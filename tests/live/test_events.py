"""trace-func counting: USDT probes, tracepoints and entries of functions, against programs whose numbers are known."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Tracer, folded, load, program_exists, program_ids, run
from postgres import HotRow, programs
from runner import FOLDER, Workload
from stallscope.converters.model import Profile
from stallscope.tracers.kernel import tracefs
from test_func import COUNTS, TRACE_FUNC, shop

pytestmark = pytest.mark.usefixtures("live")
__all__ = ["shop"]

USDT = FOLDER / "usdt"
ROUNDS = 200
MANY = 1000
THROWS = """
#include <stdexcept>
namespace shop {
__attribute__((noinline)) void refuse(int i) { if (i % 2) throw std::runtime_error("no"); }
__attribute__((noinline)) void pass(int i) { refuse(i); asm volatile(""); }
}
int main() {
    int caught = 0;
    for (int i = 0; i < 100; i++) try { shop::pass(i); } catch (...) { caught++; }
    return caught != 50;
}
"""


def counts(profile: Profile) -> dict[str, int]:
    return {call.name: call.count for call in profile.calls}


def trace(*arguments: object, out: Path, command: tuple[object, ...]) -> Profile:
    run(*arguments, "-o", out, "--", *command, command=TRACE_FUNC).check_succeeded()
    return load(out)


def test_usdt_probes_of_a_command(tmp_path: Path) -> None:
    """The one with a semaphore is off without a probe, and each of the places counts."""
    profile = trace(f"u:{USDT}:*", out=tmp_path / "x.pb.gz", command=(USDT, ROUNDS))
    assert counts(profile) == {"shop:sale": ROUNDS, "shop:look": 3 * ROUNDS, "shop:audit": ROUNDS}
    assert not any(profile.lost[kind] for kind in ("events", "stacks of events", "stacks"))
    column = profile.index("events")
    callers = Counter[tuple[str, ...]]()
    for sample in profile.samples:
        callers[tuple(frame.name for frame in sample.stack[-3:])] += sample.values[column]
    assert callers == {
        ("main", "sell", "shop:sale"): ROUNDS,
        ("main", "browse", "shop:look"): 3 * ROUNDS,
        ("main", "audit", "shop:audit"): ROUNDS,
    }


def test_usdt_probes_by_provider_and_name(tmp_path: Path) -> None:
    assert counts(trace(f"u:{USDT}:shop:s*", out=tmp_path / "1.pb.gz", command=(USDT, ROUNDS))) == {"shop:sale": ROUNDS}
    by_name = trace("u:usdt:/^(look|sale)$/", out=tmp_path / "2.pb.gz", command=(USDT, ROUNDS))
    assert counts(by_name) == {"shop:sale": ROUNDS, "shop:look": 3 * ROUNDS}
    cause, remedy = run(f"u:{USDT}:shpo:sale", "--", USDT, command=TRACE_FUNC).check_failed(2, "trace-func")
    assert "has nothing for" in cause
    assert "shop:sale" in remedy


def test_a_semaphore_is_back_at_zero(tmp_path: Path) -> None:
    """The process may run already, or begin later; after the trace, nobody observes."""
    out = tmp_path / "x.pb.gz"
    with Workload("usdt", ROUNDS, linger=True) as first:
        with Tracer("u:usdt:audit", "-n", "^usdt$", "-d", 5, "-o", out, command=TRACE_FUNC) as tracer:
            tracer.ready()
            first.release()
            (truth,) = [wait for wait in first.truth()["waits"] if wait["function"] == "audit"]
            later = subprocess.run([USDT, "7"], capture_output=True, check=True, text=True)
            tracer.finish().check_succeeded()
        assert truth["calls"] == ROUNDS
        (seen,) = [wait for wait in json.loads(later.stdout.splitlines()[-1])["waits"] if wait["function"] == "audit"]
        by_pid = {call.pid: call.count for call in load(out).calls}
        assert by_pid[first.pid] == ROUNDS
        assert by_pid.get(seen["pid"], 0) <= seen["calls"] == 7
        first.finish()
    after = subprocess.run([USDT, "7"], capture_output=True, check=True, text=True)
    assert [w["calls"] for w in json.loads(after.stdout.splitlines()[-1])["waits"] if w["function"] == "audit"] == [0]


def test_tracepoints_of_the_scope_alone(tmp_path: Path) -> None:
    """Others execute programs meanwhile, too."""
    out = tmp_path / "x.folded"
    script = "for i in 1 2 3 4 5; do /bin/true; done"
    done = run("t:sched:sched_process_e*", "--json", "-o", out, "--", "/bin/sh", "-c", script, command=TRACE_FUNC)
    found = Counter[str]()
    for event in done.check_succeeded().summary["events"]:
        assert event["file"] == "kernel"
        found[event["name"]] += event["count"]
    assert found == {"sched:sched_process_exec": 6, "sched:sched_process_exit": 6}
    stacks = folded(out.read_text())
    assert sum(number for stack, number in stacks.items() if "sched:sched_process_exit;" in stack) == 6
    assert any("do_exit" in stack for stack in stacks)


def test_tracepoints_have_stacks_of_both_sides(tmp_path: Path) -> None:
    profile = trace("t:syscalls:sys_enter_nanosleep", out=tmp_path / "x.pb.gz", command=(FOLDER / "sleeps", 5))
    per_function = Counter[str]()
    for sample in profile.samples:
        names = [frame.name for frame in sample.stack]
        per_function.update({name: sample.values[0] for name in names if name[:6] == "sleep_"})
        assert names.index("main") < names.index("syscalls:sys_enter_nanosleep"), names
        assert sample.stack[-1].kind == "kernel", names
    assert per_function == {"sleep_1ms": 20, "sleep_10ms": 10, "sleep_25ms": 5}


def test_functions_that_exceptions_leave(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    """A probe at the entry is safe where one at the return ends the program."""
    compiler = shutil.which("g++")
    require(compiler is not None, "there is no g++")
    (tmp_path / "throws.cc").write_text(THROWS)
    program = tmp_path / "throws"
    subprocess.run([str(compiler), "-O1", "-o", program, tmp_path / "throws.cc"], check=True)
    profile = trace("--count", f"{program}:shop::*", out=tmp_path / "x.pb.gz", command=(program,))
    assert counts(profile) == {"shop::refuse(int)": 100, "shop::pass(int)": 100}
    thrown = trace("u:libstdc++.so.6:libstdcxx:throw", out=tmp_path / "y.pb.gz", command=(program,))
    assert counts(thrown) == {"libstdcxx:throw": 50}


def test_counts_of_functions_by_thread_and_stack(shop: Path) -> None:
    out, target = shop.with_name("x.pb.gz"), f"{shop.parent}/libshop.so.1:shop::*"
    with subprocess.Popen([shop, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin
        assert program.stdout
        program.stdout.readline()
        with Tracer("--count", target, "--json", "-p", program.pid, "-o", out, command=TRACE_FUNC) as tracer:
            tracer.ready()
            program.stdin.write(b"\n")
            program.stdin.flush()
            program.wait()
            done = tracer.finish().check_succeeded()
    assert {each["name"]: each["count"] for each in done.summary["events"]} == COUNTS
    for each in done.summary["events"]:
        assert sum(thread["count"] for thread in each["threads"]) == each["count"]
    profile = load(out)
    assert {sample.stack[-1].name for sample in profile.samples} == set(COUNTS)
    assert all("sell_all" in [frame.name for frame in sample.stack] for sample in profile.samples)


@pytest.mark.parametrize("options", [(), ("--count",)])
def test_intervals_are_printed(options: tuple[str, ...]) -> None:
    """Each call is in one of the tables, and no file is written."""
    script = f"for i in 1 2 3 4 5 6 7 8; do {FOLDER}/sleeps 3 >/dev/null; sleep 0.1; done"
    target = f"{FOLDER}/sleeps:sleep_1ms"
    done = run(*options, target, "--every", "1s", "--", "/bin/sh", "-c", script, command=TRACE_FUNC, cwd=Path("/proc"))
    out = done.check_succeeded().out
    assert len(re.findall(r"^\d\d:\d\d:\d\d, 1.00 s$", out, re.MULTILINE)) >= 2
    numbers = [int(line.split()[0]) for line in out.splitlines() if "sleep_1ms sleeps" in line and line[:1] == " "]
    assert len(numbers) >= 2
    assert sum(numbers) == 8 * 3 * 4
    assert out.count("Traced ") == 1, "the last one is told in full"
    assert "wrote" not in out
    done = run(*options, target, "--every", "1s", "--json", "--", "/bin/sh", "-c", script, command=TRACE_FUNC)
    found = [json.loads(line) for line in done.check_succeeded().out.splitlines()]
    assert len(found) >= 2
    key = "events" if options else "calls"
    assert sum(call["count"] for each in found for call in each.get(key, ())) == 8 * 3 * 4


def test_counted_and_timed_things_are_not_mixed() -> None:
    cause, _ = run("libc.so.6:getenv", "t:sched:*", "--", "true", command=TRACE_FUNC).check_failed(2, "trace-func")
    assert "add --count" in cause


def test_postgres_tells_its_statements(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    """Debian's build has USDT probes with semaphores. A transaction has four statements, one of them its commit."""
    home, out = programs(), tmp_path / "x.pb.gz"
    require(home is not None, "no PostgreSQL (Debian's package postgresql)")
    done = run(f"u:{home}/postgres:query__start", "--list", command=TRACE_FUNC)
    listed = done.check_succeeded().out
    assert re.search(r"postgresql:query__start  1 argument \(8@[^)]+\)  1 place, switched on by a semaphore", listed)
    with HotRow(quick=2, slow_ms=20) as row:
        targets = "u:postgres:/^query__(start|done)$/", "u:postgres:postgresql:transaction__commit"
        scope = ",".join(map(str, row.pids))
        run(*targets, "-p", scope, "-d", 3, "-o", out, command=TRACE_FUNC).check_succeeded()
    found, most = Counter[str](), 4 * len(row.pids)
    for call in load(out).calls:
        found[call.name.removeprefix("postgresql:")] += call.count
        assert call.pid in row.pids
    assert found["query__start"] > most
    assert abs(found["query__start"] - found["query__done"]) <= most, found
    assert abs(found["query__start"] - 4 * found["transaction__commit"]) <= most, found


def test_a_thousand_functions_come_and_go(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    """Probes come and go within seconds, and nothing of them is left."""
    gcc = shutil.which("gcc")
    require(gcc is not None, "there is no gcc")
    names = [f"work_{i:03}" for i in range(MANY)]
    text = "".join(f"int {name}(int x) {{ return x + 1; }}\n" for name in names)
    calls = "".join(f"{name}(1);" for name in names)
    (tmp_path / "many.c").write_text(f"{text}#include <stdio.h>\nint main(void) {{ getchar();\n{calls}return 0; }}\n")
    subprocess.run([str(gcc), "-O0", "-o", tmp_path / "many", tmp_path / "many.c"], check=True)
    out, before = tmp_path / "x.pb.gz", left_behind()
    with subprocess.Popen([tmp_path / "many"], stdin=subprocess.PIPE) as program:
        options = ["--count", f"{tmp_path}/many:work_*", "-p", program.pid, "-v", "-o", out]
        with Tracer(*options, command=TRACE_FUNC) as tracer:
            tracer.ready()
            loaded = program_ids(tracer.pid)
            assert loaded and all(map(program_exists, loaded))
            assert program.stdin
            program.stdin.write(b"\n")
            program.stdin.close()
            program.wait()
            tracer.finish().check_succeeded()
    assert counts(load(out)) == dict.fromkeys(names, 1)
    assert left_behind() == before
    assert not any(map(program_exists, loaded))


def left_behind() -> tuple[str, int]:
    """The kernel's list of probes on files, and the number of this process's descriptors."""
    events = tracefs.folder() / "uprobe_events"
    return events.read_text() if events.exists() else "", len(list(Path("/proc/self/fd").iterdir()))


def test_it_says_when_the_kernel_takes_no_probes(require: Callable[[bool, str], None]) -> None:
    require(not Path("/sys/bus/event_source/devices/kprobe").exists(), "kprobes work here: see tests/vm")
    cause, remedy = run("k:vfs_read", "--", "true", command=TRACE_FUNC).check_failed(1, "trace-func")
    assert cause == "this kernel takes no probes on its functions: it was built without CONFIG_KPROBES"
    assert "t:" in remedy
    assert "no: this kernel takes no probes" in run("k:vfs_read", "--list", command=TRACE_FUNC).check_succeeded().out
