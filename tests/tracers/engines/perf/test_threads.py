from __future__ import annotations

import random

import pytest
from stallscope.converters.model import Frame, Stack
from stallscope.tracers.engines.asleep import Asleep
from stallscope.tracers.engines.named_rows import Account
from stallscope.tracers.engines.perf.records import (
    BAD,
    DROPPED,
    EXEC,
    EXIT,
    FORK,
    IN,
    OUT,
    PREEMPTED,
    SAMPLE,
    SWITCH,
    Record,
)
from stallscope.tracers.engines.perf.threads import Filter, Threads

F: Stack = (Frame("f"),)
G: Stack = (Frame("g"),)


def taken(
    *records: Record, letter: str = "", waits: Filter | None = None, ended: int = 1000
) -> tuple[Threads, Account]:
    """Threads, and the account of the thread 2 of the process 1, in a trace from 100 on."""
    threads = Threads(100)
    if waits:
        threads.wanted(waits)
    if letter:
        threads.known(1, 2, letter)
    for record in records:
        threads.take(record)
    (account,) = threads.finish(ended)
    blocked = account.on_cpu + account.runnable + account.blocked.total()
    assert blocked == account.ended - account.began
    return threads, account


def at(time: int, kind: int, stack: Stack = (), state: str | None = None, number: int = 1) -> Record:
    return Record(kind, time, 1, 2, "name", stack, state, number)


def waits_of(threads: Threads) -> dict[tuple[str, str, bool], list[int]]:
    return {(place.state, place.stack[-1].name, place.is_open): v for place, v in threads.waits().items()}


class Looks(Asleep):
    """Thread 2 was looked at, at 150."""

    def has(self, tid: int, until: int) -> bool:
        return until >= 150

    def stack(self, tid: int) -> Stack:
        return G


@pytest.mark.parametrize(("until", "name"), [(140, "[no stack]"), (160, "g"), (0, "g")])
def test_a_wait_that_had_begun_before_the_trace(until: int, name: str) -> None:
    """The wait ends at ``until``, or goes on."""
    threads = Threads(100, asleep=Looks())
    threads.wanted(Filter(0, 1 << 62, None))
    threads.known(1, 2, "S")
    if until:
        threads.take(at(until, IN))
    threads.finish(1000)
    length = (until or 1000) - 100
    assert waits_of(threads) == {("interruptible", name, not until): [length, 1, length, length]}


def test_a_wait() -> None:
    threads, account = taken(
        at(200, SWITCH, F, "interruptible"), at(210, OUT), at(300, IN),
        at(400, SWITCH, F, "interruptible"), at(410, OUT), at(450, IN), letter="R",
    )  # fmt: skip
    assert waits_of(threads) == {("interruptible", "f", False): [150, 2, 50, 100]}
    assert (account.on_cpu, account.switches, account.exited) == (100 + 100 + 550, 2, False)
    assert threads.names == {2: "name"}


def test_a_switch_without_its_state() -> None:
    threads, account = taken(
        at(200, SWITCH, F), at(210, OUT), at(300, IN), at(400, SWITCH, G), at(410, PREEMPTED), at(450, IN), letter="R"
    )
    assert waits_of(threads) == {
        ("other", "f", False): [100, 1, 100, 100],
        ("runnable-preempted", "g", False): [50, 1, 50, 50],
    }
    assert account.runnable == 50


def test_a_wait_that_began_before_and_one_that_goes_on() -> None:
    threads, account = taken(at(300, IN), at(400, SWITCH, F, "uninterruptible"), letter="S")
    assert waits_of(threads) == {
        ("interruptible", "[no stack]", False): [200, 1, 200, 200],
        ("uninterruptible", "f", True): [600, 1, 600, 600],
    }
    assert account.blocked == {"interruptible": 200, "uninterruptible": 600}


def test_nothing_was_reported() -> None:
    threads, account = taken(letter="S")
    assert waits_of(threads) == {("interruptible", "[no stack]", True): [900, 1, 900, 900]}
    _, account = taken(letter="R")
    assert account.on_cpu == 900


def test_states_that_changed_as_the_trace_began() -> None:
    _, account = taken(at(200, SWITCH, F, ""), letter="S")
    assert (account.on_cpu, account.runnable) == (100, 800)
    _, account = taken(at(200, IN), letter="R")
    assert (account.runnable, account.on_cpu) == (100, 800)


def test_a_lost_switch_is_told() -> None:
    threads, _ = taken(at(200, SWITCH, F, ""), at(300, SWITCH, G, ""), at(400, IN), at(500, IN), letter="R")
    assert threads.lost["intervals"] == 2
    assert waits_of(threads)["other", "[lost]", False][:2] == [200, 2]


