"""Questions about USDT probes, tracepoints and entries of functions, against programs whose values are known."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Finished, load, run
from postgres import HotRow, programs
from runner import FOLDER
from stallscope.converters.model.asked_values import MOST_VALUES
from stallscope.tracers.command.asking import Compiler
from stallscope.tracers.engines.ebpf.measures.answers import LOSSES
from stallscope.tracers.engines.ebpf.measures.asked_events import AskedEventsCollector
from stallscope.tracers.engines.ebpf.measures.event_probes import chosen_in_kernel
from stallscope.tracers.engines.ebpf.probes import KERNEL_BTF
from stallscope.tracers.expressions.asked import Asked
from stallscope.tracers.kernel.shapes import SHAPES, Shape
from stallscope.tracers.kernel.uprobes import Way
from stallscope.tracers.measures.events import AskedEvents
from stallscope.tracers.probe_targets.events import Events, EventTarget
from stallscope.tracers.probe_targets.targets import Target
from test_ask import bcc, buckets, summary
from test_func import TRACE_FUNC
from tracing import Trace

pytestmark = pytest.mark.usefixtures("live", "bcc")
__all__ = ["bcc"]

USDT = FOLDER / "usdt"
ROUNDS = 120
"""Number of rounds of `SOURCE`."""
SOURCE = r"""
#define PROBE(name, arguments, ...)                                                                                    \
    __asm__ volatile("990: nop\n.pushsection .note.stapsdt, \"\", \"note\"\n.balign 4\n"                               \
                     ".4byte 992f - 991f, 994f - 993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"                   \
                     "993: .8byte 990b, _.stapsdt.base, 0\n.asciz \"test\"\n.asciz \"" name "\"\n.asciz \"" arguments  \
                     "\"\n994: .balign 4\n.popsection\n" ::__VA_ARGS__)
