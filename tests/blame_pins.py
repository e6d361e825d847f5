"""Pins, as those of pins.py, for who has a lock, and with whom waits end."""

from __future__ import annotations

from stallscope.converters.model import ThreadTimes
from stallscope.converters.model.locks import OWNER, LockThread
from stallscope.converters.model.waits_for import THREAD, Node, waits_for
from stallscope.converters.rules import ends_with, holder
from stallscope.converters.rules.doing import Doings
from summary_profiles import MS, SECOND, facts_of
from verdict_profiles import ending_with_others, locked
from wait_graphs import chained, profile_of

TEN = 10 * SECOND


def ends(x: float) -> bool:
    """Whether it is told with whom this share of what a thread waits for others ends."""
    profile = ending_with_others(round(x * 9 * SECOND), round((1 - x) * 9 * SECOND))
    return bool(ends_with.find(facts_of(profile)))


def matters_for_waits(x: float) -> bool:
    """Threads that wait for others for this share of their time."""
    return bool(ends_with.find(facts_of(ending_with_others(round(x * TEN)))))


def runs_for(x: float) -> str:
    """Kind of what a thread does that runs for this share of the time that another one waits for it."""
    profile = profile_of(chained(7, 7, 800 * MS, ("app-7", 8, "worker")))
    profile.threads.append(ThreadTimes(7, "app", 8, "worker", 2 * SECOND, round(x * 800 * MS), 0, {}))
    found = Doings(waits_for(profile), profile).of({Node(THREAD, 7, 8)}, [(profile.samples[0], 800 * MS)])
    return found.kind if found else ""


def blocked_itself(x: float) -> str:
    """Kind of what those do whose main thread waits for another process for this share of its time."""
    profile = profile_of(chained(7, 7, round(x * SECOND), ("server-9", 9, "server")))
    profile.threads.append(ThreadTimes(7, "app", 7, "app", SECOND, 0, 0, {}))
    found = Doings(waits_for(profile), profile).of({Node(THREAD, 7, 8)})
    return found.kind if found else ""


def has_it(time: float, held: float) -> bool:
    """Seconds for which a thread waits for a lock, and those of them while another one has it."""
    return bool(holder.find(facts_of(locked(round(time * SECOND), round(held * SECOND)))))


def having(x: float) -> bool:
    """Whether a second thread is meant, which alone runs, and has a lock for this share of the time of both."""
    profile = locked()
    profile.threads[0].wall = 2 * TEN  # the main thread is not blocked for long
    (lock,) = profile.locks
    lock.waiters.append(LockThread("other", "other", 9, 9, 1, 1))
    times = {3: 3 * SECOND - round(x * 3 * SECOND), 4: round(x * 3 * SECOND)}
    lock.holders = [LockThread("app", "saver", 1, tid, time, 9, OWNER) for tid, time in times.items()]
    profile.threads += [ThreadTimes(1, "app", 4, "saver", TEN, TEN, 0, {})]
    (verdict,) = holder.find(facts_of(profile))
    assert isinstance(verdict.detail, holder.Holder)
    return verdict.detail.doing is not None and verdict.detail.doing.kind == "runs"
