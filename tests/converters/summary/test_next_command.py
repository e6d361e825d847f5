from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from next_steps import step_of, whom
from stallscope.converters.facts.wait_kinds import CORE
from stallscope.converters.facts.wait_objects import On
from stallscope.converters.model.next_step import HAS_CORES, PATH, REST, WHAT_ENDERS_DO, WHAT_OTHERS_DO, WHO_ENDS, Whom
from stallscope.converters.model.wait_objects import PIPE, READS, ObjectEnd, WaitObject
from stallscope.converters.rules.finding import Finding
from stallscope.converters.rules.verdict import Verdict
from stallscope.converters.summary.answer import NO_WAIT, Answer
from stallscope.converters.summary.core_takers import OTHERS, TRACED, UNCLEAR, Takers
from stallscope.converters.summary.figures import Process, Wait
from stallscope.converters.summary.next_command import (
    after_calls,
    after_path,
    after_samples,
    after_wakers,
    next_command,
    victim_of,
)

ONE = [Process("train", (7,))]
RANKS = [Process("train", tuple(range(10, 18)))]


@pytest.mark.parametrize(
    ("told", "has_samples", "processes", "command"),
    [
        (Answer((), "cpu"), False, ONE, "trace-wall -p 7 -d 5"),
        (Answer((), NO_WAIT), False, ONE, "trace-wall -p 7 -d 5"),
        (Answer((), "cpu"), True, ONE, "trace-oncpu -p 7 -d 5 -o cpu.html"),
        (Answer((), "held", judged="io"), False, RANKS, "trace-wakeup -n '^train$' -d 5"),
        (Answer((), "held", judged="driver"), False, RANKS, "trace-ioctl -n '^train$' -d 5"),
        (Answer((), "sleep"), False, ONE, "trace-wall -p 7 -d 5"),
        (Answer((), "sleep"), True, ONE, "trace-offcpu -p 7 -d 2 -o when.pftrace"),
        (Answer((), "lock"), False, RANKS, "trace-wakeup -n '^train$' -d 5"),
        (Answer((), "lock", holder=9), False, RANKS, "trace-wall -p 9 -d 5"),
        (Answer((), "lock", deadlock=True, holder=9), False, ONE, "trace-offcpu -p 7 -d 1 --per-thread -o stacks.html"),
        (Answer((), "thread"), True, ONE, "trace-wakeup -p 7 -d 5"),
        (Answer((), "peer"), False, ONE, "trace-wakeup -p 7 -d 5"),
        (Answer((), "peer", explained=True), False, ONE, "trace-wakeup -p 7 -d 5"),
        (Answer((), "child"), False, [*RANKS, *ONE], "trace-wakeup -a -d 5"),
        (Answer((), "lock", deadlock=True), False, ONE, "trace-offcpu -p 7 -d 1 --per-thread -o stacks.html"),
    ],
)
def test_command(told: Answer, has_samples: bool, processes: list[Process], command: str) -> None:
    step = next_command(told, has_samples, processes)
    assert step
    assert step.command == command
    assert step.tells


@pytest.mark.parametrize(
    ("kind", "ends", "command"),
    [
        ("peer", [99], "trace-wall -p 99 -d 5"),
        ("peer", [7], "trace-wakeup -p 7 -d 5"),  # it is traced already
        ("peer", [98, 99], "trace-wakeup -p 7 -d 5"),
        ("peer", [], "trace-wakeup -p 7 -d 5"),
        ("held", [99], "trace-wakeup -p 7 -d 5"),
    ],
)
def test_who_has_the_other_end_is_traced_next(kind: str, ends: list[int], command: str) -> None:
    what = WaitObject(1, PIPE, does=READS, ends=[ObjectEnd("server", pid) for pid in ends])
    finding = Finding(kind, ((7, 7),), 9, 10, on=On(what))
    verdict = Verdict("for-others", kind, 9, 1.0, frozenset((7,)), finding)
    told = Answer((), kind, judged=kind, told=(verdict,))
    step = next_command(told, False, ONE)
    assert step and step.command == command
    explained = next_command(replace(told, explained=True), False, ONE)
    assert explained and explained.command == "trace-wakeup -p 7 -d 5"


@pytest.mark.parametrize("name", ["x'; reboot", "a b", "", "é", "a\nb", "[k]"])
def test_a_name_that_needs_care_is_not_put_into_a_command(name: str) -> None:
    step = next_command(Answer((), "held"), False, [Process(name, tuple(range(10, 18)))])
    assert step
    assert step.command == "trace-wakeup -a -d 5"