__asm__(".pushsection .stapsdt.base, \"a\", \"progbits\"\n_.stapsdt.base: .space 1\n.popsection\n");
static const char *names[] = {"apple", "pear", "a fig"};
static long table[16];
__attribute__((noipa)) void caller(long i) {
    register long fixed __asm__("r12") = i;
    __asm__ volatile("" : "+r"(fixed));
    PROBE("item", "8@%%r12 -4@%%esi 8@%%rdx", "r"(fixed), "S"(-i), "d"(names[i % 3]));
    table[3] = i;
    table[4] = -i & 0xffffffff;
    PROBE("item", "8@8(%%rdi,%%rcx,8) -4@16(%%rdi,%%rcx,8) 8@%%rdx", "D"(table), "c"(2), "d"(names[i % 3]), "m"(table));
    PROBE("item", "8@$1000 -1@%%sil 8@%%rdx", "S"(-i & 0x7fffff00 | (-5 & 0xff)), "d"(names[2]));
    PROBE("float", "8f@%%xmm0 4@%%edi", "D"((int)i));
    PROBE("static", "4@counter(%%rip)", "D"((int)i));
}
__attribute__((noipa)) int take(int n, const char *name) {
    __asm__ volatile("" ::: "memory");
    return n + (name[0] & 0);
}
int main(void) {
    for (int i = 0; i < 3; i++)
        (void)*(volatile const char *)names[i]; /* a page that was never touched cannot be read */
    for (long i = 0; i < 120; i++) {
        caller(i);
        take(i % 7, names[i % 3]);
    }
    return 0;
}
"""
FIRST = [*range(ROUNDS), *range(ROUNDS), *[1000] * ROUNDS]
SECOND = [*(-i for i in range(ROUNDS)), *(-i for i in range(ROUNDS)), *[-5] * ROUNDS]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, require: Callable[[bool, str], None]) -> Path:
    gcc = shutil.which("gcc") or ""
    require(bool(gcc), "there is no gcc")
    folder = tmp_path_factory.mktemp("items")
    (folder / "items.c").write_text(SOURCE)
    subprocess.run([gcc, "-g", "-O1", "-o", folder / "items", folder / "items.c"], check=True)
    return folder / "items"


def ask(program: Path, *arguments: str) -> Finished:
    out = program.with_name("x.pb.gz")
    return run(*arguments, "-o", out, "--force", "--", program, command=TRACE_FUNC).check_succeeded()


def nothing_lost(found: dict[str, Any]) -> bool:
    return not any(found["lost"][kind] for kind in (*LOSSES.values(), "events"))


def test_arguments_of_a_probe_in_several_places(program: Path) -> None:
    """Each place has the arguments elsewhere: in registers, memory and a constant."""
    done = ask(program, f"u:{program}:item", "--hist", "arg1", "--sum", "arg2", "--count-by", "str(arg3)", "--json")
    found = summary(done)
    assert [(each["name"], each["count"]) for each in found["events"]] == [("test:item", 3 * ROUNDS)]
    answers = {each["ask"]: each for each in found["answers"]}
    assert (answers["hist"]["count"], answers["hist"]["sum"]) == (3 * ROUNDS, sum(FIRST))
    assert {(each["from"], each["to"]): each["count"] for each in answers["hist"]["buckets"]} == buckets(FIRST)
    assert (answers["sum"]["count"], answers["sum"]["sum"]) == (3 * ROUNDS, sum(SECOND))
    values = {each["value"]: each["count"] for each in answers["count-by"]["values"]}
    assert values == {"apple": 80, "pear": 80, "a fig": 80 + ROUNDS}
    assert nothing_lost(found)


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("arg1 > 100 && arg2 < -110", [n for n, m in zip(FIRST, SECOND, strict=True) if n > 100 and m < -110]),
        ('str(arg3) == "pear"', [i for i in range(ROUNDS) if i % 3 == 1] * 2),
        ("arg1 == 1000", [1000] * ROUNDS),
        ("arg2 == -5", [5, 5] + [1000] * ROUNDS),
        ("*u8*(arg1)", []),
    ],
)
def test_only_hits_that_are_asked_for(program: Path, where: str, wanted: list[int]) -> None:
    found = summary(ask(program, f"u:{program}:item", "--where", where, "--sum", "arg1", "--json"))
    assert sum(each["count"] for each in found.get("events", ())) == len(wanted)
    assert sum(each["sum"] for each in found.get("answers", ())) == sum(wanted)
    lost = {kind: found["lost"][kind] for kind in LOSSES.values() if found["lost"][kind]}
    assert lost == ({} if wanted else {"calls and events whose --where could not be answered": 3 * ROUNDS})
    assert f"only events count of which this is true: {where}" in found["comments"]


def test_lines_per_hit(program: Path) -> None:
    target = f"u:{program}:item"
    done = ask(program, target, "--print", '"%s is %d", str(arg3), arg1', "--where", "arg1 == 4 && arg2 == -4")
    assert done.out.splitlines().count("pear is 4") == 2
    done = ask(program, target, "--print", "arg1, str(arg3), comm", "--where", "arg1 == 4")
    assert sum(line.endswith('test:item: arg1=4 str(arg3)="pear" comm="items"') for line in done.out.splitlines()) == 2


def test_probes_whose_arguments_cannot_be_read(program: Path) -> None:
    """Alone, they are refused; with others, they are left out."""
    for name, said in (
        ("float", "BPF sees no registers"),
        ("static", "which is not a register"),
        ("item", "has 3 arg"),
    ):
        option = "arg4" if name == "item" else "arg1"
        line = [f"u:{program}:{name}", "--hist", option, "--", program]
        done = run(*line, command=TRACE_FUNC)
        assert done.status == 2
        assert said in done.err.splitlines()[0]
        assert "\n  ^^^^\n" in done.err
    done = ask(program, f"u:{program}:*", "--hist", "arg3")
    assert {call.name: call.count for call in load(program.with_name("x.pb.gz")).calls} == {"test:item": 3 * ROUNDS}
    assert "items: left out test:float, test:static, without what is asked for" in done.out


def test_entries_of_functions(program: Path) -> None:
    """Arguments are known by register, and by name from debug information; what functions return is not known."""
    for n, name in (("i32(arg1)", "str(arg2)"), ("n", "name")):
        line = ["--count", f"{program}:take", "--where", f"{n} > 2", "--sum", n, "--count-by", name, "--json"]
        found = summary(ask(program, *line))
        wanted = [i for i in range(ROUNDS) if i % 7 > 2]
        assert [(each["name"], each["count"]) for each in found["events"]] == [("take", len(wanted))]
        answers = {each["ask"]: each for each in found["answers"]}
        assert answers["sum"]["sum"] == sum(i % 7 for i in wanted)
        values = Counter(("apple", "pear", "a fig")[i % 3] for i in wanted)
        assert {each["value"]: each["count"] for each in answers["count-by"]["values"]} == values
        assert nothing_lost(found)


def test_how_often_each_result_was_there(program: Path) -> None:
    """Functions that are timed can be counted by arguments and results together."""
    found = summary(ask(program, f"{program}:take", "--count-by", "i32(retval) + 1", "--count-by", "name", "--json"))
    numbers, names = ({each["value"]: each["count"] for each in answer["values"]} for answer in found["answers"])
    if "apple" in numbers:
        numbers, names = names, numbers
    assert numbers == {str(n + 1): count for n, count in Counter(i % 7 for i in range(ROUNDS)).items()}
    assert names == {"apple": 40, "pear": 40, "a fig": 40}


def test_more_values_than_are_kept(tmp_path: Path) -> None:
    """Values that have no room are counted together."""
    rounds = 40_000
    out = tmp_path / "x.pb.gz"
    line = [f"u:{USDT}:shop:sale", "--count-by", "arg1", "--count-by", "arg1 / 20000", "-o", out, "--", USDT, rounds]
    done = run(*line, command=TRACE_FUNC).check_succeeded()
    many, few = sorted(load(out).answers, key=lambda answer: -len(answer.values))
    assert (len(many.values), many.count) == (MOST_VALUES, rounds)
    assert many.others + sum(number for _, number in many.values) == rounds
    assert few.count == rounds
    assert few.others + sum(number for _, number in few.values) == rounds
    assert "[others]" in done.out


def test_fields_of_tracepoints(tmp_path: Path) -> None:
    """Programs that a shell executes, and others that begin meanwhile, are known."""
    script = "for i in 1 2 3 4 5; do /bin/true; done; /bin/sleep 0.01"
    line = ["t:sched:sched_process_exec", "--where", "args.pid == tid && filename != ''".replace("''", '""')]
    line += ["--count-by", "filename", "--print", "filename, args.pid"]
    done = run(*line, "--json", "-o", tmp_path / "x.svg", "--", "/bin/sh", "-c", script, command=TRACE_FUNC)
    found = json.loads(done.check_succeeded().out)
    (answer,) = found["answers"]
    assert {each["value"]: each["count"] for each in answer["values"]} == {
        "/bin/sh": 1,
        "/bin/true": 5,
        "/bin/sleep": 1,
    }
    assert len(re.findall(r'sched:sched_process_exec: filename="/bin/true" args.pid=\d+$', done.err, re.MULTILINE)) == 5
    assert nothing_lost(found)


def test_switches_of_a_thread(tmp_path: Path) -> None:
    """All of the program's sleeps, and no other thread's."""
    line = ["t:sched:sched_switch", "--where", "prev_state == 1 && args.prev_pid == tid", "--count-by", "prev_comm"]
    done = run(*line, "--hist", "prev_prio", "--json", "-o", tmp_path / "x.svg", "--", FOLDER / "sleeps", 5,
               command=TRACE_FUNC)  # fmt: skip
    lines = done.check_succeeded().out.splitlines()
    found = json.loads("\n".join(lines[lines.index("{") :]))
    assert 35 <= sum(each["count"] for each in found["events"]) <= 45
    counts, hist = sorted(found["answers"], key=lambda each: str(each["ask"]))
    assert [each["value"] for each in counts["values"]] == ["sleeps"]
    assert counts["count"] == hist["count"] == sum(each["count"] for each in found["events"])
    bits = (120 + os.nice(0)).bit_length()
    assert [(each["from"], each["to"]) for each in hist["buckets"]] == [(1 << bits - 1, (1 << bits) - 1)]


def test_arguments_of_system_calls(tmp_path: Path) -> None:
    """Strings in the program's memory, and an int of 8 bytes."""
    script = "open('/dev/null').close()\n" * 3
    line = ["t:syscalls:sys_enter_openat", "--where", 'filename == "/dev/null"', "--sum", "dfd", "--json"]
    done = run(*line, "-o", tmp_path / "x.svg", "--", sys.executable, "-ISc", script, command=TRACE_FUNC)
    found = json.loads(done.check_succeeded().out)
    (answer,) = found["answers"]
    assert (answer["count"], answer["sum"]) == (3, 3 * -100)


