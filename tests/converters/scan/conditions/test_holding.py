from __future__ import annotations

import json

import pytest
from scans import HOSTILE, three_troubles
from stallscope.converters.model import Profile
from stallscope.converters.scan.conditions.expression import Quantity
from stallscope.converters.scan.conditions.holding import Holding, Measured, holding, told
from stallscope.converters.scan.conditions.parser import parse
from stallscope.converters.scan.process_verdicts import process_verdicts
from summary_profiles import SECOND, Tracee, facts_of
from verdict_profiles import LOCK, one


def held(condition: str, profile: Profile, pids: tuple[int, ...] | None = None) -> list[Holding]:
    facts = facts_of(profile)
    return holding(parse(condition), facts, process_verdicts(facts), pids)


@pytest.mark.parametrize(
    ("condition", "pids"),
    [
        ("io > 89%", [1]),
        ("io > 90%", []),
        ("io >= 90%", [1]),
        ("peer > 8s", [2]),
        ("lock(main) > 3999ms", [3, 4]),
        ("verdict == lock", [3, 4]),
        ("verdict != lock", [1, 2]),
        ("name == 'que*' and pid < 4", [3]),
        ("name != 'que*'", [1, 2]),
        ("name == 'QUE*'", []),
        ("not lock > 10%", [1, 2]),
        ("io > 50% or lock > 50% and pid == 4", [1, 4]),
        ("(io > 50% or lock > 50%) and pid == 4", [4]),
        ("cores > 0.05", [1, 2, 3, 4]),
        ("lock(workers) > 0%", []),
        ("not lock(workers) > 0%", []),
        ("not lock(workers) > 0% or verdict == io", [1]),
        ("lock(workers) > 0% and verdict == io", []),
        ("not (lock(workers) > 0% and verdict == io)", [2, 3, 4]),
        ("share > 85%", [1, 2]),
    ],
)
def test_processes_for_which_it_holds(condition: str, pids: list[int]) -> None:
    """Nothing holds that depends on threads that are not there."""
    assert sorted(each.pid for each in held(condition, three_troubles())) == pids


def test_others_are_not_looked_at() -> None:
    assert [each.pid for each in held("lock > 1%", three_troubles(), (1, 4))] == [4]


def test_what_decided_it_is_told() -> None:
    (found,) = held("io(main) > 50% and longest < 100s", three_troubles())
    assert str(found) == "app (pid 1): io(main) 90.0 % (9.00 s), longest 9.00 s"
    assert found.to_json()["values"][0] == {"quantity": "io(main)", "value": 9 * SECOND, "share": 0.9}
    (other,) = held("verdict == io", three_troubles())
    assert str(other) == "app (pid 1): verdict io"


def test_values_have_their_units() -> None:
    shown = [
        str(Measured(Quantity(word), value, 0)) for word, value in (("share", 0.5), ("cores", 1.234), ("waits", 1200))
    ]
    assert shown == ["share 50.0 %", "cores 1.23", "waits 1,200"]


def test_hostile_names() -> None:
    profile = one(LOCK, 9 * SECOND, state="interruptible", runs=SECOND)
    Tracee(profile, 2, HOSTILE, 2, HOSTILE).run(SECOND).wait(LOCK, "interruptible", 9 * SECOND, 900)
    (found,) = held("lock('*script*') > 50%", profile)
    assert str(found).isprintable()
    assert "\\x1b" in str(found)
    json.dumps(found.to_json()).encode()


def test_some_are_told_and_the_others_counted() -> None:
    found = [Holding("app", pid, "lock", ()) for pid in range(1, 6)]
    assert told(found[:3]) == "app (pid 1): verdict lock; app (pid 2): verdict lock; app (pid 3): verdict lock"
    assert told(found).endswith("app (pid 3): verdict lock and 2 more")
