from __future__ import annotations

import pytest
from file_lock_profiles import FLOCK, waits_for
from job_profiles import TEN, rank
from stallscope.converters.facts.jobs import jobs_of
from stallscope.converters.model import Frame, Profile, Stack
from stallscope.converters.phrases.jobs import straggler
from stallscope.converters.rules.rank_states import RankStates, states_of
from stallscope.converters.rules.straggler import find, straggler_of
from summary_profiles import LIBC, SECOND, SLEEP, Tracee, empty, facts_of, kernel, user

PATH = "/v/site-packages/filelock/_api.py"


def polls(line: str = "main") -> Stack:
    """Asks for a lock on a file again and again, as filelock does."""
    own, lock = (
        Frame(name, "python", file=file, line=5)
        for file, name in (("/srv/train.py", line), (PATH, "BaseFileLock.acquire"))
    )
    return own, lock, *user(LIBC, "clock_nanosleep"), *SLEEP[2:]


def wait_of(made: Profile, number: int, stack: Stack, time: int = TEN) -> Tracee:
    """A rank that waits like that, for so much of 10 s, and runs for the rest."""
    pid = 100 + number
    rank(made, pid, number, size=4)
    made.threads.pop()
    made.samples = [each for each in made.samples if each.label("pid") != pid]
    tracee = Tracee(made, pid, "train", pid, "train")
    return (tracee.wait(stack, "interruptible", time, 99) if time else tracee).run(TEN - time)


def states(made: Profile) -> RankStates:
    facts = facts_of(made)
    return states_of(facts, jobs_of(facts)[0])


def polled(*stacks: Stack | None, first: int = 0, time: int = 9 * SECOND) -> Profile:
    """Rank 0 asks for the lock for ``first`` ns and runs for the rest; the others wait in these places."""
    made = empty()
    wait_of(made, 0, polls(), first)
    for number, stack in enumerate(stacks, 1):
        wait_of(made, number, stack or polls(), time if stack is None else TEN)
    return made


def test_all_but_one_ask_for_a_lock_again_and_again() -> None:
    made = polled(None, None, None)
    found = states(made)
    assert found.times[0].kinds == {"running": TEN}
    assert all(each.kinds == {"running": SECOND, "collective": 9 * SECOND} for each in found.times[1:])
    assert [each.for_locks for each in found.times] == [0, *[9 * SECOND] * 3]
    assert found.far() == (True, False, False, False)
    late = straggler_of(facts_of(made), found)
    assert late and late.for_lock
    assert ([each.number for each in late.late], late.excess.kind) == ([0], "running")
    assert straggler(late).startswith(
        "Rank 0 (pid 100) keeps the other 3 ranks waiting: they wait for a lock on a file for 90.0 % of their time "
        "(median), rank 0 for 0.0 %. Meanwhile rank 0 is for 100.0 % of its time on a core"
    )
    assert find(facts_of(made)) == [], "the verdict on the lock tells of it"


SLEEPS = (*user(None, "main", "nap"), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))


@pytest.mark.parametrize(
    "made",
    [
        polled(None),  # two ranks have no median
        polled(None, None, SLEEPS),  # another one does not ask either
        polled(None, None, None, first=TEN),  # all wait: somebody else has it
        polled(None, None, None, first=SECOND),  # it asks, too
        polled(None, None, None, time=4 * SECOND),  # they do not mostly wait
        polled(None, polls("one"), polls("other")),  # for several locks, perhaps
    ],
)
def test_it_is_not_known_that_a_rank_has_it(made: Profile) -> None:
    assert "collective" not in {kind for each in states(made).times for kind in each.kinds}


def test_one_of_two_that_run_has_it_and_it_is_not_known_which() -> None:
    made = polled(None, None)
    wait_of(made, 3, polls(), 0)
    assert [dict(each.kinds) for each in states(made).times[1:3]] == [{"running": SECOND, "file-lock": 9 * SECOND}] * 2


def test_who_does_not_ask_but_waits_itself_may_not_have_it() -> None:
    made = empty()
    wait_of(made, 0, SLEEPS, 6 * SECOND)
    for number in (1, 2, 3):
        wait_of(made, number, polls())
    assert [dict(each.kinds) for each in states(made).times[1:]] == [{"file-lock": TEN}] * 3


def held(*owners: tuple[int, int]) -> Profile:
    """Ranks 1 to 3 wait for a lock on a file that these had at so many looks."""
    made = empty()
    wait_of(made, 0, SLEEPS)
    for number in (1, 2, 3):
        wait_of(made, number, FLOCK)
        made.file_locks += [waits_for(100 + number, owner, seen=seen) for owner, seen in owners]
    return made


def test_another_rank_was_seen_to_have_the_lock() -> None:
    made = held((100, 10))
    found = states(made)
    assert [dict(each.kinds) for each in found.times] == [{"sleep": TEN}, *[{"collective": TEN}] * 3]
    late = straggler_of(facts_of(made), found)
    assert late and late.for_lock and [each.number for each in late.late] == [0]


@pytest.mark.parametrize(
    ("owners", "others"),
    [
        (((100, 6), (900, 4)), 6),  # a process that is no rank has it, too
        (((900, 10),), 0),
        (((0, 10),), 0),  # nobody knows
        (((100, 1),), 0),  # one look
        ((), 0),
    ],
)
def test_only_waits_for_locks_of_ranks_are_for_them(owners: tuple[tuple[int, int], ...], others: int) -> None:
    kinds = {"collective": others * SECOND, "file-lock": (10 - others) * SECOND}
    assert states(held(*owners)).times[1].kinds == {kind: time for kind, time in kinds.items() if time}


@pytest.mark.parametrize(("owner", "others"), [(100, 10), (900, 0)])
def test_who_asks_again_and_again_was_refused_because_of_another_rank(owner: int, others: int) -> None:
    made = empty()
    wait_of(made, 0, SLEEPS)
    for number in (1, 2, 3):
        wait_of(made, number, polls())
        made.file_locks.append(waits_for(100 + number, owner))
    kinds = {"collective": others * SECOND, "file-lock": (10 - others) * SECOND}
    assert states(made).times[1].kinds == {kind: time for kind, time in kinds.items() if time}