def test_events_of_several_kinds(program: Path) -> None:
    """One question for all: what lacks an argument is left out."""
    targets = f"u:{program}:item", "t:sched:sched_process_exit", f"{program}:take"
    found = summary(ask(program, "--count", *targets, "--sum", "tid - pid", "--json"))
    counts = {"test:item": 3 * ROUNDS, "take": ROUNDS, "sched:sched_process_exit": 1}
    assert {each["name"]: each["count"] for each in found["events"]} == counts
    assert {each["name"]: (each["count"], each["sum"]) for each in found["answers"]} == {
        name: (count, 0) for name, count in counts.items()
    }
    wrong = run("--count", *targets, "--sum", "arg2", "--", program, command=TRACE_FUNC)
    assert wrong.status == 2
    assert "--sum: 'arg2' is not known; there are" in wrong.err
    script = "for i in 1 2 3 4 5; do /bin/true; done"
    line = ["t:sched:/^sched_process_(exec|exit)$/", "--count-by", "filename", "-o", program.with_name("y.pb.gz")]
    done = run(*line, "--", "/bin/sh", "-c", script, command=TRACE_FUNC).check_succeeded()
    assert "kernel: left out sched:sched_process_exit, without what is asked for: 'filename' is not known" in done.out
    assert {call.name for call in load(program.with_name("y.pb.gz")).calls} == {"sched:sched_process_exec"}


