"""Calls and locks for which several wait at the same time."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from file_lock_profiles import SEEN
from host_profiles import in_queue
from lock_profiles import HOSTILE, lock
from stallscope.converters.model.file_locks import FileLock
from stallscope.converters.model.locks import CONDITION, KERNEL, OTHER_LOCKS, LockTimes
from stallscope.converters.model.sharing import SharedCall
from stallscope.converters.scan.contended import CALL, FILE_LOCK, LOCK, Contended, contended, lines
from stallscope.converters.summary.sharing import Shared
from summary_profiles import MS, SECOND

TEN = 10 * SECOND


def of_locks(*locks: LockTimes) -> tuple[Contended, ...]:
    return contended((), locks, (), TEN)


def waits_for(pid: int, **fields: int) -> FileLock:
    return replace(SEEN, pid=pid, **fields)


def test_a_lock_that_others_slow_down() -> None:
    (found,) = of_locks(lock(**in_queue()))
    assert (found.kind, found.name, found.waiters) == (LOCK, "mutex table+0x40 of train (7)", 2)
    assert found.factor == pytest.approx((2_890 / 200) / (110 / 30))
    assert found.inside == 3
    assert lines([found], TEN) == [
        "Mutex table+0x40 of train (7): 2 threads waited 3.00 s, 3.0 at a time; with others a wait takes 3.9 times as "
        "long as alone."
    ]


def test_of_few_that_were_alone_it_is_the_number_at_a_time() -> None:
    """Nine of them do not tell how long a wait takes alone."""
    (found,) = of_locks(lock(**in_queue(alone=9)))
    assert (found.known_alone, found.factor, found.alone) == (False, 3, None)
    assert lines([found], TEN) == ["Mutex table+0x40 of train (7): 2 threads waited 3.00 s, 3.0 at a time."]


def test_a_lock_of_the_kernel() -> None:
    (found,) = of_locks(lock(**in_queue(name="i_rwsem", kind="rwsem", owned_by=KERNEL, process="", pid=0)))
    assert lines([found], TEN)[0].startswith("Kernel's rwsem i_rwsem: ")


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": CONDITION},
        {"name": OTHER_LOCKS},
        {"judged": 0, "judged_time": 0, "alone": 0, "alone_time": 0, "busy": 0},
        {"judged": 30, "judged_time": 110 * MS},
    ],
    ids=["no contention", "several locks", "not known", "all alone"],
)
def test_what_has_no_factor(fields: dict[str, object]) -> None:
    assert of_locks(lock(**in_queue(**fields))) == ()


def test_short_waits_and_small_factors_are_not_told() -> None:
    near = of_locks(lock(**in_queue(time=499 * MS)), lock(**in_queue(judged_time=1_400 * MS)))
    assert len(near) == 2
    assert lines(near, TEN) == []


def test_locks_of_files() -> None:
    seen = [waits_for(pid, busy=8, waiting=20) for pid in (1, 2)] + [waits_for(3, first=99, busy=5, waiting=5)]
    (found,) = contended((), (), seen, TEN)
    assert (found.kind, found.time, found.count, found.waiters, found.factor) == (FILE_LOCK, 20 * SECOND, 0, 2, 2.5)
    assert lines([found], TEN) == [
        "Lock on /srv/db.lock (flock): 2 processes waited, one at least for 80.0 % of the time, 2.5 at a time."
    ]


def test_old_captures_and_single_looks_tell_nothing_of_files() -> None:
    assert contended((), (), [SEEN, waits_for(2, inode=1, busy=1, waiting=3)], TEN) == ()


def test_calls_are_rows_and_no_lines() -> None:
    call = SharedCall("A", "/dev/x", 2 * SECOND, SECOND, 5 * SECOND, 80, 4 * SECOND, 20, SECOND // 10)
    found = contended([Shared(call, {})], [lock(**in_queue())], (), TEN)
    assert [each.kind for each in found] == [CALL, LOCK], "the longest time first"
    assert found[0].factor == call.factor
    assert lines(found, TEN)[0].startswith("Mutex")


def test_json_of_hostile_names() -> None:
    found = of_locks(lock(**in_queue(name=HOSTILE, process=HOSTILE)), lock(**in_queue(alone=0, alone_time=0)))
    data = [each.to_json() for each in found]
    assert json.loads(json.dumps(data, ensure_ascii=False).encode()) == data
    assert {each["alone_mean_ns"] for each in data} == {None, 3_666_667}
