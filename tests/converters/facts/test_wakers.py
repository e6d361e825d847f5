"""Wakers in the summary."""

from __future__ import annotations

import io

from stallscope.converters.facts import thresholds
from stallscope.converters.facts.wakers import Waker, WokenBy, longest
from stallscope.converters.model import Frame, Labels, Profile, Sample, Stack, ThreadTimes, ValueType
from stallscope.converters.model.wakers import SEPARATOR, WAKER
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize
from summary_profiles import EXE, FUTEX, LIBC, MS, VALUE_TYPES, user

WAIT = (*user(EXE, "main", "take_item"), *user(LIBC, "futex"), *FUTEX)
GIVE = (
    *(Frame(name, WAKER) for name in ("try_to_wake_up", "wake_up_q", "futex_wake", "__x64_sys_futex")),
    *(Frame(name, WAKER, EXE) for name in ("give_item", "main")),
)
WHO: Labels = (("pid", 7), ("process", "app"), ("state", "interruptible"), ("thread", "app"), ("tid", 7))
THREADS = [ThreadTimes(7, "app", 7, "app", 100 * MS, 10 * MS, 0, {"interruptible": 90 * MS})]


def by(name: str, stack: Stack, ms: int, count: int = 1, **labels: str | int) -> Sample:
    found: dict[str, str | int] = {**dict(WHO), "waker": name, **labels}
    whole = (*WAIT, SEPARATOR, *stack, Frame(name, WAKER))
    return Sample(whole, (ms * MS, count, MS, ms * MS), tuple(sorted(found.items())))


def alone(*samples: Sample) -> Profile:
    blocked = [ValueType("blocked", "nanoseconds"), *VALUE_TYPES[1:]]
    return Profile(blocked, list(samples), threads=THREADS, duration_ns=100 * MS)


def test_waits_are_told_by_place_and_waker() -> None:
    profile = alone(
        by("maker-12", GIVE, 60, 3, waker_thread="producer", waker_tid=13),
        by("maker-14", GIVE, 20, 1, waker_thread="producer", waker_tid=15),
        by("[timer]", (), 10),
    )
    (wait,) = summarize(profile).waits
    assert wait.frames == ("main", "take_item", "futex")
    assert (wait.time, wait.count) == (90 * MS, 5)
    assert wait.woken_by == (
        WokenBy(Waker("maker", "producer", ("main", "give_item", "futex")), 80 * MS),
        WokenBy(Waker("[timer]", "", ()), 10 * MS),
    )


def test_functions_of_python_are_told() -> None:
    code = "/srv/job/serve.py"
    give = (
        *GIVE[:4],
        Frame("sem_post", WAKER, LIBC),
        Frame("_queue_SimpleQueue_put", WAKER, LIBC._replace(path="/usr/lib/python3.11/lib-dynload/_queue.so")),
        Frame("ThreadPoolExecutor.submit", WAKER, file="/usr/lib/python3.11/concurrent/futures/thread.py", line=175),
        Frame("serve", WAKER, file=code, line=10),
        Frame("<module>", WAKER, file=code, line=19),
    )
    (wait,) = summarize(alone(by("python3-12", give, 60, waker_thread="python3", waker_tid=13))).waits
    (woken,) = wait.woken_by
    assert woken.waker.frames == ("<module>", "serve.py:10 serve", "ThreadPoolExecutor.submit")


def test_nobody_is_blamed_for_what_is_not_known() -> None:
    (wait,) = summarize(alone(by("[still waiting]", (), 60), by("[unknown waker]", (), 30))).waits
    assert wait.time == 90 * MS
    assert wait.woken_by == ()


def test_beside_off_cpu_time_a_wait_counts_once() -> None:
    own = Sample(WAIT, (90 * MS, 4, MS, 60 * MS, 0), WHO)
    woken = by("maker-12", GIVE, 85)._replace(values=(0, 0, 0, 0, 85 * MS))
    columns = [*VALUE_TYPES, ValueType("blocked", "nanoseconds")]
    profile = Profile(columns, [own, woken], threads=THREADS, duration_ns=100 * MS)
    (wait,) = summarize(profile).waits
    assert (wait.time, wait.count, wait.max) == (90 * MS, 4, 60 * MS)
    assert wait.woken_by == (WokenBy(Waker("maker", "", ("main", "give_item", "futex")), 85 * MS),)


def test_printed_and_as_json() -> None:
    summary = summarize(
        alone(by("ma\x1bker-12", GIVE, 81, waker_thread="producer"), by("[timer]", (), 9), by("x-1", (), 1))
    )
    file = io.StringIO()
    render(summary, file, width=200)
    assert r"woken by ma\x1bker (producer) in main → give_item → futex 89.0 %, [timer] 9.9 %" in file.getvalue()
    assert "x 1.1 %" not in file.getvalue()
    (wait,) = summary.to_json()["waits"]
    assert wait["woken_by"][0] == {
        "process": "ma\x1bker",
        "thread": "producer",
        "frames": ["main", "give_item", "futex"],
        "time_ns": 81 * MS,
    }
    assert [entry["process"] for entry in wait["woken_by"]] == ["ma\x1bker", "[timer]", "x"]


def test_only_the_longest_are_kept() -> None:
    times = {Waker(f"p{i:02}", "", ()): i for i in range(2 * thresholds.WAKERS_KEPT)}
    assert [each.time for each in longest(times)] == list(
        range(2 * thresholds.WAKERS_KEPT - 1, thresholds.WAKERS_KEPT - 1, -1)
    )
