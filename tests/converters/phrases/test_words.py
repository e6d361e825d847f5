from __future__ import annotations

from dataclasses import replace

import pytest
from stallscope.converters.model import ThreadTimes
from stallscope.converters.phrases.words import Phrases, chain
from stallscope.converters.rules.finding import Finding
from summary_profiles import place_of

MS = 1_000_000


def thread(pid: int, tid: int, name: str = "w", process: str = "app") -> ThreadTimes:
    return ThreadTimes(pid, process, tid, name, 10 * MS, 0, 0, {})


def phrases(*threads: ThreadTimes) -> Phrases:
    return Phrases({(each.pid, each.tid): each for each in threads})


def waits(*frames: str, kind: str = "peer", kernel: str = "pipe_read") -> Finding:
    place = place_of(frames, kernel)
    return Finding(kind, ((1, 1),), 9 * MS, 10 * MS, (place,), 3, 5 * MS)


def test_whose_time() -> None:
    words = phrases(thread(1, 1), thread(2, 2), thread(1, 5), thread(1, 6), thread(1, 7), thread(3, 9, "io-1"))
    assert words.subject([(3, 9)]) == "the io-* thread of app"
    assert words.subject([(1, 5), (1, 6), (1, 7)]) == "the 3 w threads of app"
    assert words.subject([(1, 6), (1, 5)]) == "the 2 w threads of app (tid 5, 6)"
    assert words.subject([(2, 2)]) == "the main thread of app (pid 2)"
    assert words.subject([(1, 1), (2, 2)]) == "the 2 main threads of app"
    assert words.subject([(1, 1), (1, 5), (3, 9)]) == "3 threads of app (main, w, io-*)"


def test_ranks_of_a_job() -> None:
    threads = {(pid, pid): thread(pid, pid) for pid in range(10, 18)}
    words = Phrases(threads, {pid: pid - 10 for pid in range(10, 18)})
    mains = list(threads)
    assert words.subject(mains) == "the 8 main threads of app"
    assert words.subject(mains[1:]) == "7 of the 8 main threads of app (ranks 1-7)"
    assert words.subject(mains[:1]) == "the main thread of app (rank 0; pid 10)"
    assert Phrases(threads, {10: 0}).subject(mains[:2]) == "the 2 main threads of app (pid 10, 11)"


def test_some_of_many() -> None:
    words = phrases(*(thread(1, tid) for tid in range(10, 22)))
    assert words.subject([(1, tid) for tid in range(10, 18)]) == "8 of the 12 w threads of app"


@pytest.mark.parametrize(
    ("threads", "most", "told"),
    [
        (2, 70, ""),
        (2, 80, "; 80.0 % of it in pid 1 alone"),
        (4, 59, ""),
        (4, 60, "; 60.0 % of it in pid 1 alone"),
        (4, 0, ""),
    ],
)
def test_the_one_that_has_most_of_the_time(threads: int, most: int, told: str) -> None:
    place = place_of(("main", "nap"), "pipe_read")
    ids = tuple((pid, pid) for pid in range(1, threads + 1))
    finding = Finding("sleep", ids, 100, 200, (place,), 3, 5, most=most)
    sentence = phrases(*(thread(*each) for each in ids)).sentence(finding)
    assert sentence.endswith(f"max 5 ns{told}).")
    other = replace(finding, threads=((1, 7), *ids[1:]))
    words = phrases(thread(1, 7), *(thread(*each) for each in ids[1:])).sentence(other)
    assert words.endswith(f"max 5 ns{told.replace('pid 1', 'tid 7')}).")


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (waits("main", "query", "recv"), "spent waiting for its peer in main → query → recv"),
        (waits("main", "join", kind="thread"), "spent waiting for another thread in main → join"),
        (waits("main", "wait4", kind="child"), "spent waiting for a process to end in main → wait4"),
        (waits("main", "poll", kind="events"), "spent waiting in main → poll"),
        (waits("main", "nap", kind="sleep"), "spent sleeping in main → nap"),
        (waits("main", "fsync", kind="held"), "blocked in main → fsync, waiting in pipe_read"),
        (
            waits("main", "open", kind="held", kernel="request_wait_answer"),
            "blocked in main → open, waiting in request_wait_answer (the server of a FUSE file system)",
        ),
        (waits("main", kind="stopped"), "lost: stopped in main"),
        (waits(kind="held", kernel="kjournald2"), "blocked, waiting in kjournald2"),
        (
            waits("[python3.11]", "take_gil", kind="lock", kernel="futex_wait"),
            "blocked on Python's interpreter lock (GIL) in [python3.11] → take_gil",
        ),
        (
            waits("save", "sqlite3InvokeBusyHandler", "usleep", kind="lock", kernel="do_nanosleep"),
            "blocked on a lock of an SQLite database in save → sqlite3InvokeBusyHandler → usleep",
        ),
    ],
)
def test_what_the_time_is_spent_on(finding: Finding, expected: str) -> None:
    sentence = phrases(thread(1, 1)).sentence(finding)
    assert (
        sentence == f"90.0 % of the time of the main thread of app is {expected} (3 waits, mean 3.00 ms, max 5.00 ms)."
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sleep", "sleeps for 90.0 % of its time in main → f"),
        ("peer", "waits for its peer for 90.0 % of its time in main → f"),
        ("thread", "waits for another thread for 90.0 % of its time in main → f"),
        ("held", "is blocked for 90.0 % of its time in main → f"),
        ("stopped", "is stopped for 90.0 % of its time"),
    ],
)
def test_meanwhile(kind: str, expected: str) -> None:
    sentence = phrases(thread(1, 1)).sentence(waits("main", "g"), waits("main", "f", kind=kind))
    assert sentence.endswith(f"; meanwhile the main thread {expected}.")


