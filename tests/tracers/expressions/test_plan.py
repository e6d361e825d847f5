from __future__ import annotations

from dataclasses import replace

import pytest
from stallscope.tracers.expressions import nodes
from stallscope.tracers.expressions.asked import Asked
from stallscope.tracers.expressions.plan import PLACES, Plan, TooMuch, plan
from stallscope.tracers.expressions.source import source


def planned(where: str = "", *sums: str) -> Plan:
    return plan(Asked.parse(where=[where] if where else [], sums=sums).bind())


def test_arguments_are_judged_at_the_entry() -> None:
    made = planned('arg1 > 1 && comm == "x"', "arg2")
    assert made.enter_where
    assert [part.number for part in made.enter] == [0]
    assert not made.at_return
    assert made.saved == []


def test_results_are_judged_at_the_return() -> None:
    made = planned("arg1 > 1 && retval < arg2", "arg3", "retval")
    assert isinstance(made.enter_where, nodes.Compare)
    assert isinstance(made.return_where, nodes.Compare)
    assert made.enter == []
    assert [part.number for part in made.returns] == [0, 1]
    assert [each.name for each in made.saved if isinstance(each, nodes.Input)] == ["arg2", "arg3"]


def test_only_what_needs_the_result_waits_for_it() -> None:
    made = planned("", "arg1", "retval")
    assert [part.number for part in made.enter] == [0]
    assert [part.number for part in made.returns] == [1]
    assert made.saved == []


def test_the_thread_is_the_same_at_the_return() -> None:
    made = planned("retval > pid || retval == 3")
    assert made.saved == []


def test_the_time_is_known_at_the_return() -> None:
    made = planned("arg1 > 1 && duration > arg2", "arg3")
    assert isinstance(made.enter_where, nodes.Compare)
    assert [each.name for each in made.saved if isinstance(each, nodes.Input)] == ["arg2", "arg3"]
    assert Asked.parse(["slow:bool=duration > 5"], ["arg1 && slow"]).judges_returns
    assert not Asked.parse(["slow:bool=duration > 5"], ["arg1 == 2"], ["slow"]).judges_returns


def test_questions_about_slow_calls_wait_for_the_return() -> None:
    made = plan(replace(Asked.parse(sums=["arg1"]), over=7).bind())
    assert (made.enter, len(made.saved), len(made.returns)) == ([], 1, 1)
    assert "if (call_duration(ids) > 7ULL) {" in source([made])


def test_whole_parts_are_kept() -> None:
    made = planned("retval > *u32*(arg1) + arg2 * 2")
    assert len(made.saved) == 1
    assert not any(isinstance(each, nodes.Load) for each in nodes.walk(made.return_where or made.saved[0]))


def test_there_is_an_end() -> None:
    texts = ["+".join(f"(retval^arg1+{i + j})" for j in range(10)) for i in range(0, PLACES + 10, 10)]
    with pytest.raises(TooMuch):
        planned("", *texts)
