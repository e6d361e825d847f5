from __future__ import annotations

import pytest
from stallscope.tracers.engines.bcc import gathered
from stallscope.tracers.engines.bcc.gathered import OTHER_STACK, Filter, Gathered
from stallscope.tracers.engines.bcc.layouts import NEW, PREEMPTED, STATES, KernelAccount, KernelPlace, Phase, WaitSum
from stallscope.tracers.engines.bcc.tables import Read

LETTERS = {1: "S", 2: "D"}
HERE = KernelPlace(11, 12, 100, 5, 4, 1)


def account(phase: Phase, **given: int) -> KernelAccount:
    made = KernelAccount.unpack(KernelAccount.seed(4, 1, 100))
    return made._replace(phase=phase, **given)


def wait(blocked: int, runnable: int = 0, number: int = 1) -> WaitSum:
    return WaitSum(number, blocked, blocked, blocked, runnable, runnable, runnable)


def closes(made: Gathered) -> None:
    for each in made.accounts:
        assert each.on_cpu + each.runnable + sum(each.blocked.values()) == each.ended - each.began


def test_states_are_only_read_where_they_are_not_known() -> None:
    asked: list[int] = []

    def letter_of(tid: int) -> str:
        asked.append(tid)
        return "S"

    made = Gathered(LETTERS)
    made.finish({5: account(Phase.ON_CPU), 6: account(Phase.UNKNOWN)}, 400, letter_of)
    assert asked == [6]


def test_a_wait_has_a_row_until_the_wakeup_and_one_after_it() -> None:
    made = Gathered(LETTERS)
    for _ in (0, 1):
        made.take(Read([(HERE, wait(70, 30))], [], [(11, b"x" * 8)], []))
    assert [(row.state, row.values) for row in made.waits()] == [
        ("interruptible", (140, 2, 70, 70)),
        ("runnable-woken", (60, 2, 30, 30)),
    ]


@pytest.mark.parametrize(("state", "name"), [(PREEMPTED, "runnable-preempted"), (NEW, "runnable-woken")])
def test_a_thread_that_only_waits_for_a_core(state: int, name: str) -> None:
    made = Gathered(LETTERS)
    made.take(Read([(HERE._replace(state=state), wait(0, 30))], [], [], []))
    assert [(row.state, row.values) for row in made.waits()] == [(name, (30, 1, 30, 30))]


def test_states_that_are_wanted() -> None:
    made = Gathered(LETTERS, Filter(states=frozenset({"runnable-woken"})))
    made.take(Read([(HERE, wait(70, 30))], [], [], []))
    assert [row.state for row in made.waits()] == ["runnable-woken"]


@pytest.mark.parametrize(
    ("last", "letter", "times", "rows"),
    [
        (account(Phase.ON_CPU, since=150, runnable=50), "R", (250, 50, 0), []),
        (account(Phase.BLOCKED, since=150, out=150, on_cpu=50), "S", (50, 0, 250), [250]),
        (account(Phase.RUNNABLE, since=150, out=100, woken=150, blocked=(0, 50, *[0] * (STATES - 2))), "R",
         (0, 250, 50), [50, 250]),
        (account(Phase.UNKNOWN), "R", (300, 0, 0), []),
        (account(Phase.UNKNOWN), "S", (0, 0, 300), [300]),
    ],
    ids=["on a core", "blocked", "woken", "running all the time", "asleep all the time"],
)  # fmt: skip
def test_what_a_thread_did_last(last: KernelAccount, letter: str, times: tuple[int, int, int], rows: list[int]) -> None:
    made = Gathered(LETTERS)
    made.finish({5: last}, 400, lambda _: letter)
    (found,) = made.accounts
    assert (found.on_cpu, found.runnable, found.blocked["interruptible"]) == times
    assert (found.pid, found.tid, found.exited) == (4, 5, False)
    closes(made)
    assert [(row.values[0], row.is_open) for row in made.waits()] == [(time, True) for time in rows]


def test_short_waits_that_go_on_are_left_out() -> None:
    made = Gathered(LETTERS, Filter(shortest=1000))
    made.finish({5: account(Phase.BLOCKED, out=100)}, 400, lambda _: "S")
    assert list(made.waits()) == []
    closes(made)


def test_threads_that_were_gone_before_they_were_taken_in() -> None:
    made = Gathered(LETTERS)
    made.finish({5: account(Phase.UNKNOWN)}, 400, lambda _: "")
    assert made.accounts == []


def test_threads_that_ended() -> None:
    made = Gathered(LETTERS)
    ended = account(Phase.GONE, end=400, on_cpu=300)._replace(comm=b"worker\xff")
    made.take(Read([], [], [], [(5, ended)]))
    (found,) = made.accounts
    assert (found.exited, found.ended, made.names) == (True, 400, {5: "worker\udcff"})


def test_samples_share_the_time_of_their_thread() -> None:
    made = Gathered(LETTERS)
    first, second, stranger = HERE, HERE._replace(ustack=13), HERE._replace(tid=9)
    made.take(Read([], [(first, 1), (second, 2), (stranger, 4)], [], []))
    made.finish({5: account(Phase.ON_CPU), 6: account(Phase.ON_CPU)}, 400, lambda _: "R")
    rows = made.running(100)
    assert (rows[first], rows[second]) == ((100, 1), (200, 2))
    assert rows[stranger] == (40_000_000, 4), "of an unknown thread"
    (rest,) = [place for place in rows if place.tid == 6]
    assert rest.ustack == rest.kstack == 0
    assert rows[rest] == (300, 0)


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rare stacks become one; more rows, and more threads, are counted as lost."""
    monkeypatch.setattr(gathered, "_MOST_STACKS", 2)
    monkeypatch.setattr(gathered, "_MOST_ROWS", 2)
    monkeypatch.setattr(gathered, "_MOST_ENDED", 1)
    made = Gathered(LETTERS)
    made.take(Read([], [], [(11, b""), (12, b""), (13, b"")], []))
    assert made.stacks.keys() == {11, 12}
    made.take(Read([(HERE, wait(1)), (HERE._replace(ustack=13), wait(2)), (HERE._replace(ustack=14), wait(3))],
                   [], [], []))  # fmt: skip
    assert {row.place.ustack: row.values[0] for row in made.waits()} == {11: 1, OTHER_STACK: 5}
    others = [(HERE._replace(tid=tid), wait(10)) for tid in (6, 7, 8)]
    made.take(Read(others, [], [], [(5, account(Phase.GONE, end=400))] * 3))
    assert (made.lost["intervals"], made.lost["ns of intervals"]) == (1, 10)
    assert sum(row.values[0] for row in made.waits()) == 26
    assert (len(made.accounts), made.lost["threads"]) == (1, 2)
