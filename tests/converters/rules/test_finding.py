from __future__ import annotations

from stallscope.converters.facts.facts import Facts
from stallscope.converters.facts.wait_sums import Place, Thread
from stallscope.converters.model import Profile
from stallscope.converters.rules.finding import Finding, by_time, findings, running, waiting
from summary_profiles import EXE, MS, POOL, READ, SECOND, SLEEP, Tracee, empty, facts_of, user
from verdict_profiles import FSYNC


def two_threads(main: int = 6_000, other: int = 8_000, samples: int = 0) -> Profile:
    """Profile of 10 s, in which threads read for so many ms, and sleep for half a second."""
    profile = empty()
    for tid, ms in ((1, main), (2, other)):
        of = Tracee(profile, 1, "app", tid, f"t{tid}").run((9_500 - ms) * MS)
        of.wait(READ, "interruptible", ms * MS, 10 * tid, most=tid * MS).wait(SLEEP, "interruptible", 500 * MS, 1)
    return profile


def of_kind(facts: Facts, *kinds: str) -> dict[Thread, list[Place]]:
    return {thread: [place for place in facts.waits_of(thread) if place.kind in kinds] for thread in facts.own}


def test_waits_of_several_threads() -> None:
    facts = facts_of(two_threads())
    found = waiting(facts, "peer", of_kind(facts, "peer"))
    assert found
    assert (found.kind, found.threads, found.pids) == ("peer", ((1, 2), (1, 1)), {1})
    assert (found.time, found.wall, found.count, found.max) == (14 * SECOND, 20 * SECOND, 30, 2 * MS)
    assert (found.most, found.samples, found.runnable) == (8 * SECOND, 0, 0)
    assert [place.kind for place in found.places] == ["peer"]


def test_of_a_single_thread_nobody_has_most() -> None:
    facts = facts_of(two_threads())
    members = of_kind(facts, "peer")
    found = waiting(facts, "peer", {(1, 2): members[1, 2]})
    assert found
    assert (found.threads, found.time, found.wall) == (((1, 2),), 8 * SECOND, 10 * SECOND)
    assert (found.count, found.most) == (20, 0)
    both = waiting(facts, "peer", of_kind(facts, "peer", "sleep") | {(1, 1): []})
    assert both
    assert (both.threads, both.time, both.most) == (((1, 2),), 8_500 * MS, 0)


def test_threads_that_lose_little_there_are_not_told() -> None:
    facts = facts_of(two_threads(main=490))
    members = of_kind(facts, "peer")
    found = waiting(facts, "peer", members)
    assert found and found.threads == ((1, 2),)
    alone = {(1, 1): members[1, 1]}
    assert waiting(facts, "peer", alone) is None
    assert waiting(facts, "peer", alone, least=0) is not None
    assert waiting(facts, "peer", members, least=0.9) is None
    assert waiting(facts, "peer", {}) is None


def test_places_with_little_of_the_time_are_left_out_but_counted() -> None:
    facts = facts_of(two_threads())
    found = waiting(facts, "peer", of_kind(facts, "peer", "sleep"))
    assert found
    assert (found.time, found.count, [place.kind for place in found.places]) == (15 * SECOND, 32, ["peer"])


def test_where_all_places_have_little_all_are_told_longest_first() -> None:
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").run(SECOND)
    stacks = [(*user(EXE, "main", f"f{i}"), *READ[2:]) for i in range(11)]
    for i, stack in enumerate(stacks):
        main.wait(stack, "interruptible", 800 * MS + i, 9)
    facts = facts_of(profile)
    found = waiting(facts, "peer", of_kind(facts, "peer"))
    assert found
    assert [place.site.frames[1] for place in found.places] == [f"f{i}" for i in range(10, -1, -1)]


def test_walls_that_are_not_known() -> None:
    profile = two_threads()
    profile.threads.pop()
    facts = facts_of(profile)
    found = waiting(facts, "peer", of_kind(facts, "peer"))
    assert found
    assert (found.time, found.wall) == (14 * SECOND, 0)


def test_one_finding_for_each_group_in_the_order_of_kinds() -> None:
    facts = facts_of(two_threads())
    groups = {("sleep",): of_kind(facts, "sleep"), ("peer", "x"): of_kind(facts, "peer"), ("peer", "y"): {}}
    assert [each.kind for each in findings(facts, ("peer", "sleep"), groups)] == ["peer", "sleep"]
    assert findings(facts, ("peer",), {}) == []


def test_threads_that_run() -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(2 * SECOND).wait(POOL, "runnable-woken", 3 * SECOND, 9)
    Tracee(profile, 5, "tool", 5, "tool").run(6 * SECOND).wait(FSYNC, "uninterruptible", SECOND, 9)
    found = running(facts_of(profile), [(1, 1), (5, 5)])
    assert found == Finding("cpu", ((5, 5), (1, 1)), 11 * SECOND, 12 * SECOND, runnable=3 * SECOND)
    assert found.pids == {1, 5}


def test_longest_first_and_then_by_threads() -> None:
    made = [Finding("peer", ((pid, pid),), time, 0) for pid, time in ((3, 5), (2, 5), (1, 4), (9, 7))]
    assert [each.threads[0][0] for each in sorted(made, key=by_time)] == [9, 2, 3, 1]