def test_waits_that_were_not_counted() -> None:
    """Nothing is known of samples but the time."""
    finding = replace(waits("main", "nap"), count=0)
    assert phrases(thread(1, 1)).sentence(finding).endswith("in main → nap.")
    both = replace(finding, threads=((1, 5), (1, 6)), most=8 * MS)
    sentence = phrases(thread(1, 5), thread(1, 6)).sentence(both)
    assert sentence.endswith("in main → nap (88.9 % of it in tid 5 alone).")


@pytest.mark.parametrize(
    ("asked_by", "told"),
    [
        ({2}, "for which proxy waits"),
        ({2, 4}, "for which proxy and cache wait"),
        ({1}, "for which other threads of app wait"),
    ],
)
def test_meanwhile_behind_another_process(asked_by: set[int], told: str) -> None:
    words = phrases(
        thread(1, 1), thread(2, 2, process="proxy"), thread(3, 3, process="server"), thread(4, 4, process="cache")
    )
    cause = replace(waits("serve", "nap", kind="sleep"), threads=((3, 3),), asked_by=frozenset(asked_by))
    assert f"; meanwhile the main thread of server, {told}, sleeps for 90.0 %" in words.sentence(waits("recv"), cause)


def test_meanwhile_in_another_process() -> None:
    words = phrases(thread(1, 1, "a", "client"), thread(2, 2, "a", "server"))
    place = waits("main").places
    sentence = words.sentence(waits("g"), Finding("stopped", ((2, 2),), MS, MS, place))
    assert sentence.endswith("; meanwhile the main thread of server is stopped for 100.0 % of its time.")


def test_threads_that_run() -> None:
    running = Finding("cpu", ((1, 5), (1, 6)), 15 * MS, 20 * MS, runnable=5 * MS)
    words = phrases(thread(1, 5), thread(1, 6))
    assert (
        words.sentence(running)
        == "50.0 % of the time of the 2 w threads of app is on a core, 25.0 % is waiting for one."
    )
    starved = Finding("cpu", ((1, 5), (1, 6)), 15 * MS, 20 * MS, runnable=14 * MS)
    assert words.sentence(starved).endswith(" is waiting for a core, 5.0 % is on one.")
    many = phrases(thread(1, 1), thread(1, 5), thread(1, 6)).sentence(waits("main", "f"), running)
    assert many.endswith(
        "; meanwhile the 2 w threads are on a core for 50.0 % of their time, and wait for one for 25.0 %."
    )


def test_ways_to_one_lock_are_told_together() -> None:
    ways = [("work", name, "pthread_mutex_lock") for name in "abcdef"]
    places = tuple(place_of(way, "futex_wait") for way in ways)
    assert chain(Finding("lock", (), 1, 1, places[:1])) == "work → a → pthread_mutex_lock"
    assert chain(Finding("lock", (), 1, 1, places[:2])) == "a, b → pthread_mutex_lock"
    assert chain(Finding("lock", (), 1, 1, places)) == "a, b, c and 3 more names → pthread_mutex_lock"


def test_long_ways_to_one_call_are_told_by_the_longest_and_counted() -> None:
    one, other = ("serve", "load", "openSync", "…", "open"), ("emit", "Open", "…", "uv__fs_work", "open")
    places = tuple(place_of(way, "wait_for_partner") for way in (one, other))
    assert chain(Finding("peer", (), 1, 1, places)) == "serve → load → openSync → … → open, and by 1 other way"


def test_callers_of_one_library_are_told_together() -> None:
    ways = [(name, "store_put", "…", "fdatasync") for name in ("save_order", "save_invoice")]
    places = tuple(place_of(way, "folio_wait_bit", "uninterruptible") for way in ways)
    assert chain(Finding("held", (), 1, 1, places)) == "save_order, save_invoice → store_put → … → fdatasync"


def test_several_functions_of_the_kernel_are_not_one() -> None:
    places = tuple(place_of(("save", "fsync"), name, "uninterruptible") for name in ("folio_wait_bit", "bit_wait_io"))
    sentence = phrases(thread(1, 1)).sentence(Finding("held", ((1, 1),), 9 * MS, 10 * MS, places, 3, 5 * MS))
    assert "is blocked in save → fsync (3 waits" in sentence
