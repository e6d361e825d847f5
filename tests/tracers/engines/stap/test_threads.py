"""Waits and accounts from lines."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.converters.model import Frame, Stack
from stallscope.converters.model.states import INTERRUPTIBLE, OTHER, PREEMPTED, UNINTERRUPTIBLE, WOKEN
from stallscope.converters.readers.stap.lines import Exec, Exit, Fork, Line, Lines, Name, Runs, Sampled, Wait, Woken
from stallscope.tracers.engines.asleep import Asleep
from stallscope.tracers.engines.stap.threads import Filter, Part, Threads

BEGAN = 1000
NO_STACKS = Lines().stacks(None)


def took(*lines: Line, ended: int = 2000, wanted: Filter | None = None, asleep: Asleep | None = None) -> Threads:
    threads = Threads(BEGAN, wanted, asleep=asleep)
    threads.known(1, 1, "S", "one")
    for line in lines:
        threads.take(line, ended)
    threads.finish(ended)
    return threads


def rows(threads: Threads) -> dict[tuple[int, str, str, bool], list[int]]:
    found = threads.waits(NO_STACKS)
    return {(place.tid, place.state, place.stack[-1].name, place.is_open): row for place, row in found.items()}


def account(threads: Threads, tid: int = 1):
    (found,) = [each for each in threads.finish(threads.ended) if each.tid == tid]
    assert found.on_cpu + found.runnable + sum(found.blocked.values()) == found.ended - found.began
    return found


def test_waits_fill_the_time() -> None:
    threads = took(
        Wait(1, 1, "?", 0, 0, 1000, 0, 200, 0),
        Wait(1, 1, "D", 0, 0, 1300, 100, 50, 10),
        Wait(1, 1, "R", 0, 0, 1400, 40, 0, 100),
        Runs(1, 500),
    )
    found = account(threads)
    assert (found.on_cpu, found.runnable, found.switches) == (640, 110, 2)
    assert found.blocked == {INTERRUPTIBLE: 200, UNINTERRUPTIBLE: 50}
    assert rows(threads) == {
        (1, INTERRUPTIBLE, "[no stack]", False): [200, 1, 200, 200],
        (1, UNINTERRUPTIBLE, "[no stack]", False): [50, 1, 50, 50],
        (1, WOKEN, "[no stack]", False): [10, 1, 10, 10],
        (1, PREEMPTED, "[no stack]", False): [100, 1, 100, 100],
    }
    assert not any(threads.lost.values())


class Looks(Asleep):
    """One that has seen the threads up to then."""

    def __init__(self, until: int) -> None:
        super().__init__()
        self._until = until

    def has(self, tid: int, until: int) -> bool:
        return self._until <= until

    def stack(self, tid: int) -> Stack:
        return (Frame(f"asleep_{tid}"),)


def test_the_stack_of_a_wait_that_had_begun_before_the_trace() -> None:
    """The stack is there if the wait went on when the thread was looked at."""
    for until, name in ((1150, "asleep_1"), (1250, "[no stack]")):
        threads = took(Wait(1, 1, "?", 0, 0, 1000, 0, 200, 50), Runs(1, 750), asleep=Looks(until))
        found = rows(threads)
        assert found == {
            (1, INTERRUPTIBLE, name, False): [200, 1, 200, 200], (1, WOKEN, name, False): [50, 1, 50, 50]
        }  # fmt: skip


def test_a_thread_that_sleeps_all_the_time_has_its_stack_and_is_told_as_a_wait() -> None:
    told: list[tuple[Wait, Sequence[Part]]] = []
    threads = Threads(BEGAN, None, lambda wait, parts: told.append((wait, parts)), Looks(1500))
    threads.known(1, 1, "S", "one")
    account(threads_at(threads, 2000))
    assert rows(threads) == {(1, INTERRUPTIBLE, "asleep_1", True): [1000, 1, 1000, 1000]}
    ((wait, parts),) = told
    assert (wait.tid, wait.since, wait.blocked, wait.is_open) == (1, BEGAN, 1000, True)
    assert [part.time for part in parts] == [1000]


def threads_at(threads: Threads, ended: int) -> Threads:
    threads.finish(ended)
    return threads


def test_a_wait_whose_state_is_not_known() -> None:
    """The thread was woken already while it left its core: what it ran before counts as with every wait."""
    for letter in "W?":
        threads = took(
            Wait(1, 1, "S", 0, 0, 1000, 0, 200, 0), Wait(1, 1, letter, 0, 0, 1300, 100, 50, 10), Runs(1, 640)
        )
        found = account(threads)
        assert (found.on_cpu, found.runnable) == (740, 10)
        assert found.blocked == {INTERRUPTIBLE: 200, OTHER: 50}
        assert not any(threads.lost.values())


def test_what_a_thread_did_before_it_became_the_command_does_not_count() -> None:
    threads = Threads(BEGAN)
    threads.known(1, 1, "S", "launcher")
    threads.take(Wait(1, 1, "S", 0, 0, 1100, 100, 200, 0))
    threads.restart(Exec(1, 1, 1400))
    threads.take(Wait(1, 1, "S", 0, 0, 1600, 300, 50, 0))
    threads.take(Runs(1, 350))
    threads.finish(2000)
    found = account(threads)
    assert (found.began, found.on_cpu, found.blocked[INTERRUPTIBLE]) == (1400, 550, 50)
    assert rows(threads) == {(1, INTERRUPTIBLE, "[no stack]", False): [50, 1, 50, 50]}


def test_a_switch_from_the_core_that_was_skipped() -> None:
    """The thread ran from 1200 on; of what it did until 1500, nothing is known."""
    threads = took(
        Wait(1, 1, "?", 0, 0, 1000, 0, 200, 0),
        Wait(1, 1, "-", 0, 0, 1200, 0, 300, 0),
        Wait(1, 1, "S", 0, 0, 1600, 100, 400, 0),
    )
    found = account(threads)
    assert (found.on_cpu, found.runnable) == (100, 0)
    assert found.blocked == {INTERRUPTIBLE: 600, OTHER: 300}
    assert rows(threads)[1, OTHER, "[lost]", False] == [300, 1, 300, 300]
    assert threads.lost["intervals"] == 1


def test_a_switch_to_the_core_that_was_skipped() -> None:
    """The thread began to wait at 1300, and was on a core at some time before 1600: nothing says since when."""
    threads = took(
        Wait(1, 1, "?", 0, 0, 1000, 0, 200, 0),
        Wait(1, 1, "S", 0, 0, 1600, -1, 400, 0),
    )
    found = account(threads)
    assert found.on_cpu == 0
    assert found.blocked == {INTERRUPTIBLE: 600, OTHER: 400}
    assert rows(threads)[1, OTHER, "[lost]", False] == [400, 1, 400, 400]


def test_a_thread_that_was_woken_as_the_trace_began_had_been_blocked() -> None:
    """The thread's state is looked at after that: it can run by then."""
    threads = Threads(BEGAN, None)
    threads.known(1, 1, "R", "one")
    threads.take(Wait(1, 1, "?", 0, 0, 1000, 0, 80, 1))
    threads.finish(1081)
    found = account(threads)
    assert (found.runnable, found.blocked) == (1, {OTHER: 80})
    threads = Threads(BEGAN, None)
    threads.known(1, 1, "R", "one")
    threads.take(Wait(1, 1, "?", 0, 0, 1000, 0, 80, 0))
    threads.finish(1080)
    assert account(threads).runnable == 80, "it had waited for a core all the time"


