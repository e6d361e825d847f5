from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from lock_profiles import lock
from stallscope.converters.facts.facts import Beside, Facts, Recorded
from stallscope.converters.facts.thread_roles import roles_of
from stallscope.converters.model import ThreadTimes
from stallscope.converters.model.locks import CONDITION, OWNER, SHARED, WAKER, LockThread, LockTimes
from stallscope.converters.model.waits_for import waits_for
from stallscope.converters.phrases.locks import holder
from stallscope.converters.rules.holder import Holder, find
from summary_profiles import MS
from wait_graphs import profile_of


def holder_sentence(locks: Sequence[LockTimes], of: list[ThreadTimes]) -> str:
    profile = profile_of()
    profile.locks, profile.threads = list(locks), of
    recorded = Recorded(profile, waits_for(profile))
    for verdict in find(Facts({}, {}, roles_of({}, {}), 0, Beside(recorded=recorded))):
        assert isinstance(verdict.detail, Holder)
        return holder(verdict.detail)
    return ""


def threads(wall: int, *pids: int, runs: int = 0) -> list[ThreadTimes]:
    own = [ThreadTimes(7, "train", tid, "t", wall, runs, 0, {}) for tid in (8, 9, 10)]
    return own + [ThreadTimes(pid, "p", pid, "p", wall, 0, 0, {}) for pid in pids]


def test_who_has_the_lock() -> None:
    told = holder_sentence([lock()], threads(100 * MS))
    assert told == (
        "For 45.0 % of their time, 2 threads wait for the mutex table+0x40 of train (7): 97.8 % of that while its "
        "thread saver (tid 10) has it."
    )
    several = [LockThread("train", "saver", 7, tid, 44 * MS, 29, OWNER, ()) for tid in (10, 11)]
    told = holder_sentence([lock(holders=several)], threads(100 * MS))
    assert told.endswith("97.8 % of that while train (pid 7) has it.")
    told = holder_sentence([lock()], threads(100 * MS, runs=60 * MS))
    assert told.endswith("while its thread saver (tid 10) has it; it is on a core for 60.0 % of its own time.")
    janitor = LockThread("janitor", "janitor", 99, 99, 90 * MS, 30, OWNER, ())
    shared = lock(owned_by=SHARED, name="/memfd:x+0x40", holders=[janitor])
    told = holder_sentence([lock(kind=CONDITION, time=900 * MS), shared], threads(100 * MS))
    assert "the mutex /memfd:x+0x40 of several processes: 100.0 % of that while janitor (pid 99, not traced)" in told
    assert "(pid 99) has it" in holder_sentence([shared], threads(100 * MS, 99))


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": CONDITION},
        {"time": 30 * MS},  # little of the threads' time
        {"holders": [LockThread("train", "saver", 7, 10, 88 * MS, 29, WAKER)]},  # the other sentence tells of wakers
        {"holders": [LockThread("train", "saver", 7, 10, 40 * MS, 29, OWNER)]},
        {"holders": []},
    ],
)
def test_nobody_is_said_to_have_it(fields: dict[str, Any]) -> None:
    assert holder_sentence([lock(**fields)], threads(100 * MS)) == ""
    assert holder_sentence([], threads(100 * MS)) == ""
