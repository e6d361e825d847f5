from __future__ import annotations

import pytest
from stallscope.converters.facts import thresholds
from stallscope.converters.model import Frame, Profile
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.rules.verdict import IDLE
from stallscope.converters.scan.compare.verdicts import Held, Pair, verdict_pairs
from summary_profiles import SECOND, Tracee, empty
from verdict_profiles import FSYNC, LOCK

TEN = 10 * SECOND
TAKES = ("work", "take", "pthread_mutex_lock")


def ranks(*blocked: int, pids: tuple[int, ...] = (7, 8)) -> Profile:
    """Ranks of one program, each blocked by a lock for so many of 10 s."""
    profile = empty()
    for rank, (pid, seconds) in enumerate(zip(pids, blocked, strict=True)):
        made = Tracee(profile, pid, "train", pid, "train").run((10 - seconds) * SECOND)
        if seconds:
            made.wait(LOCK, "interruptible", seconds * SECOND, 900)
        profile.processes.append(ProcessTimes(pid, "train", ranks={"rank": str(rank)}))
    return profile


def saver(line: int = 0) -> Profile:
    """A process that is blocked by a disk; ``line``: that of a function of Python in which it is."""
    profile = empty()
    stack = (*FSYNC[:1], Frame("save", "python", file="save.py", line=line), *FSYNC[1:]) if line else FSYNC
    Tracee(profile, 3, "saver", 3, "saver").run(SECOND).wait(stack, "uninterruptible", 9 * SECOND, 900)
    return profile


def test_each_rank_has_its_verdicts() -> None:
    one, other = verdict_pairs([ranks(9, 2)], [ranks(2, 9, pids=(22, 21))])
    assert {one.rank, other.rank} == {0, 1}
    first = one if one.rank == 0 else other
    assert first.process == "train"
    assert first.before == Held("lock", TAKES, "futex_wait", pytest.approx(0.9), pytest.approx(0.9))
    assert first.after
    assert first.after.share != first.before.share
    assert first.differs


def test_another_verdict_is_told_whatever_its_time() -> None:
    before, after = empty(), saver()
    Tracee(before, 4, "saver", 4, "saver").run(SECOND).wait(LOCK, "interruptible", 9 * SECOND, 900)
    (pair,) = verdict_pairs([before], [after])
    assert pair.before
    assert pair.after
    assert (pair.before.kind, pair.after.kind) == ("lock", "io")
    assert not pair.is_same
    assert pair.weight == pytest.approx(0.9)


def test_equal_runs() -> None:
    (pair,) = verdict_pairs([saver()], [saver(), saver()])
    assert pair.is_same
    assert not pair.differs


def test_an_edited_script_matches_itself() -> None:
    (pair,) = verdict_pairs([saver(line=41)], [saver(line=52)])
    assert pair.before
    assert "save" in pair.before.frames
    assert pair.is_same


def test_a_new_process() -> None:
    (pair,) = verdict_pairs([empty()], [saver()])
    assert pair.before is None
    assert pair.after
    assert pair.differs


@pytest.mark.parametrize(("more", "differs"), [(-0.001, False), (0.001, True)])
def test_smallest_difference(more: float, differs: bool) -> None:
    held = Held("lock", TAKES, "", 0.5, 0.5)
    after = held._replace(rate=0.5 + thresholds.COMPARED_LEAST + more)
    assert Pair("train", None, held, after).differs is differs


def test_runs_that_overlap_do_not_differ() -> None:
    """One of three waits as long as one of the other side."""
    before, after = [[ranks(seconds, 0) for seconds in side] for side in ((6, 7, 8), (9, 10, 10))]
    assert verdict_pairs(before, after)[0].differs
    after[0] = ranks(7, 0)
    pair, *_ = verdict_pairs(before, after)
    assert pair.before
    assert pair.before.rate == pytest.approx(0.7)
    assert pair.overlaps
    assert not pair.differs


def test_slight_verdicts_that_change_do_not_matter() -> None:
    held = Held("lock", TAKES, "", 0.01, 0.5)
    assert not Pair("train", None, held, held._replace(kind="io")).differs
    assert not Pair("train", None, held, Held(IDLE, (), "", 0.0, None)).differs


def test_processes_without_trouble_are_left_out() -> None:
    profile = empty()
    Tracee(profile, 5, "idle", 5, "idle").wait(LOCK, "interruptible", TEN, 1)
    made = verdict_pairs([profile], [profile])
    assert all(each.before and each.before.rate for each in made)