def test_a_lost_line_is_told_and_its_time_is_nobody_s() -> None:
    threads = took(Wait(1, 1, "?", 0, 0, 1000, 0, 100, 0), Wait(1, 1, "S", 0, 0, 1500, 100, 500, 0))
    assert threads.lost["intervals"] == 1
    assert rows(threads)[1, OTHER, "[lost]", False] == [300, 1, 300, 300]
    assert account(threads).on_cpu == 100


def test_an_open_wait_ends_with_the_trace_and_not_with_the_script() -> None:
    threads = took(
        Wait(1, 1, "?", 0, 0, 1000, 0, 100, 0),
        Wait(1, 1, "S", 0, 0, 1200, 100, 5000, 0, is_open=True),
    )
    assert rows(threads)[1, INTERRUPTIBLE, "[no stack]", True] == [800, 1, 800, 800]
    assert account(threads).ended == 2000


def test_a_thread_that_only_waits_or_only_runs() -> None:
    threads = Threads(BEGAN)
    threads.known(1, 1, "S", "waits")
    threads.known(1, 2, "R", "runs")
    threads.finish(2000)
    assert account(threads, 1).blocked == {INTERRUPTIBLE: 1000}
    assert account(threads, 2).on_cpu == 1000


def test_a_thread_that_is_born_and_ends() -> None:
    threads = took(
        Fork(1, 2, 1100),
        Name(1, 2, "two"),
        Wait(1, 2, "R", 0, 0, 1100, 0, 0, 50),
        Exit(1, 2, 1300, 150),
    )
    found = account(threads, 2)
    assert (found.began, found.ended, found.exited, found.on_cpu, found.runnable) == (1100, 1300, True, 150, 50)
    assert rows(threads)[2, WOKEN, "[not started]", False] == [50, 1, 50, 50]


