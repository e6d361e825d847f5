"""Holders of locks on files."""

from __future__ import annotations

from dataclasses import replace

import pytest
from file_lock_profiles import PATH, SEEN, waits_for
from stallscope.converters.facts.file_locks import cycle_of, file_holder, file_lock_json


def test_who_was_seen_to_have_it() -> None:
    found = file_holder([SEEN], (1,), (1,), 1)
    assert found
    assert (found.process, found.pid, found.is_traced, found.path) == ("gzip", 9, False, PATH)
    assert (found.seen, found.of, found.always) == (10, 10, True)
    traced = file_holder([SEEN], (1,), (1, 9), 1)
    assert traced and traced.is_traced


def test_only_those_who_wait_are_asked() -> None:
    assert file_holder([SEEN], (2,), (1,), 1) is None
    assert file_holder([], (1,), (1,), 1) is None
    assert file_holder([replace(SEEN, owner_pid=0, owner="")], (1,), (1,), 1) is None


def test_it_is_not_always_had() -> None:
    for changed in ({"seen": 9}, {"looks": 11}, {"seen": 1, "looks": 1}):
        found = file_holder([replace(SEEN, **changed)], (1,), (1,), 1)  # type: ignore[arg-type]
        assert found and not found.always


def test_of_several_owners_the_one_that_has_it_for_most_of_the_time() -> None:
    found = file_holder([waits_for(1, 8, seen=4), waits_for(1, 9, seen=6)], (1,), (1,), 1)
    assert found and (found.pid, found.seen, found.of) == (9, 6, 10)
    several = [waits_for(1, 7, seen=3), waits_for(1, 8, seen=3), waits_for(1, 9, seen=4)]
    assert file_holder(several, (1,), (1,), 1) is None


def test_few_looks_at_many_waits_show_nothing() -> None:
    """Three that take turns: each is seen to have it now and then."""
    turns = [waits_for(1, 2, seen=3), waits_for(1, 3, seen=2), waits_for(2, 3, seen=2), waits_for(3, 2, seen=3)]
    assert file_holder(turns, (1, 2, 3), (1, 2, 3), 1000) is None
    assert file_holder([waits_for(1, 9, seen=100)], (1,), (1,), 1000)


def test_two_that_wait_for_each_other() -> None:
    found = cycle_of([waits_for(1, 2, "/a"), waits_for(2, 1, "/b"), waits_for(3, 1, "/b")])
    assert [(each.process, each.pid, each.path) for each in found] == [("p1", 1, "/a"), ("p2", 2, "/b")]


@pytest.mark.parametrize(
    "seen",
    [
        [waits_for(1, 2)],
        [waits_for(1, 2), waits_for(2, 3)],
        [waits_for(1, 2), waits_for(2, 1, seen=9)],
        [waits_for(1, 2, seen=1, looks=1), waits_for(2, 1, seen=1, looks=1)],
        [waits_for(1, 1)],
        [waits_for(1, 2), replace(waits_for(2, 1), owner_pid=0)],
    ],
)
def test_no_cycle(seen: list) -> None:  # type: ignore[type-arg]
    assert cycle_of(seen) == ()


def test_as_data() -> None:
    told = file_lock_json(replace(SEEN, owner="x\udcff", last=0))
    assert (told["owner"], told["device"], told["last_byte"], told["seen"]) == ("x\\xff", "8:1", None, 10)
