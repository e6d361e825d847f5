from __future__ import annotations

import pytest
from stallscope.converters.facts import thresholds
from stallscope.converters.model import Module, Profile
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules import calm, held_up
from stallscope.converters.rules.ranking import judge
from summary_profiles import EXE, LIBC, MS, READ, SECOND, Tracee, facts_of, kernel, user
from verdict_profiles import LOCK, calm_host, one, whole_host

TEN = 10 * SECOND
PQ = Module("/usr/lib/libpq.so.5")


def first(profile: Profile) -> str:
    judgement = judge(facts_of(profile))
    return judgement.first.rule if judgement.first else ""


def test_a_shell_that_waits_for_its_child_is_no_trouble() -> None:
    facts = facts_of(calm_host())
    judgement = judge(facts)
    assert judgement.first
    assert judgement.second is None
    told = Sentences(facts).of(judgement.first)
    assert told == "Nothing is held up: the 3 processes use 0.01 cores together, and wait for work."


def test_a_lasting_wait_for_a_disk_comes_first() -> None:
    assert first(calm_host(held=TEN // 2)) == held_up.RULE


def test_of_a_single_process() -> None:
    facts = facts_of(whole_host(one(READ, TEN, runs=MS, count=3)))
    (verdict,) = calm.find(facts)
    assert Sentences(facts).of(verdict).startswith("Nothing is held up: the process uses 0.00 cores, and waits")


def test_only_of_a_whole_host() -> None:
    profile = calm_host()
    profile.threads = [times for times in profile.threads if times.process != "kworker"]
    profile.samples = [sample for sample in profile.samples if sample.label("process") != "kworker"]
    assert not facts_of(profile).is_whole_host
    assert not calm.find(facts_of(profile))


@pytest.mark.parametrize(("held", "is_calm"), [(0.049, True), (0.051, False)])
def test_what_is_blocked_by_a_disk_is_held_up(held: float, is_calm: bool) -> None:
    assert bool(calm.find(facts_of(calm_host(held=round(held * TEN))))) == is_calm


def test_who_never_gets_a_lock_is_held_up() -> None:
    profile = calm_host()
    Tracee(profile, 6, "stuck", 6, "stuck").wait(LOCK, "interruptible", TEN, 1)
    assert not calm.find(facts_of(profile))


def test_a_client_of_one_that_sleeps_is_held_up() -> None:
    """A server that sleeps while its client waits for an answer: nothing runs, and yet it is slow."""
    profile = calm_host()
    recv = (*user(EXE, "main", "query"), *user(PQ, "PQexec"), *user(LIBC, "poll"), *kernel("do_sys_poll"))
    Tracee(profile, 7, "client", 7, "client").run(5 * MS).wait(recv, "interruptible", TEN - 5 * MS, 900)
    facts = facts_of(profile)
    assert not calm.find(facts)
    assert first(profile) == "for-others"


def runs(cores: float) -> bool:
    return bool(calm.find(facts_of(calm_host(runs=round(cores * TEN) - MS))))


def test_the_limit() -> None:
    assert runs(thresholds.CALM_CORES)
    assert not runs(thresholds.CALM_CORES + 0.001)