def test_intervals(program: Path, tmp_path: Path) -> None:
    """Nothing is counted twice."""
    script = f"for i in 1 2 3 4 5 6; do {program}; sleep 0.4; done"
    line = [f"u:{program}:item", "--count-by", "arg1 > 999", "--sum", "arg1", "--every", "1s", "--json"]
    done = run(*line, "--", "/bin/sh", "-c", script, command=TRACE_FUNC, cwd=Path("/proc")).check_succeeded()
    found = [json.loads(line) for line in done.out.splitlines()]
    answers = [answer for each in found for answer in each.get("answers", ())]
    assert sum(answer["sum"] for answer in answers if answer["ask"] == "sum") == 6 * sum(FIRST)
    values = Counter[str]()
    for answer in answers:
        for each in answer["values"]:
            values[each["value"]] += each["count"]
    assert values == {"0": 6 * 2 * ROUNDS, "1": 6 * ROUNDS}
    assert len(found) >= 2


def test_statements_of_postgres(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    """Texts of the statements are those of the script."""
    home, out = programs(), tmp_path / "x.pb.gz"
    require(home is not None, "no PostgreSQL (Debian's package postgresql)")
    with HotRow(quick=2, slow_ms=20) as row:
        scope = ",".join(map(str, row.pids))
        options = ["--count-by", "str(arg1)", "--where", 'str(arg1) != "commit;"', "-p", scope, "-d", 3, "-o", out]
        run("u:postgres:query__start", *options, command=TRACE_FUNC).check_succeeded()
    (answer,) = load(out).answers
    found = dict(answer.values)
    assert set(found) == {
        "begin;",
        "update hot set n = n + 1 where id = 1;",
        "select pg_sleep(0.001);",
        "select pg_sleep(0.02);",
    }
    assert abs(found["begin;"] - found["update hot set n = n + 1 where id = 1;"]) <= len(row.pids)
    assert answer.count == sum(found.values()) == sum(call.count for call in load(out).calls)


@pytest.mark.parametrize("way", [Way.MULTI, Way.SINGLE])
@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[-1]], ids=lambda shape: shape.name)
def test_each_way_of_the_kernel(trace: Trace, way: Way, shape: Shape) -> None:
    """The answers are the same, however probes get there and the scope is judged."""
    targets = [Target.parse(f"{FOLDER}/sleeps:sleep_*ms")]
    events = Events.all_of(targets, [EventTarget.parse("t:syscalls:sys_enter_nanosleep")])
    asked = Asked.parse(where=["tid == pid"], sums=["1 + pid - tid"], counts=["comm"])
    asking = AskedEvents(
        events, chosen_in_kernel(events), asked=asked, compiler=Compiler(), show=lambda name, line: None
    )
    measure = AskedEventsCollector(asking, way=way)
    options: dict[str, Any] = {"btf": KERNEL_BTF} if shape.raw else {}
    traced = trace("sleeps", 3, measures=(measure,), shape=shape, **options)
    wanted = {"sleep_1ms": 12, "sleep_10ms": 6, "sleep_25ms": 3, "syscalls:sys_enter_nanosleep": 21}
    assert {call.name: call.count for call in traced.profile.calls} == wanted
    sums = {answer.name: answer.sum for answer in traced.profile.answers if answer.ask == "sum"}
    values = {answer.name: answer.values for answer in traced.profile.answers if answer.ask == "count-by"}
    assert sums == wanted
    assert values == {name: [("sleeps", count)] for name, count in wanted.items()}
    assert not any(traced.profile.lost[kind] for kind in (*LOSSES.values(), "events"))
