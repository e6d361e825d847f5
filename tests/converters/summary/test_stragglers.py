from __future__ import annotations

from stallscope.converters.facts.standing import standing
from stallscope.converters.facts.wait_sums import add_up_waits, merged_threads
from stallscope.converters.model import Profile
from stallscope.converters.summary.findings import Findings
from summary_profiles import EXE, LIBC, MS, SECOND, Tracee, empty, kernel, user

SLEEP = (*user(EXE, "main", "nap"), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))
JOIN = (*user(EXE, "main"), *user(LIBC, "pthread_join"), *kernel("futex_wait"))
BARRIER = (*user(EXE, "worker", "sync"), *user(LIBC, "pthread_barrier_wait"), *kernel("futex_wait"))


def at_a_barrier(last_waits: int) -> Profile:
    """Eight shards; one sleeps for longer, and waits at the barrier for so many ms of 10 s, while others wake."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(JOIN, "interruptible", 10 * SECOND, 1)
    for shard in range(8):
        waits = last_waits if shard == 5 else 8_500
        sleeps = 8_500 if shard == 5 else 1_000
        tracee = Tracee(profile, 1, "app", 10 + shard, f"shard{shard}").run((10_000 - waits - sleeps) * MS)
        tracee.wait(BARRIER, "interruptible", waits * MS, 100).wait(SLEEP, "interruptible", sleeps * MS, 100)
    return profile


def test_who_comes_last_to_a_barrier_waits_there_too() -> None:
    for last_waits in (10, 900):
        profile = at_a_barrier(last_waits)
        threads = merged_threads(profile.threads)
        sums = add_up_waits(profile, threads)
        findings = Findings(sums, threads, standing(sums, threads), profile.duration_ns)
        effect = findings.effects()[0]
        told = findings.cause_of(effect)
        assert told, last_waits
        assert (told.kind, told.threads) == ("sleep", ((1, 15),))
        assert (1, 15) not in findings.without(effect, told).threads
