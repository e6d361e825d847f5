from __future__ import annotations

import pytest
from stallscope.converters.summary.answer import NO_WAIT, Answer
from stallscope.converters.summary.figures import Process
from stallscope.converters.summary.next_command import next_command

ONE = [Process("train", (7,))]
RANKS = [Process("train", tuple(range(10, 18)))]


@pytest.mark.parametrize(
    ("told", "has_samples", "processes", "command"),
    [
        (Answer((), "cpu"), False, ONE, "trace-wall -p 7 -d 5"),
        (Answer((), NO_WAIT), False, ONE, "trace-wall -p 7 -d 5"),
        (Answer((), "cpu"), True, ONE, "trace-offcpu -p 7 -d 2 -o when.pftrace"),
        (Answer((), "lock"), False, RANKS, "trace-offcpu -n '^train$' -d 2 -o when.pftrace"),
        (Answer((), "peer"), False, ONE, "trace-offcpu -a -d 5"),
        (Answer((), "peer", explained=True), False, ONE, "trace-offcpu -p 7 -d 2 -o when.pftrace"),
        (Answer((), "child"), False, [*RANKS, *ONE], "trace-offcpu -a -d 2 -o when.pftrace"),
        (Answer((), "lock", deadlock=True), False, ONE, "trace-offcpu -p 7 -d 1 --per-thread -o stacks.html"),
    ],
)
def test_command(told: Answer, has_samples: bool, processes: list[Process], command: str) -> None:
    step = next_command(told, has_samples, processes)
    assert step
    assert step.command == command
    assert step.tells


@pytest.mark.parametrize("name", ["x'; reboot", "a b", "", "é", "a\nb", "[k]"])
def test_a_name_that_needs_care_is_not_put_into_a_command(name: str) -> None:
    step = next_command(Answer((), "lock"), False, [Process(name, tuple(range(10, 18)))])
    assert step
    assert step.command == "trace-offcpu -a -d 2 -o when.pftrace"


def test_nothing_tells_more() -> None:
    assert next_command(Answer(()), False, []) is None
    assert next_command(Answer((), "stopped"), False, ONE) is None
