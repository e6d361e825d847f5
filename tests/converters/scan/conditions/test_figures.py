from __future__ import annotations

import pytest
from stallscope.converters.model import Profile
from stallscope.converters.model.wait_objects import LABEL, TCP, WaitObject
from stallscope.converters.scan.conditions.expression import Quantity
from stallscope.converters.scan.conditions.figures import Figures
from summary_profiles import MS, READ, SECOND, Tracee, empty, facts_of
from verdict_profiles import FSYNC, LOCK


def job() -> Profile:
    """A main thread that runs 2 s and waits 3 s for a disk in 300 waits, with two workers that wait for a lock."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(2 * SECOND).wait(FSYNC, "uninterruptible", 3 * SECOND, 300, most=90 * MS)
    for tid, name in ((2, "io-0"), (3, "cpu-0")):
        worker = Tracee(profile, 1, "app", tid, name).run(SECOND)
        worker.wait(LOCK, "interruptible", 4 * SECOND, 100, most=tid * MS).wait(FSYNC, "runnable-woken", SECOND, 50)
    return profile


def figures(profile: Profile, pid: int = 1, share: float | None = None) -> Figures:
    facts = facts_of(profile)
    return Figures(facts, pid, [thread for thread in facts.own if thread[0] == pid], share)


@pytest.mark.parametrize(
    ("quantity", "value", "whole"),
    [
        (Quantity("running"), 4 * SECOND, 17 * SECOND),
        (Quantity("running", "main"), 2 * SECOND, 5 * SECOND),
        (Quantity("running", "workers"), 2 * SECOND, 12 * SECOND),
        (Quantity("runnable", "workers"), 2 * SECOND, 12 * SECOND),
        (Quantity("blocked"), 11 * SECOND, 17 * SECOND),
        (Quantity("io", "main"), 3 * SECOND, 5 * SECOND),
        (Quantity("io", "workers"), 0, 12 * SECOND),
        (Quantity("lock", "io-*", is_pattern=True), 4 * SECOND, 6 * SECOND),
        (Quantity("idle"), 0, 17 * SECOND),
        (Quantity("longest"), 90 * MS, 0),
        (Quantity("longest", "workers"), 3 * MS, 0),
        (Quantity("waits", "main"), 30, 0),
        (Quantity("waits"), 50, 0),
        (Quantity("cores"), 0.4, 0),
        (Quantity("threads"), 3, 0),
        (Quantity("threads", "io-*", is_pattern=True), 1, 0),
        (Quantity("pid"), 1, 0),
        (Quantity("share"), 0.75, 0),
    ],
)
def test_quantities(quantity: Quantity, value: float, whole: int) -> None:
    assert figures(job(), share=0.75).of(quantity) == (pytest.approx(value), whole)


def test_what_is_not_known_is_none() -> None:
    made = figures(job())
    assert made.of(Quantity("share")) is None
    assert made.of(Quantity("lock", "nobody*", is_pattern=True)) is None
    profile = job()
    for times in profile.threads:
        times.wall = 0
    assert figures(profile).of(Quantity("blocked")) is None


def test_waits_for_work_are_idle_not_blocked() -> None:
    profile = job()
    Tracee(profile, 9, "daemon", 9, "daemon").wait(READ, "interruptible", 10 * SECOND, 1)
    idle = figures(profile, 9)
    assert idle.of(Quantity("blocked", "main")) == (0, 10 * SECOND)
    assert idle.of(Quantity("idle", "main")) == (10 * SECOND, 10 * SECOND)
    assert idle.of(Quantity("peer", "main")) == (0, 10 * SECOND)
    assert idle.of(Quantity("longest")) == (0, 0)


def test_a_process_that_hangs_is_blocked_not_idle() -> None:
    profile = job()
    Tracee(profile, 9, "hangs", 9, "hangs").wait(LOCK, "interruptible", 10 * SECOND, 1)
    hangs = figures(profile, 9)
    assert hangs.of(Quantity("blocked", "main")) == (10 * SECOND, 10 * SECOND)
    assert hangs.of(Quantity("lock", "main")) == (10 * SECOND, 10 * SECOND)
    assert hangs.of(Quantity("longest")) == (10 * SECOND, 0)


def test_network_is_what_is_on_sockets() -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(READ, "interruptible", 9 * SECOND, 900)
    assert figures(profile).of(Quantity("network")) == (0, 10 * SECOND)
    sample = profile.samples[0]
    profile.samples[0] = sample._replace(labels=(*sample.labels, (LABEL, 4)))
    profile.objects = [WaitObject(4, TCP)]
    assert figures(profile).of(Quantity("network")) == (9 * SECOND, 10 * SECOND)
