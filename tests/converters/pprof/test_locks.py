"""Locks in a saved profile."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from file_lock_profiles import SEEN
from lock_profiles import HOSTILE, lock
from stallscope.converters import pprof
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.file_locks import LockAsker
from stallscope.converters.model.gil import GilThread, GilTimes
from stallscope.converters.pprof import metadata
from stallscope.converters.pprof.locks import decoded, decoded_gil


def test_locks_survive() -> None:
    locks = [lock(), lock(name=HOSTILE, holders=[], places=[])]
    file = io.BytesIO()
    pprof.save(Profile([ValueType("blocked", "nanoseconds")], locks=locks), file)
    file.seek(0)
    assert pprof.load(file).locks == locks


def test_profiles_saved_before_there_was_a_field() -> None:
    entry = asdict(lock())
    del entry["taken_in"]
    assert decoded(entry) == lock()
    del entry["name"]
    with pytest.raises(ValueError, match="lock"):
        decoded(entry)


@pytest.mark.parametrize(
    "changed",
    [
        {"time": -1},
        {"time": True},
        {"time": 1 << 64},
        {"name": 5},
        {"waiters": "x"},
        {"waiters": [{"process": "x"}]},
        {"holders": [[]]},
        {"places": [{"frames": [1], "time": 0, "waits": 0}]},
        {"places": [{"frames": "ab", "time": 0, "waits": 0}]},
        {"more": 1},
    ],
)
def test_what_others_have_changed_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"lock|list expected"):
        decoded({**asdict(lock()), **changed})


def gil() -> GilTimes:
    waiters = [GilThread(HOSTILE, 8, 40, 2)]
    return GilTimes(HOSTILE, 7, 40, 2, 30, 1, 5, waiters, 3, [GilThread("x", 9, 35, 1, ("main", HOSTILE))], 2)


def test_waits_for_the_interpreter_lock_survive() -> None:
    file = io.BytesIO()
    pprof.save(Profile([ValueType("blocked", "nanoseconds")], gil=[gil()]), file)
    file.seek(0)
    assert pprof.load(file).gil == [gil()]


@pytest.mark.parametrize("changed", [{"time": -1}, {"holders": [{"thread": "x"}]}, {"waiters": 5}, {"more": 1}])
def test_waits_for_the_interpreter_lock_that_others_have_changed(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"lock|list expected"):
        decoded_gil({**asdict(gil()), **changed})


def saved(profile: Profile) -> Profile:
    file = io.BytesIO()
    pprof.save(profile, file)
    file.seek(0)
    return pprof.load(file)


def test_locks_on_files_survive() -> None:
    locks = [
        SEEN,
        replace(SEEN, owner=HOSTILE, path=HOSTILE, owner_ended=True, inode=(1 << 64) - 1, askers=[LockAsker(7, 3)]),
    ]
    assert saved(Profile([ValueType("blocked", "nanoseconds")], file_locks=locks)).file_locks == locks
    assert saved(Profile([ValueType("blocked", "nanoseconds")])).file_locks == []


@pytest.mark.parametrize(
    "changed",
    [
        {"pid": -1},
        {"path": 5},
        {"owner_ended": 1},
        {"seen": 1 << 64},
        {"more": 1},
        {"askers": [{"tid": 1}]},
        {"askers": [5]},
    ],
)
def test_locks_on_files_that_others_have_changed(changed: dict[str, Any]) -> None:
    text = json.dumps({"version": 1, "value_types": [], "file_locks": [{**asdict(SEEN), **changed}]})
    with pytest.raises(ValueError, match=r"lock"):
        metadata.decode(text, Profile([]))