def test_a_switch_whose_sample_was_lost_is_told() -> None:
    records = [at(200, OUT), at(300, IN), at(400, PREEMPTED), at(450, IN)]
    threads, _ = taken(*records, letter="R", waits=Filter(0, 1000, None))
    assert threads.lost["stacks"] == 1, "the first one may have been before the trace"
    assert waits_of(threads)["runnable-preempted", "[lost]", False][:2] == [50, 1]
    assert threads.taken == 4
    threads, _ = taken(*records, letter="R")
    assert threads.lost["stacks"] == 0, "without waits, no switch is sampled"


def test_a_new_thread_and_its_end() -> None:
    threads, account = taken(at(150, FORK), at(200, IN), at(500, EXIT))
    assert (account.began, account.ended, account.exited, account.created) == (150, 500, True, True)
    assert waits_of(threads) == {("runnable-woken", "[not started]", False): [50, 1, 50, 50]}
    _, account = taken(at(150, IN), at(300, SWITCH, F, "ended"))
    assert (account.began, account.ended, account.exited) == (150, 300, True)


def test_filters() -> None:
    records = [at(200, SWITCH, F, "interruptible"), at(300, IN), at(400, SWITCH, F, "uninterruptible"), at(450, IN)]
    threads, account = taken(*records, letter="R", waits=Filter(60, 1000, None))
    assert list(waits_of(threads)) == [("interruptible", "f", False)]
    assert account.blocked.total() == 150
    threads, _ = taken(*records, letter="R", waits=Filter(0, 1000, {"uninterruptible"}))
    assert list(waits_of(threads)) == [("uninterruptible", "f", False)]


def test_samples_share_the_time() -> None:
    threads, _ = taken(at(200, SAMPLE, F), at(300, SAMPLE, F, number=5), at(400, SAMPLE, G), letter="R")
    assert {place.stack: row for place, row in threads.running(None).items()} == {F: (600, 2), G: (300, 1)}
    assert {place.stack[0].name: row for place, row in threads.running(100).items()} == {
        "f": (200, 2), "g": (100, 1), "[not sampled]": (600, 0),
    }  # fmt: skip
    assert {place.stack: row for place, row in threads.counted().items()} == {F: (6, 2), G: (1, 1)}


def test_time_without_samples_is_told() -> None:
    threads, _ = taken(letter="R")
    assert {place.stack[0].name: row for place, row in threads.running(None).items()} == {"[not sampled]": (900, 0)}


def test_losses() -> None:
    threads, _ = taken(at(0, DROPPED, number=7), at(0, BAD, number=0), letter="R")
    assert (threads.lost["events"], threads.lost["lines not understood"]) == (7, 1)


def test_what_was_before_the_trace_does_not_count() -> None:
    _, account = taken(at(50, SWITCH, F, "interruptible"), letter="R")
    assert account.on_cpu == 900


@pytest.mark.parametrize("seed", range(30))
def test_times_always_fill_a_threads_life(seed: int) -> None:
    """Times fill a life whatever was lost: `taken` checks it."""
    choose = random.Random(seed)
    time, records = 100, []
    for _ in range(40):
        time += choose.randrange(1, 20)
        kind = choose.choice([IN, OUT, SWITCH, PREEMPTED, SAMPLE])
        records.append(at(time, kind, F, choose.choice([None, "", "interruptible"])))
    taken(*records, letter=choose.choice(["R", "S"]))


def test_what_a_command_did_before_it_began() -> None:
    threads = Threads(100, launched=2)
    threads.known(1, 2, "S")
    for record in (at(200, IN), at(250, SAMPLE, G), at(300, EXEC), at(400, SWITCH, F, "interruptible"), at(450, EXEC)):
        threads.take(record if record.time < 450 else record._replace(tid=3))
    (account,) = threads.finish(1000)
    assert (account.began, account.on_cpu, account.blocked) == (300, 100, {"interruptible": 600})
    assert waits_of(threads) == {("interruptible", "f", True): [600, 1, 600, 600]}
    assert {place.stack[0].name for place in threads.running(None)} == {"[not sampled]"}


def test_records_after_the_end_do_not_count() -> None:
    threads = Threads(100)
    threads.known(1, 2, "R")
    threads.ended = 500
    threads.take(at(600, SWITCH, F, "interruptible"))
    (account,) = threads.finish(500)
    assert account.on_cpu == 400


def test_names() -> None:
    """Names that perf reads from /proc itself count for threads that nobody knows; what changes counts for all."""
    threads = Threads(100)
    threads.known(1, 2, "S")
    threads.names[2] = ""
    for tid, name in ((2, "Umask:\t0022"), (3, "new"), (2, "Umask:\t0022")):
        threads.take(at(200, IN)._replace(tid=tid, comm=name))
    assert threads.names == {2: "", 3: "new"}
    for tid in (2, 3):
        threads.take(at(300, SWITCH, F)._replace(tid=tid, comm="later"))
    assert threads.names == {2: "later", 3: "later"}


