"""Texts on locks."""

from __future__ import annotations

import json

from lock_profiles import HOSTILE, MS, lock
from stallscope.converters.facts.locks import is_convoy, lock_json, ranked
from stallscope.converters.model.locks import CONDITION, FUTEX, LockThread


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


def test_hostile_names_survive_json() -> None:
    holder = LockThread(HOSTILE, HOSTILE, 1, 2, frames=(HOSTILE,))
    made = json.loads(json.dumps(lock_json(lock(name=HOSTILE, process=HOSTILE, holders=[holder]))))
    assert "\udcff" not in str(made)
    assert made["name"].startswith("a\x1b[2J")
