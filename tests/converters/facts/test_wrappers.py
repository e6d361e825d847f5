from __future__ import annotations

import pytest
from stallscope.converters.facts.wait_sums import add_up_waits, merged_threads
from stallscope.converters.facts.wrappers import Wrappers, only_waits_for_child
from stallscope.converters.model import Profile, Stack
from stallscope.converters.model.neighbours import Neighbour
from stallscope.converters.model.origins import Ancestor, ProcessOrigin
from stallscope.converters.model.wait_objects import PIPE, READS, ObjectEnd, WaitObject
from stallscope.converters.summary.summarize import summarize
from summary_profiles import CHILD, EXE, LIBC, POLL, READ, SECOND, SLEEP, Tracee, empty, facts_of, kernel, user

WRITER, SHELL, WRAPPER, READER = 7, 40, 41, 42
SIGNAL = (*user(EXE, "main"), *user(LIBC, "sigsuspend"), *kernel("__x64_sys_rt_sigsuspend", "sigsuspend"))
WRITE = (*user(EXE, "main", "log"), *user(LIBC, "write"), *kernel("ksys_write", "vfs_write", "pipe_write"))


def waits_for_child(profile: Profile) -> bool:
    threads = merged_threads(profile.threads)
    return only_waits_for_child(WRAPPER, threads, add_up_waits(profile, threads))


@pytest.mark.parametrize(("stack", "waits"), [(SIGNAL, True), (CHILD, True), (POLL, False), (READ, False)])
def test_who_only_waits_for_a_child_or_a_signal(stack: Stack, waits: bool) -> None:
    made = empty()
    Tracee(made, WRAPPER, "x", WRAPPER, "x").wait(stack, "interruptible", 10 * SECOND, still=True)
    assert waits_for_child(made) is waits


def test_a_wait_for_a_core_after_it_is_no_work_and_all_else_is() -> None:
    made = empty()
    wrapper = Tracee(made, WRAPPER, "x", WRAPPER, "x").wait(SIGNAL, "interruptible", 9 * SECOND)
    wrapper.wait(SIGNAL, "runnable-woken", SECOND)
    assert waits_for_child(made)
    wrapper.run(SECOND)
    assert not waits_for_child(made)


def test_a_server_that_waits_for_events_while_its_children_work_is_none() -> None:
    """Waits for events of such a process are waits for a child, but it may serve others as well."""
    made = empty()
    Tracee(made, WRAPPER, "x", WRAPPER, "x").wait(POLL, "interruptible", 10 * SECOND, 9)
    Tracee(made, READER, "y", READER, "y").run(10 * SECOND).times.creator = WRAPPER
    facts = facts_of(made)
    assert [place.kind for place in facts.waits_of((WRAPPER, WRAPPER))] == ["child"]
    assert not only_waits_for_child(WRAPPER, facts.threads, facts.sums)


def test_all_its_threads_have_to() -> None:
    made = empty()
    Tracee(made, WRAPPER, "x", WRAPPER, "x").wait(CHILD, "interruptible", 10 * SECOND, still=True)
    Tracee(made, WRAPPER, "x", WRAPPER + 1000, "x").wait(SLEEP, "interruptible", 10 * SECOND, 9)
    assert not waits_for_child(made)
    assert not waits_for_child(empty())


def piped(*pids: int, used: int | None = 0, runs: int = SECOND, above: tuple[int, ...] = (WRAPPER, SHELL)) -> Profile:
    """A writer waits until its pipe is read, which these processes have open: the reader is traced, of the others is
    known what they ``used``."""
    made = empty()
    writer = Tracee(made, WRITER, "train", WRITER, "train").wait(WRITE, "interruptible", 9 * SECOND, 9).run(SECOND)
    Tracee(made, READER, "ship", READER, "ship").wait(SLEEP, "interruptible", 10 * SECOND - runs, 9).run(runs)
    made.objects = [WaitObject(5, PIPE, does=READS, ends=[ObjectEnd(f"p{pid}", pid) for pid in pids])]
    made.samples[0] = made.samples[0]._replace(labels=tuple(sorted([*made.samples[0].labels, ("object", 5)])))
    made.origins = [ProcessOrigin(READER, "ship", [Ancestor(pid, f"p{pid}") for pid in above])]
    if used is not None:
        made.neighbours = [Neighbour(f"p{pid}", pid, used) for pid in pids if pid != READER]
    assert writer.times.wall == 10 * SECOND
    return made


def left(profile: Profile, woke: tuple[int, ...] = ()) -> list[int]:
    threads = merged_threads(profile.threads)
    known = Wrappers(threads, add_up_waits(profile, threads), profile.origins, profile.neighbours, woke)
    return [end.pid for end in known.without({each.id: each for each in profile.objects})[5].ends]


@pytest.mark.parametrize("pids", [(WRAPPER, READER), (SHELL, WRAPPER, READER), (READER,)])
def test_who_has_not_run_and_started_a_reader_is_none(pids: tuple[int, ...]) -> None:
    made = piped(*pids)
    assert left(made) == [READER]
    assert len(made.objects[0].ends) == len(pids), "the capture has all"


@pytest.mark.parametrize(
    "made",
    [
        piped(WRAPPER, READER, used=1),  # it ran
        piped(WRAPPER, READER, used=None),  # nobody knows
        piped(WRAPPER, READER, runs=0),  # the child did nothing either
        piped(WRAPPER, READER, above=(SHELL,)),  # it is not its child
        piped(WRAPPER, READER, above=(SHELL, WRAPPER)),  # between them is one that does not have the end
    ],
)
def test_others_are_told_as_before(made: Profile) -> None:
    assert left(made) == [WRAPPER, READER]


def test_who_started_a_wrapper_without_the_end_is_told() -> None:
    made = piped(WRAPPER, READER, above=(SHELL, WRAPPER))
    made.neighbours.append(Neighbour("sh", SHELL, 0))
    assert left(made) == [WRAPPER, READER]


def test_who_has_ended_a_wait_has_run() -> None:
    """Less than a tick of the clock is enough."""
    assert left(piped(WRAPPER, READER), woke=(WRAPPER,)) == [WRAPPER, READER]


@pytest.mark.parametrize(("stack", "found"), [(SIGNAL, [READER]), (READ, [WRAPPER, READER])])
def test_of_one_that_is_traced_its_waits_decide(stack: Stack, found: list[int]) -> None:
    """Ticks of the clock show nothing of it."""
    made = piped(WRAPPER, READER)
    Tracee(made, WRAPPER, "sh", WRAPPER, "sh").wait(stack, "interruptible", 10 * SECOND, still=True)
    assert left(made) == found


def test_the_sentence_names_the_reader() -> None:
    assert "to a pipe that p42 (pid 42) reads" in summarize(piped(WRAPPER, READER)).answer[0]
    assert "to a pipe that 2 processes (p41, p42) read" in summarize(piped(WRAPPER, READER, used=1)).answer[0]