def delayed(*records: Record, looks: dict[int, int], waits: Filter | None = None, letter: str = "R") -> Threads:
    """Threads as `taken` makes them, with what the kernel had counted at these times."""
    threads = Threads(100)
    if waits:
        threads.wanted(waits)
    threads.known(1, 2, letter)
    for time, counted in looks.items():
        threads.look(time, {2: (0, counted), 77: (0, 5)})
    for record in records:
        threads.take(record)
    (account,) = threads.finish(1000)
    assert account.on_cpu + account.runnable + account.blocked.total() == 900
    if not waits:
        assert sum(row[0] for row in threads.waits().values()) == account.runnable + account.blocked.total()
        assert sum(row[0] for place, row in threads.waits().items() if "runnable" in place.state) == account.runnable
    return threads


WAITS = (
    at(200, SWITCH, F, "interruptible"), at(300, IN), at(310, SWITCH, F, "interruptible"), at(400, IN),
    at(410, SWITCH, G, "uninterruptible"), at(420, IN), at(500, SWITCH, F, ""), at(550, IN),
    at(900, SWITCH, F, "interruptible"),
)  # fmt: skip


def test_waits_for_a_core_after_waits() -> None:
    """90 ns of them, 30 after each wait: but one took only 10. What is preempted is known, and what is open goes on."""
    assert waits_of(delayed(*WAITS, looks={100: 1000, 1000: 1140})) == {
        ("interruptible", "f", False): [110, 2, 55, 100],
        ("runnable-woken", "f", False): [80, 2, 40, 40],
        ("uninterruptible", "g", False): [0, 1, 0, 10],
        ("runnable-woken", "g", False): [10, 1, 10, 10],
        ("runnable-preempted", "f", False): [50, 1, 50, 50],
        ("interruptible", "f", True): [100, 1, 100, 100],
    }


@pytest.mark.parametrize("looks", [{}, {100: 7}, {100: 7, 1000: 57}, {100: 7, 1000: 7}])
def test_nothing_was_waited_for_or_nothing_is_known(looks: dict[int, int]) -> None:
    found = waits_of(delayed(*WAITS, looks=looks))
    assert found == waits_of(delayed(*WAITS, looks={}))
    assert ("runnable-woken", "f", False) not in found


def test_the_last_look_at_a_thread_counts() -> None:
    """Nothing is known of what came later: preemptions after the look are not in it."""
    found = waits_of(delayed(*WAITS, looks={100: 0, 450: 40}))
    assert (found["runnable-woken", "f", False][0], found["runnable-woken", "g", False][0]) == (30, 10)


def test_no_more_than_the_waits_took() -> None:
    found = waits_of(delayed(*WAITS, looks={100: 0, 1000: 5000}))
    assert found["runnable-woken", "f", False][0] == 190
    assert found["interruptible", "f", True][0] == 100


def test_filters_and_waits_for_a_core() -> None:
    looks = {100: 0, 1000: 140}
    long = waits_of(delayed(*WAITS, looks=looks, waits=Filter(95, 1000, None)))
    assert long["interruptible", "f", False] == [60, 1, 60, 100], "half of the place's waits, and of what they waited"
    assert long["runnable-woken", "f", False] == [40, 1, 40, 40]
    only = waits_of(delayed(*WAITS, looks=looks, waits=Filter(0, 1000, {"runnable-woken"})))
    assert only == {
        ("runnable-woken", "f", False): [80, 2, 40, 40],
        ("runnable-woken", "g", False): [10, 1, 10, 10],
    }
    none = waits_of(delayed(*WAITS, looks=looks, waits=Filter(0, 1000, {"interruptible"})))
    assert {state for state, *_ in none} == {"interruptible"}
    assert none["interruptible", "f", False][0] == 110


def test_of_which_threads_it_is_known() -> None:
    assert delayed(*WAITS, looks={100: 0}).without_delays() == 0
    assert delayed(*WAITS, looks={}).without_delays() == 1
    assert delayed(looks={}, letter="S").without_delays() == 0, "no wait has ended"


def test_a_new_thread_has_waited_for_nothing_before() -> None:
    """The thread's first wait for a core, which is known, is among what the kernel counts."""
    threads = Threads(100)
    threads.look(450, {2: (0, 90)})
    records = at(150, FORK), at(200, IN), at(300, SWITCH, F, "interruptible"), at(400, IN), at(500, EXIT)
    for record in records:
        threads.take(record)
    (account,) = threads.finish(1000)
    assert (account.runnable, account.blocked.total(), account.on_cpu) == (90, 60, 200)
    assert waits_of(threads)["runnable-woken", "f", False] == [40, 1, 40, 40]


def test_a_command_begins_with_what_it_had_waited_for() -> None:
    threads = Threads(100, launched=2)
    threads.known(1, 2, "S")
    threads.look(100, {2: (0, 500)})
    threads.look(1000, {2: (0, 530)})
    for record in (at(200, IN), at(300, EXEC), at(400, SWITCH, F, "interruptible"), at(500, IN)):
        threads.take(record)
    (account,) = threads.finish(1000)
    assert (account.runnable, account.blocked.total()) == (30, 70)
