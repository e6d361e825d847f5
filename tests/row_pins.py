"""Rows of tables about profiles made by hand, by the quantity that a threshold is compared with. See pins.py."""

from __future__ import annotations

import io
from dataclasses import replace

from processes import process as add_process
from processes import profile as no_waits
from processes import threads as add_threads
from rich.console import Console
from said_pins import work
from stallscope.converters.facts.contention import contention_of
from stallscope.converters.facts.wakers import Waker, WokenBy
from stallscope.converters.model import Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.sites import Site
from stallscope.converters.model.steps import Spent, StepWait
from stallscope.converters.model.waits_for import waits_for
from stallscope.converters.summary.contention_table import rows as contention_rows
from stallscope.converters.summary.fitting import Parts, shows_running
from stallscope.converters.summary.render import render
from stallscope.converters.summary.steps import steps_of
from stallscope.converters.summary.steps_table import steps_tables
from stallscope.converters.summary.summarize import summarize
from stallscope.converters.summary.waits_for import Blocking, blocking_of
from stallscope.converters.summary.waits_for_table import blocking_blocks
from step_traces import recorded
from summary_profiles import (
    EXE,
    MS,
    READ,
    SECOND,
    SPIN,
    Tracee,
    empty,
    user,
)
from summary_texts import shown
from verdict_profiles import one
from wait_graphs import chained, profile_of

TEN = 10 * SECOND


def printed(*blocks: object) -> str:
    out = io.StringIO()
    for block in blocks:
        Console(file=out, width=300, markup=False).print(block)
    return out.getvalue()


def has_row(x: float) -> bool:
    """Whether a wait with this share of all time has a row of its own."""
    profile = one(READ, round((0.9 - x) * TEN), runs=SECOND)
    profile.threads[0].wall = TEN
    profile.samples += one((*user(EXE, "main", "tiny"), *READ[1:]), round(x * TEN)).samples
    return "tiny" in shown(profile, width=200, top=9)


def running_row(x: float) -> bool:
    """Whether what has so many samples has a row."""
    profile = Profile([ValueType("on-cpu", "nanoseconds"), ValueType("samples", "count")], duration_ns=TEN)
    labels = ("pid", 7), ("process", "p"), ("state", "running"), ("thread", "p"), ("tid", 7)
    for name, samples in (("look", 900), ("tiny", round(x))):
        profile.samples.append(Sample(user(EXE, "main", name), (samples * MS, samples), labels))
    profile.threads.append(ThreadTimes(7, "p", 7, "p", TEN, SECOND, 0, {"interruptible": 9 * SECOND}))
    return "tiny" in shown(profile, width=200, top=9)


def names_lost_in(x: float) -> bool:
    """Whether the row of a wait for a core names the place where this share of it began, beside eight others."""
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(SPIN, "runnable-preempted", round(x * SECOND), 9)
    for i in range(8):
        main.wait(user(EXE, "main", f"f{i}"), "runnable-preempted", round((1 - x) * SECOND / 8), 9)
    return "of it in" in shown(profile, width=200).partition("Where (")[2]


def names_waker(x: float) -> bool:
    """Whether the waker of this share of a wait is named in its row."""
    summary = summarize(one(READ, 9 * SECOND, runs=SECOND))
    wakers = tuple(WokenBy(Waker(name, "", ()), round(time * 9 * SECOND)) for name, time in (("a", 1 - x), ("tiny", x)))
    out = io.StringIO()
    render(replace(summary, waits=(replace(summary.waits[0], woken_by=wakers),)), out, width=200)
    return "tiny" in out.getvalue()


def ended_by(*pids: int, x: float = 0.5) -> Blocking:
    """Processes that wait for disk for this share of their waits, and for the network for the rest."""
    samples = [
        chained(pid, pid, round(time * 1_000), (name, 0, ""))
        for pid in pids
        for name, time in (("[disk 8:0]", x), ("[timer]", 1 - x))
    ]
    return blocking_of(waits_for(profile_of(*samples)), set())


def names_blocker(x: float) -> bool:
    lines = printed(*blocking_blocks(ended_by(7, 8, x=x), with_matrix=False)).splitlines()
    return any("blocked by" in line and "disk" in line for line in lines)


def has_matrix(x: float) -> bool:
    return "Shares of all waiting" in printed(*blocking_blocks(ended_by(*range(7, 7 + round(x)))))


def runs_in_table(x: float) -> bool:
    """Whether what runs for this share of the time has a table where lines are few."""
    summary = summarize(one(READ, round((1 - x) * TEN), runs=round(x * TEN)))
    return shows_running(replace(summary, running=(work(("spin",), 99),)), Parts(running=False))


def contention_row(x: float) -> bool:
    made = no_waits()
    add_process(made, 7, "train")
    add_threads(made, 7, "train", "w", on_cpu=round(x * TEN), wall=TEN)
    return bool(contention_rows(contention_of(made)))


def tells_unfinished(x: float) -> bool:
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(READ, "interruptible", round((0.9 - x) * TEN), 9)
    main.wait(READ, "interruptible", round(x * TEN), still=True)
    return "had not ended" in shown(profile, width=200)


def step_row(x: float) -> bool:
    """Whether a wait with this share of a loop has a row."""
    steps = steps_of(recorded())[0]
    wait = StepWait(Site(("main", "tiny"), ""), round(x * TEN), 1)
    steps = replace(steps, steps=Spent(1, TEN, TEN, 0, (wait,)), between=Spent(0, 0, 0, 0))
    return "tiny" in printed(*steps_tables([steps], 5))
