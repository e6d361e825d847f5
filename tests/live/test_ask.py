"""Questions about calls: arguments, results, strings and members are those of the program."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Finished, load, run
from runner import FOLDER
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.bcc_compiler import place
from stallscope.tracers.command.asking import Compiler
from stallscope.tracers.engines.ebpf.measures.answers import LOSSES
from stallscope.tracers.engines.ebpf.measures.asked_calls import AskedCallsCollector
from stallscope.tracers.engines.ebpf.probes import KERNEL_BTF
from stallscope.tracers.expressions.asked import Asked
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.kernel.uprobes import Way
from stallscope.tracers.measures.calls import AskedCalls
from stallscope.tracers.probe_targets.targets import Target, Targets
from test_cuda import truths
from test_func import TRACE_FUNC
from tracing import Trace

pytestmark = pytest.mark.usefixtures("live", "bcc")

SOURCE = """
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
struct inner { int depth; unsigned short kind; };
struct request {
    long size;
    char name[16];
    const char *path;
    struct inner in;
    struct { int anonymous; };
    unsigned bits : 3;
    double weight;
    struct request *next;
};
static long spent;
static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}
__attribute__((noipa)) long take(const char *name, long n, struct request *request) {
    long began = now();
    if (n > 5)
        usleep(2000);
    long result = n * 2 - 10 + (request->size & 0) + (name[0] & 0);
    if (n > 5)
        spent += now() - began;
    return result;
}
__attribute__((noipa)) int nest(int n) {
    int made = n ? nest(n - 1) + 1 : 0;
    __asm__ volatile("" ::: "memory");
    return made;
}
int main(void) {
    struct request request = {0}, other = {.size = 77};
    long sum = 0;
    request.next = &other;
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "file%d", i % 10);
        request.size = i;
        request.path = name;
        memcpy(request.name, name, sizeof(name));
        request.in.depth = -i;
        request.in.kind = i;
        request.anonymous = i;
        sum += take(name, i % 10, &request);
    }
    sum += nest(6);
    printf("{\\"spent\\": %ld}\\n", spent);
    return sum == 1234567;
}
"""
N = [i % 10 for i in range(100)]


@pytest.fixture
def bcc(require: Callable[[bool, str], None]) -> None:
    try:
        place.find()
    except StallscopeError as error:
        require(False, error.cause)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, require: Callable[[bool, str], None]) -> Path:
    gcc = shutil.which("gcc") or ""
    require(bool(gcc), "there is no gcc")
    folder = tmp_path_factory.mktemp("ask")
    (folder / "asked.c").write_text(SOURCE)
    flags = "-g", "-O1", "-fno-optimize-sibling-calls"
    subprocess.run([gcc, *flags, "-o", folder / "asked", folder / "asked.c"], check=True)
    return folder / "asked"


def ask(program: Path, *options: str, function: str = "take") -> Finished:
    out = program.with_name("x.pb.gz")
    line = [f"{program}:{function}", *options, "-o", out, "--force", "--", program]
    return run(*line, command=TRACE_FUNC).check_succeeded()


def summary(done: Finished) -> dict[str, Any]:
    (begin,) = [i for i, line in enumerate(done.out.splitlines()) if line == "{"]
    found: dict[str, Any] = json.loads("\n".join(done.out.splitlines()[begin:]))
    return found


def buckets(values: list[int]) -> dict[tuple[int, int], int]:
    """Buckets as answers have them."""
    found: dict[tuple[int, int], int] = {}
    for value in values:
        bits = abs(value).bit_length()
        low, high = ((1 << bits) >> 1, (1 << bits) - 1) if value else (0, 0)
        key = (low, high) if value >= 0 else (-high, -low)
        found[key] = found.get(key, 0) + 1
    return found


def test_arguments_and_results(program: Path) -> None:
    done = ask(program, "--arg", "n:i32=arg2", "--hist", "n", "--hist", "retval", "--sum", "retval - n")
    results = [n * 2 - 10 for n in N]
    found = {(each.ask, each.text): each for each in load(program.with_name("x.pb.gz")).answers}
    for text, values in (("n", N), ("retval", results)):
        answer = found["hist", text]
        assert (answer.count, answer.sum) == (100, sum(values))
        assert {(low, high): count for low, high, count in answer.buckets} == buckets(values)
    assert found["sum", "retval - n"].sum == sum(results) - sum(N)
    assert "Nothing lost" in done.out
    assert "retval of take asked: mean -1.0" in done.out


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("retval > 0 && arg2 != 7", [n for n in N if n in (6, 8, 9)]),
        ('str(arg1) == "file6"', [6] * 10),
        ('str(arg1) == "file"', []),
        ("*i64*(arg3) < 3", [0, 1, 2]),
        ('comm == "asked" && arg2 < 2', [n for n in N if n < 2]),
        ("*u8*(arg2)", []),
    ],
)
def test_only_calls_that_are_asked_for(program: Path, where: str, wanted: list[int]) -> None:
    found = summary(ask(program, "--where", where, "--sum", "arg2", "--json"))
    assert sum(call["count"] for call in found["calls"]) == len(wanted)
    assert [(each["count"], each["sum"]) for each in found.get("answers", [])] == [(len(wanted), sum(wanted))][
        : len(wanted)
    ]
    lost = {kind: found["lost"][kind] for kind in LOSSES.values() if found["lost"][kind]}
    assert "tables were full" not in " ".join(found["comments"])
    assert lost == ({"calls and events whose --where could not be answered": 100} if where.startswith("*u8*") else {})


@pytest.mark.parametrize("where", ["arg2 > 5", "retval > 0"])
def test_the_latency_of_calls_that_are_asked_for(program: Path, where: str) -> None:
    """Latencies are within 3 % or 5 µs a call of what the program measures inside of them, its own clock calls
    included."""
    done = ask(program, "--where", where)
    (spent,) = [json.loads(line)["spent"] for line in done.out.splitlines() if line.startswith('{"spent')]
    (call,) = load(program.with_name("x.pb.gz")).calls
    assert call.count == 40
    assert spent <= call.total <= spent + max(0.03 * spent, 40 * 5_000) + call.runnable


def test_questions_about_slow_calls(program: Path) -> None:
    """The table and the questions are about the same calls, which have the same times."""
    options = "--arg", "n:i32=arg2", "--sum", "n", "--hist", "duration", "--print", '"slow %d for %d", n, duration'
    done = ask(program, *options, "--over", "1ms")
    profile = load(program.with_name("x.pb.gz"))
    (call,) = profile.calls
    assert 40 <= call.count < 100
    lines = [line.split()[1::2] for line in done.out.splitlines() if line.startswith("slow ")]
    answers = {each.text: each for each in profile.answers}
    assert [answers[text].count for text in ("n", "duration")] == [call.count] * 2 == [len(lines)] * 2
    assert answers["n"].sum == sum(int(n) for n, _ in lines)
    assert answers["duration"].sum == call.total == sum(int(duration) for _, duration in lines)
    assert min(int(duration) for _, duration in lines) > 1_000_000
    assert Counter(n for n, _ in lines) >= Counter(str(n) for n in N if n > 5)


def test_only_calls_of_a_length(program: Path) -> None:
    ask(program, "--where", "duration > 1000000 && arg2 != 9", "--sum", "duration", "--sum", "arg2")
    profile = load(program.with_name("x.pb.gz"))
    (call,) = profile.calls
    duration, n = profile.answers
    assert 30 <= call.count < 90
    assert (duration.count, duration.sum) == (call.count, call.total)
    assert n.sum >= 10 * (6 + 7 + 8)


def test_waits_in_calls_that_do_not_count(program: Path) -> None:
    """Calls that sleep have results above 0."""
    waits = {}
    for where in ("retval > 0", "retval < 0"):
        ask(program, "--where", where)
        found = load(program.with_name("x.pb.gz"))
        sleeps = [each for each in found.samples if any("nanosleep" in frame.name for frame in each.stack)]
        waits[where] = sum(each.values[0] for each in sleeps)
    assert waits["retval > 0"] > 40 * 2_000_000
    assert waits["retval < 0"] == 0


def test_lines_per_call(program: Path) -> None:
    options = ["--print", '"%s has %d, %x"' + ", str(arg1), arg2, retval", "--print", "arg2, str(arg1), comm"]
    done = ask(program, *options, "--where", "arg2 == 3")
    lines = done.out.splitlines()
    assert lines.count("file3 has 3, fffffffffffffffc") == 10
    assert sum(line.endswith('take: arg2=3 str(arg1)="file3" comm="asked"') for line in lines) == 10


def test_recursion(program: Path) -> None:
    """Each call has its own arguments when it returns."""
    found = summary(
        ask(program, "--sum", "u32(retval) - u32(arg1)", "--hist", "u32(retval)", "--json", function="nest")
    )
    answers = {each["ask"]: each for each in found["answers"]}
    assert (answers["sum"]["count"], answers["sum"]["sum"]) == (7, 0)
    assert answers["hist"]["sum"] == sum(range(7))


def test_too_many_lines(program: Path, tmp_path: Path) -> None:
    (tmp_path / "many.c").write_text(
        '__attribute__((noinline)) void f(int n) { __asm__ volatile("" :: "r"(n)); }\n'
        "int main(void) { for (int i = 0; i < 50000; i++) f(i); return 0; }\n"
    )
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "many", tmp_path / "many.c"], check=True)
    done = run(
        f"{tmp_path}/many:f", "--print", "arg1", "-o", tmp_path / "x.svg", "--", tmp_path / "many", command=TRACE_FUNC
    )
    printed = sum(" f: arg1=" in line for line in done.check_succeeded().out.splitlines())
    assert 1000 <= printed < 50_000
    assert f"--print: {50_000 - printed:,} lines beyond 1,000 a second left out" in done.out


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("request->in.depth < -95", [96, 97, 98, 99]),
        ('request->path == "file3" && request->anonymous > 50', [53, 63, 73, 83, 93]),
        ('request->name == "file3" && n * 30 == request->in.kind - 3', [93]),
        ("request->next->size == 77 && retval == 8", list(range(9, 100, 10))),
    ],
)
def test_arguments_by_name(program: Path, where: str, wanted: list[int]) -> None:
    found = summary(ask(program, "--where", where, "--sum", "request->size", "--json"))
    (answer,) = found["answers"]
    assert (answer["count"], answer["sum"]) == (len(wanted), sum(wanted))


def test_functions_without_the_argument_are_left_out(program: Path) -> None:
    """`nest` has no request."""
    done = ask(program, "--where", "request->size == 1", function="/^(take|nest)$/")
    assert [(call.name, call.count) for call in load(program.with_name("x.pb.gz")).calls] == [("take", 1)]
    assert "asked: left out nest, without what is asked for: 'request' is not known" in done.out


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[-1]], ids=lambda shape: shape.name)
def test_each_way_of_the_kernel(trace: Trace, way: Way, shape: Shape) -> None:
    """The answers are the same, whether one program runs at entry and return, or two, and however the scope is
    judged."""
    asked = Asked.parse(where=["retval == retval && arg1 != 0"], sums=["tid"], prints=["comm"])
    lines: list[str] = []
    targets = Targets.of([Target.parse(f"{FOLDER}/sleeps:sleep_*ms")])
    calls = AskedCallsCollector(
        AskedCalls(
            targets,
            asked=asked,
            compiler=Compiler(),
            show=lambda name, line: lines.append(f"{name} {line.text}"),
        ),
        way=way,
    )
    options: dict[str, Any] = {"btf": KERNEL_BTF} if shape.raw else {}
    traced = trace("sleeps", 3, measures=(calls,), shape=shape, **options)
    wanted = {name: truth["calls"] for (name, _), truth in truths(traced).items()}
    assert {call.name: call.count for call in traced.profile.calls} == wanted
    assert {answer.name: answer.count for answer in traced.profile.answers} == wanted
    assert Counter(lines) == {f'{name} comm="sleeps"': count for name, count in wanted.items()}
    assert not any(traced.profile.lost[kind] for kind in (*LOSSES.values(), "calls"))


def test_the_list_has_arguments(program: Path) -> None:
    done = run(f"{program}:take", "--list", command=TRACE_FUNC).check_succeeded()
    assert "take (name: str, n: i64, request: struct request*)" in " ".join(done.out.split())