def test_a_number_that_comes_back_is_another_thread() -> None:
    threads = took(Fork(1, 2, 1100), Exit(1, 2, 1200, 0), Fork(3, 2, 1300), Exit(3, 2, 1400, 100))
    assert [each.pid for each in threads.finish(2000) if each.tid == 2] == [1, 3]


def test_filters() -> None:
    lines = (Wait(1, 1, "D", 0, 0, 1000, 0, 50, 10), Wait(1, 1, "S", 0, 0, 1060, 0, 500, 0))
    assert {key[1] for key in rows(took(*lines, wanted=Filter(100, 1 << 64, None)))} == {INTERRUPTIBLE, OTHER}
    assert {key[1] for key in rows(took(*lines, wanted=Filter(0, 1 << 64, {WOKEN})))} == {WOKEN}


def test_samples_share_the_time_on_a_core() -> None:
    lines = [Sampled(1, 1, 0, 7)] * 3 + [Sampled(1, 1, 0, 8)]
    threads = took(*lines, Wait(1, 1, "S", 0, 0, 1800, 800, 200, 0))
    running = threads.running(NO_STACKS)
    assert sum(time for time, _ in running.values()) == account(threads).on_cpu == 800
    assert sum(count for _, count in running.values()) == 4


def test_time_without_samples_is_told() -> None:
    threads = took(Wait(1, 1, "S", 0, 0, 1800, 800, 200, 0))
    ((place, row),) = threads.running(NO_STACKS).items()
    assert (place.stack[0].name, row) == ("[not sampled]", (800, 0))


def test_a_waker_that_is_not_traced_has_a_name_and_no_account() -> None:
    threads = Threads(BEGAN, None)
    threads.known(1, 1, "S", "one")
    threads.take(Name(14, 14, "ksoftirqd/0"))
    threads.take(Woken(1, 1, 1100, 14, 14, 0, 0, "t", 0))
    assert [each.tid for each in threads.finish(2000)] == [1]
    assert threads.names == {1: "one", 14: "ksoftirqd/0"}


def test_a_thread_that_is_woken_is_traced() -> None:
    threads = Threads(BEGAN, None)
    threads.take(Woken(1, 2, 1100, 14, 14, 0, 0, "t", 0))
    assert [(each.pid, each.tid) for each in threads.finish(2000)] == [(1, 2)]


def test_a_name_of_another_process_ends_the_thread_that_had_its_number() -> None:
    threads = took(Wait(1, 2, "?", 0, 0, 1000, 0, 100, 0), Name(14, 2, "ksoftirqd/0"))
    assert account(threads, 2).ended == 1100