def test_the_users_own_choice_is_repeated() -> None:
    step = next_command(Answer((), "lock"), False, RANKS, chosen=whom("-p 5 --children"))
    assert step and step.command == "trace-wakeup -p 5 --children -d 5"
    step = next_command(Answer((), "cpu"), False, RANKS, chosen=whom("", "python3 'my job.py' 6"))
    assert step and step.command == "trace-wall -d 5 -- python3 'my job.py' 6"


JOB = [Process("python3 train.py", (10, 11), command="python3")]
UNEXPLAINED = Answer((), "thread", judged="collective")


def test_other_ranks_are_traced_if_no_traced_one_is_late() -> None:
    def command(told: Answer, processes: list[Process], chosen: Whom | None = None) -> str:
        step = next_command(told, False, processes, chosen=chosen)
        assert step
        return step.command

    assert command(UNEXPLAINED, JOB) == "trace-wall -n 'train\\.py' -d 5"
    assert command(UNEXPLAINED, RANKS, whom("-p 10")) == "trace-wall -n train -d 5"
    assert command(replace(UNEXPLAINED, explained=True), JOB) == "trace-wakeup -p 10,11 -d 5"
    assert command(UNEXPLAINED, JOB, whom("-n train")) == "trace-wakeup -n train -d 5", "they are traced"
    assert command(UNEXPLAINED, [*JOB, *ONE]) == "trace-wakeup -p 7,10,11 -d 5", "it is not one job"
    assert command(UNEXPLAINED, [replace(JOB[0], name="python3 a$(b)")]) == "trace-wakeup -p 10,11 -d 5"


def test_after_calls() -> None:
    train = whom("-n train")
    assert after_calls(0.05, True, train) == step_of("trace-offcpu -n train -d 5", REST)
    held = after_calls(0.5, True, train)
    assert held and held.command == "trace-wakeup -n train -d 5"
    assert after_calls(0.5, False, train) is None


def test_nothing_tells_more() -> None:
    assert next_command(Answer(()), False, []) is None
    assert next_command(Answer((), "stopped"), False, ONE) is None


def waiting_for_a_core(kind: str, time: int = 20) -> Wait:
    flags = dict.fromkeys(("idle", "still", "in_kernel", "told_by_others"), False)
    return Wait(
        "runnable", CORE, (), "", time, 1, 1, 1, 0, 0, **flags, processes=1, threads=1, threads_wall=100,
        threads_alike=1, who=(), takers=Takers(kind) if kind else None,
    )  # fmt: skip


@pytest.mark.parametrize("kind", [OTHERS, UNCLEAR])
def test_who_else_has_the_cores(kind: str) -> None:
    waits = [waiting_for_a_core(TRACED, 5), waiting_for_a_core(kind)]
    for has_samples, command in ((False, "trace-offcpu -a -d 5"), (True, "trace-wall -a -d 5")):
        step = next_command(Answer((), NO_WAIT), has_samples, ONE, waits)
        assert step == step_of(command, HAS_CORES)
    step = next_command(Answer((), "lock"), False, ONE, waits)
    assert step
    assert "-p 7" in step.command


@pytest.mark.parametrize("wait", [waiting_for_a_core(TRACED), waiting_for_a_core(""), waiting_for_a_core(OTHERS, 9)])
def test_cores_are_no_question(wait: Wait) -> None:
    step = next_command(Answer((), NO_WAIT), True, ONE, [wait])
    assert step
    assert "-a" not in step.command.split()


def test_who_else_has_the_cores_is_told_already() -> None:
    step = next_command(Answer((), NO_WAIT, names_takers=True), True, ONE, [waiting_for_a_core(OTHERS)])
    assert step and step.command == "trace-oncpu -p 7 -d 5 -o cpu.html"


def test_what_runs_comes_before_who_else_has_the_cores() -> None:
    for time, tool in ((20, "trace-wall -p 7"), (40, "trace-offcpu -a")):
        step = next_command(Answer((), "cpu"), False, ONE, [waiting_for_a_core(OTHERS, time)])
        assert step and step.command.startswith(tool)


def test_who_ends_the_waits_is_known_already() -> None:
    asked = next_command(Answer((), "lock"), False, RANKS)
    step = after_wakers(asked, RANKS, whom("-n train"))
    assert step == step_of("trace-wakeup -n train -d 5 --critical 10", PATH)
    step = after_wakers(asked, ONE, whom("", "make -j4"))
    assert step and step.command == "trace-wakeup -d 5 --critical command -- make -j4"
    step = after_wakers(asked, ONE, whom("-a"))
    assert step and step.command == "trace-offcpu -a -d 2 -o when.pftrace"  # whose path would it be?
    other = next_command(Answer((), "cpu"), False, ONE)
    assert after_wakers(other, ONE, None) == other


