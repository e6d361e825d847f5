"""trace-func, and its targets, against programs whose calls are known."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Tracer, folded, load, run
from runner import FOLDER
from stallscope.converters.phrases.remarks import worded
from stallscope.tracers.engines.ebpf.measures.calls import CallsCollector
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.probe_targets.targets import Target, Targets
from test_cuda import CLOCK, CLOSE, truths
from tracing import Trace

pytestmark = pytest.mark.usefixtures("live")

TRACE_FUNC = str(Path(sys.executable).with_name("trace-func"))
SHOP = """
#include <unistd.h>
namespace shop {
struct Order { long size; };
__attribute__((noinline)) long price(const Order &order) { usleep(100); return order.size + 1; }
__attribute__((noinline)) long price(long size) { usleep(200); return size + 2; }
__attribute__((noinline)) long sell(long size) { return price(Order{size}) + price(size) + price(size); }
}
extern "C" __attribute__((noinline)) long sell_all(long size) { return shop::sell(size) + 1; }
"""
MAIN = """
#include <stdio.h>
long sell_all(long size);
int main(int argc, char **argv) {
    long sum = 0;
    if (argc > 1) { puts("ready"); fflush(stdout); getchar(); }
    for (int i = 0; i < 50; i++) sum += sell_all(i);
    return sum == 0;
}
"""
ORDER = "shop::price(shop::Order const&)"
COUNTS = {ORDER: 50, "shop::price(long)": 100, "shop::sell(long)": 50}
MANY = 1000


@pytest.fixture
def shop(require: Callable[[bool, str], None], tmp_path: Path) -> Path:
    """A program whose functions of C++ have no frame pointers. Its folder has the library, too."""
    compilers = shutil.which("g++"), shutil.which("gcc")
    require(all(compilers), "there is no g++")
    (tmp_path / "shop.cc").write_text(SHOP)
    (tmp_path / "main.c").write_text(MAIN)
    flags = "-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"
    library, program = tmp_path / "libshop.so.1", tmp_path / "shop"
    subprocess.run([str(compilers[0]), *flags, "-shared", "-fPIC", "-o", library, tmp_path / "shop.cc"], check=True)
    subprocess.run([str(compilers[1]), *flags, "-o", program, tmp_path / "main.c", library], check=True)
    return program


def test_counts_and_latencies(trace: Trace) -> None:
    """The workload measures each sleep inside of the function: a call takes as long, and a little more."""
    wanted = Targets.of([Target.parse(f"{FOLDER}/sleeps:sleep_*ms")])
    traced = trace("sleeps", 10, measures=(Calls(wanted),))
    found = {call.name: call for call in traced.profile.calls}
    assert found.keys() == {"sleep_1ms", "sleep_10ms", "sleep_25ms"}
    for (name, _), truth in truths(traced).items():
        call, calls, ns = found[name], truth["calls"], truth["ns"]
        assert call.count == calls
        slack = max(CLOSE * ns, CLOCK * calls) + call.runnable + traced.stolen
        assert ns <= call.total <= ns + slack, name
        assert call.blocked > ns / 2
        assert call.min <= call.mean <= call.max
    assert not any(traced.profile.lost[kind] for kind in CallsCollector(Calls()).losses())


def test_functions_of_cpp_by_a_pattern(shop: Path) -> None:
    outs = shop.with_name("x.pb.gz"), shop.with_name("x.folded")
    options = [f"{shop.parent}/libshop.so.1:shop::*", "--cpp", "--json", "-o", outs[0], "-o", outs[1]]
    done = run(*options, "--", shop, command=TRACE_FUNC).check_succeeded()
    assert {call.name: call.count for call in load(outs[0]).calls} == COUNTS
    by_name = {call["name"]: call for call in json.loads(done.out)["calls"]}
    assert {name: call["count"] for name, call in by_name.items()} == COUNTS
    sell, prices = by_name["shop::sell(long)"], [by_name[ORDER], by_name["shop::price(long)"]]
    assert sell["total_ns"] > sum(call["total_ns"] for call in prices) > 50 * 500_000
    path = f"main;sell_all;shop::sell(long);{ORDER}"
    assert any(path in stack for stack in folded(outs[1].read_text()))


def test_without_the_option_for_cpp(shop: Path, tmp_path: Path) -> None:
    """Refused before the trace, by a path and by the name of a file that the command needs."""
    for target in (f"{tmp_path}/libshop.so.1:shop::*", "libshop.so.1:shop::*"):
        cause, remedy = run(target, "--", shop, command=TRACE_FUNC, cwd="/").check_failed(2, "trace-func")
        assert "could end the program" in cause
        assert "--cpp" in remedy


def test_a_running_process_by_the_library_name(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.pb.gz"
    with subprocess.Popen([shop, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin
        assert program.stdout
        program.stdout.readline()
        listed = run("libshop.so.1:/sell/", "--list", "-p", program.pid, command=TRACE_FUNC).check_succeeded().out
        options = ["libshop.so.1:/sell/", "shop:main", "-p", program.pid, "-o", out]
        with Tracer(*options, command=TRACE_FUNC, cwd=Path("/")) as tracer:
            tracer.ready()
            program.stdin.write(b"\n")
            program.stdin.flush()
            program.wait()
            done = tracer.finish().check_succeeded()
    assert {call.name: call.count for call in load(out).calls} == {"sell_all": 50}
    assert "left out 1 function that a probe on the return could end the program of: shop::sell(long)" in done.out
    first, *functions, last = listed.splitlines()
    assert first == str(shop.with_name("libshop.so.1"))
    assert re.fullmatch(r"  0x[0-9a-f]{12}  sell_all  probe: yes, about \d+ µs a call", functions[1])
    assert "shop::sell(long)  probe: no: an exception could leave it (--cpp)" in functions[0]
    assert last.startswith("2 functions of 1 file: 1 can have a probe")


def test_a_thousand_functions_by_one_pattern(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    """Each is called as often as the last digit of its number says."""
    gcc = shutil.which("gcc")
    require(gcc is not None, "there is no gcc")
    names = [f"work_{i:03}" for i in range(MANY)]
    calls = "".join(f"for (int i = 0; i < {int(name[-1])}; i++) {name}(i);\n" for name in names)
    text = "".join(f"int {name}(int x) {{ return x + 1; }}\n" for name in names)
    (tmp_path / "many.c").write_text(f"{text}int main(void) {{\n{calls}return 0; }}\n")
    subprocess.run([str(gcc), "-O0", "-o", tmp_path / "many", tmp_path / "many.c"], check=True)
    out = tmp_path / "x.pb.gz"
    done = run(f"{tmp_path}/many:work_*", "-o", out, "--", tmp_path / "many", command=TRACE_FUNC).check_succeeded()
    assert {call.name: call.count for call in load(out).calls} == {
        name: int(name[-1]) for name in names if name[-1] != "0"
    }
    assert "probes were on 1,000 functions of 1 file" in done.out
    assert "left out" not in done.out


RECURSION = """
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}
__attribute__((noinline)) long fall(int n) {
    long begin = now();
    usleep(20000);
    if (n) fall(n - 1);
    printf("%ld %d %ld\\n", (long)syscall(SYS_gettid), n, now() - begin);
    return n;
}
static void *work(void *rounds) { for (int i = 0; i < (long)rounds; i++) fall(5); return NULL; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, (void *)2);
    work((void *)1);
    pthread_join(thread, NULL);
    return 0;
}
"""


def test_only_slow_calls_count(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    """A function that calls itself is judged by thread. What is fast inside of a slow call is a part of it."""
    gcc, out, over = shutil.which("gcc"), tmp_path / "x.pb.gz", 70_000_000
    require(gcc is not None, "there is no gcc")
    (tmp_path / "fall.c").write_text(RECURSION)
    program = tmp_path / "fall"
    flags = "-O1", "-g", "-fno-optimize-sibling-calls", "-pthread"
    subprocess.run([str(gcc), *flags, "-o", program, tmp_path / "fall.c"], check=True)
    done = run(f"{program}:fall", "--over", "70ms", "-o", out, "--", program, command=TRACE_FUNC).check_succeeded()
    lines = [list(map(int, line.split())) for line in done.out.splitlines() if re.fullmatch(r"\d+ \d \d+", line)]
    assert len(lines) == 18
    profile, slack = load(out), 2_000_000
    (call,) = profile.calls
    assert len(call.threads) == 2
    for thread in call.threads:
        mine = [ns for tid, _, ns in lines if tid == thread.tid]
        sure, perhaps = sum(ns > over + slack for ns in mine), sum(ns > over - slack for ns in mine)
        assert sure <= thread.count <= perhaps
        longest = [ns for tid, n, ns in lines if tid == thread.tid and n == 5]
        assert sum(longest) <= thread.own <= sum(longest) + len(longest) * slack + thread.runnable
    assert sum(sample.values[0] for sample in profile.samples) == sum(thread.own for thread in call.threads)
    column = next(i for i, each in enumerate(profile.value_types) if each.unit == "count")
    assert sum(sample.values[column] for sample in profile.samples) == call.count
    waited = sum(sample.values[0] for sample in profile.samples if sample.label("state") != "running")
    assert waited >= 0.9 * call.own
    assert any(sample.label("state") == "interruptible" for sample in profile.samples)
    (said,) = [
        comment for comment in worded(profile.comments) if comment.startswith("only calls of more than 70.0 ms count")
    ]
    assert f"{18 - call.count} other calls took" in said
    assert re.search(r"\d+ of \d+ from .*fall", done.out), "where the slow calls come from"


def test_calls_that_go_on_are_slow_or_not(tmp_path: Path) -> None:
    """The trace ends while main is slow, and what it does right then is not."""
    out = tmp_path / "x.pb.gz"
    program = FOLDER / "sleeps"
    options = [f"{program}:main", f"{program}:sleep_*", "--over", "400ms", "-d", 1, "-o", out]
    run(*options, "--", program, 1000, command=TRACE_FUNC).check_succeeded()
    profile = load(out)
    by_name = {call.name: call for call in profile.calls if call.open_count or call.count}
    assert by_name.keys() == {"main"}
    main = by_name["main"]
    assert (main.count, main.open_count) == (0, 1)
    times = sum(sample.values[0] for sample in profile.samples)
    assert abs(times - main.open_time) <= 1_000_000, (times, main)
