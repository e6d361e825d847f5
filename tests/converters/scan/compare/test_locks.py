from __future__ import annotations

import json

import pytest
from compare_profiles import run
from lock_profiles import HOSTILE, MS, lock
from stallscope.converters.facts import thresholds
from stallscope.converters.model import Profile
from stallscope.converters.model.locks import CONDITION, KERNEL, OTHER_LOCKS, SHARED, LockPlace, LockTimes
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.scan.compare.comparing import compare
from stallscope.converters.scan.compare.locks import LockChange, row, title
from stallscope.converters.scan.compare.telling import lines, to_json


def having(*locks: LockTimes, pids: tuple[int, ...] = (7,), ranks: tuple[int, ...] = ()) -> Profile:
    """A trace of 10 s with these locks."""
    profile = run(100, pids=pids)
    profile.locks = list(locks)
    profile.processes = [
        ProcessTimes(pid, "train", ranks={"rank": str(rank)}) for pid, rank in zip(pids, ranks, strict=False)
    ]
    return profile


def waited(ms: int, **fields: object) -> LockTimes:
    return lock(time=ms * MS, **fields)


def changes(before: list[Profile], after: list[Profile]) -> tuple[LockChange, ...]:
    return compare(before, after).locks


def test_known_difference() -> None:
    (made,) = changes([having(waited(300, waits=30))], [having(waited(1_500, waits=60))])
    assert (made.before.rate, made.after.rate, made.difference) == pytest.approx((0.03, 0.15, 0.12))
    assert (made.before.frequency, made.after.frequency) == pytest.approx((3, 6))
    assert row(made) == ("0.03", "0.15", "+0.12", "10.0 ms", "25.0 ms", "train: mutex table+0x40")


def test_equal_runs_have_none() -> None:
    assert not changes([having(waited(300))], [having(waited(300))])
    assert not changes([having(waited(300))], [having(waited(300))] * 2), "two runs are twice as long"


def test_runs_that_overlap_have_none() -> None:
    before = [having(waited(ms)) for ms in (100, 200, 600)]
    assert changes(before, [having(waited(ms)) for ms in (700, 800, 900)])
    assert not changes(before, [having(waited(ms)) for ms in (500, 800, 900)])


@pytest.mark.parametrize(("more", "told"), [(-1, False), (1, True)])
def test_smallest_difference(more: int, told: bool) -> None:
    after = 300 + round(10_000 * thresholds.COMPARED_LEAST) + more
    assert bool(changes([having(waited(300))], [having(waited(after))])) is told


def test_a_lock_that_only_one_side_has() -> None:
    (new,) = changes([having()], [having(waited(900))])
    assert row(new)[:5] == ("0.00", "0.09", "+0.09", "-", "30.0 ms")
    (gone,) = changes([having(waited(900))], [having()])
    assert gone.difference == pytest.approx(-0.09)


def test_pids_do_not_matter_and_ranks_do() -> None:
    before = having(waited(300, pid=7), waited(300, pid=8), pids=(7, 8), ranks=(0, 1))
    after = having(waited(300, pid=22), waited(900, pid=21), pids=(22, 21), ranks=(0, 1))
    (made,) = changes([before], [after])
    assert (made.key.rank, made.difference) == (1, pytest.approx(0.06))
    assert title(made.key) == "train (rank 1): mutex table+0x40"


def at(*frames: str) -> list[LockPlace]:
    return [LockPlace(("other",), MS, 1), LockPlace(frames, 90 * MS, 30)]


def test_addresses_differ_from_run_to_run() -> None:
    """Locks without another name are told apart by place, without its lines."""
    before = waited(300, name="0x7f12a0", places=at("train.py:3 step", "take"))
    same = waited(300, name="0x55d3b8", places=at("train.py:9 step", "take"))
    other = waited(300, name="0x55d3b8", places=at("save", "take"))
    assert not changes([having(before)], [having(same)])
    assert {title(each.key) for each in changes([having(before)], [having(other)])} == {
        "train: mutex, taken in step → take",
        "train: mutex, taken in save → take",
    }


def test_locks_of_the_kernel() -> None:
    def own(ms: int, name: str) -> LockTimes:
        return waited(ms, name=name, kind="rwsem", owned_by=KERNEL, pid=0, process="", taken_in="ext4_write")

    (made,) = changes([having(own(300, "inode.i_rwsem #3"))], [having(own(900, "inode.i_rwsem #1"))])
    assert title(made.key) == "kernel's rwsem inode.i_rwsem, taken in ext4_write"
    (made,) = changes([having(own(300, "#3"))], [having(own(900, "0xffff888101"))])
    assert title(made.key) == "kernel's rwsem, taken in ext4_write"
    (made,) = changes([having(own(300, "rtnl_mutex"))], [having(own(900, "rtnl_mutex"))])
    assert title(made.key) == "kernel's rwsem rtnl_mutex"


def test_locks_of_several_processes() -> None:
    def shared(ms: int) -> LockTimes:
        return waited(ms, name="/dev/shm/x+0x0", owned_by=SHARED, pid=0, process="")

    (made,) = changes([having(shared(300))], [having(shared(900))])
    assert title(made.key) == "mutex of several processes /dev/shm/x+0x0"


def test_waits_that_are_for_no_lock_are_left_out() -> None:
    assert not changes([having()], [having(waited(900, kind=CONDITION))])
    assert not changes([having()], [having(waited(900, name=OTHER_LOCKS))])


def test_report_and_json() -> None:
    made = compare([having(waited(300, waits=30))], [having(waited(1_500, waits=60))])
    told = list(lines(made))
    head = told.index("Locks (not tested), with the mean wait")
    assert told[head + 1] == "    0.03     0.15    +0.12  train: mutex table+0x40, 10.0 ms, now 25.0 ms"
    (data,) = to_json(made)["locks"]
    assert data["name"] == "table+0x40"
    assert data["waits_per_s"] == pytest.approx([3, 6])
    assert data["mean_ns"] == [10_000_000, 25_000_000]


def test_hostile_names() -> None:
    made = compare([having()], [having(waited(900, name=HOSTILE), waited(900, name="0x1", places=at(HOSTILE)))])
    text = "\n".join(lines(made))
    assert not {"\x1b", "\u202e"} & set(text)
    text.encode()
    json.dumps(to_json(made)).encode("ascii")