@pytest.mark.parametrize(
    ("chosen", "untraced", "command"),
    [
        (None, [], "trace-wakeup -p 7 -d 5 --critical 9"),
        (None, [41, 42], "trace-wakeup -p 7,41,42 -d 5"),
        (whom("-p 7 --children"), [41], "trace-wakeup -p 7,41 --children -d 5"),
        (None, range(20, 30), "trace-wakeup -a -d 5"),
        (whom("-n train"), [41], "trace-wakeup -p 41 -n train -d 5"),
        (whom("-n train --children"), [41, 42], "trace-wakeup -p 41,42 -n train --children -d 5"),
        (whom("-n train"), range(20, 30), "trace-wakeup -a -d 5"),
        (whom("-a"), [41], "trace-offcpu -a -d 2 -o when.pftrace"),
        (whom("", "make -j4"), [41], "trace-wakeup -a -d 5"),
    ],
)
def test_whose_path_comes_next_or_who_else_is_traced(
    chosen: Whom | None, untraced: Sequence[int], command: str
) -> None:
    asked = next_command(Answer((), "thread", victim=9), False, ONE, chosen=chosen)
    step = after_wakers(asked, ONE, chosen, 9, untraced)
    assert step and step.command == command


def test_nobody_is_asked_for_who_ends_waits_that_do_not_end() -> None:
    told = Answer((), "lock", is_endless=True)
    step = next_command(told, False, ONE)
    assert step == step_of("trace-wall -a -d 5", WHAT_OTHERS_DO)
    assert after_wakers(step, ONE, None) == step
    found = after_wakers(step, ONE, whom("-n train"), 9, [41])
    assert found == step_of("trace-wakeup -p 41 -n train -d 5", WHAT_ENDERS_DO)
    step = next_command(told, False, ONE, chosen=whom("-a"))
    assert step and step.tells == WHO_ENDS, "all are traced already"


def test_after_a_path_comes_what_happens_when() -> None:
    asked = next_command(Answer((), "thread"), False, ONE)
    step = after_path(asked, ONE, None)
    assert step and step.command == "trace-offcpu -p 7 -d 2 -o when.pftrace"
    assert after_path(asked, ONE, whom("-n train"), [41]) == step_of("trace-wakeup -p 41 -n train -d 5", WHAT_ENDERS_DO)
    other = next_command(Answer((), "cpu"), False, ONE)
    assert after_path(other, ONE, None) == other


def test_the_path_is_of_who_waits_for_somebody() -> None:
    assert victim_of(Answer((), "lock", victim=5), 6) == 5
    assert victim_of(Answer((), "sleep", victim=5), 6) == 6
    assert victim_of(Answer((), "sleep", victim=5), 0) == 5
    assert victim_of(Answer((), "lock"), 6) == 6


def waiting(kind: str, time: int, *, idle: bool = False) -> Wait:
    return replace(waiting_for_a_core("", time), kind=kind, takers=None, state="interruptible", idle=idle)


def test_who_ends_much_of_the_waits_is_asked_beside_a_sleep() -> None:
    sleep = Answer((), "sleep")
    step = next_command(sleep, False, ONE, [waiting("sleep", 50), waiting("peer", 40)])
    assert step == step_of("trace-wakeup -p 7 -d 5", WHO_ENDS)
    for other in (waiting("peer", 10), waiting("peer", 40, idle=True), waiting("events", 40)):
        step = next_command(sleep, False, ONE, [waiting("sleep", 50), other])
        assert step and step.command.startswith("trace-wall")


def test_the_function_that_most_time_is_in_is_timed_next() -> None:
    target = "libpack.so:pack_message"
    for kind in ("cpu", ""):
        told = Answer((), kind)
        asked = next_command(told, True, ONE)
        step = after_samples(asked, told, target, ONE, None)
        assert step and step.command == "trace-func libpack.so:pack_message -p 7 -d 5"
        assert after_samples(asked, told, "", ONE, None) == asked
    for told, waits in ((Answer((), "held"), []), (Answer((), "cpu"), [waiting_for_a_core(OTHERS)])):
        asked = next_command(told, True, ONE, waits)
        assert after_samples(asked, told, target, ONE, None) == asked
