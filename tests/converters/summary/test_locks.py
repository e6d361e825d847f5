"""What is said of locks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lock_profiles import HOSTILE, MS, lock
from stallscope.converters.model import ThreadTimes
from stallscope.converters.model.locks import CONDITION, FUTEX, OWNER, SHARED, WAKER, LockThread
from stallscope.converters.summary.locks import holder_sentence, is_convoy, lock_json, ranked


def test_known_contention_comes_first() -> None:
    told, unknown, known = lock(kind=CONDITION, time=9), lock(kind=FUTEX, time=8), lock(time=1)
    assert ranked([told, unknown, known]) == [known, unknown, told]


def test_convoy_is_long_and_of_many_waits() -> None:
    assert is_convoy(lock(queue=150 * MS, queue_waits=30))
    assert not is_convoy(lock(queue=150 * MS, queue_waits=3))
    assert not is_convoy(lock(queue=50 * MS, queue_waits=300))
    assert not is_convoy(lock(queue=150 * MS, queue_waits=30, kind=CONDITION))


def test_json_has_all_of_it() -> None:
    made = lock_json(lock())
    assert (made["name"], made["contention"], made["mean_ns"]) == ("table+0x40", True, 3 * MS)
    assert made["holders"][0] == {
        "process": "train", "thread": "saver", "pid": 7, "tid": 10, "time_ns": 88 * MS, "waits": 29,
        "known_by": "owner", "frames": ["save", "unlock"],
    }  # fmt: skip
    assert sum(thread["time_ns"] for thread in made["waiters"]) == made["time_ns"]


def threads(wall: int, *pids: int) -> list[ThreadTimes]:
    own = [ThreadTimes(7, "train", tid, "t", wall, 0, 0, {}) for tid in (8, 9, 10)]
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
    asked: list[tuple[int, int]] = []
    told = holder_sentence([lock()], threads(100 * MS), lambda whom: asked.extend(whom) or "; it sleeps")
    assert told.endswith("while its thread saver (tid 10) has it; it sleeps.")
    assert asked == [(7, 10)]
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


def test_hostile_names_survive_json() -> None:
    holder = LockThread(HOSTILE, HOSTILE, 1, 2, frames=(HOSTILE,))
    made = json.loads(json.dumps(lock_json(lock(name=HOSTILE, process=HOSTILE, holders=[holder]))))
    assert "\udcff" not in str(made)
    assert made["name"].startswith("a\x1b[2J")
