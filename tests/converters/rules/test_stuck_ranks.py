"""Ranks that stand in a collective operation since before the trace."""

from __future__ import annotations

from dataclasses import replace

import pytest
from collective_profiles import standing
from job_profiles import MEET, TEN, job, polling_ranks, rank, stuck
from stallscope.converters.model import Module, Profile
from stallscope.converters.rules.stuck_ranks import StuckRanks, find
from stallscope.converters.rules.stuck_ranks import polling_ranks as polling_ranks_of
from stallscope.converters.summary.judging import read
from stallscope.converters.summary.summarize import summarize
from summary_profiles import EXE, FUTEX, LIBC, MS, Tracee, empty, user

CUDART = Module("/opt/cuda/libcudart.so.12")
SYNCHRONIZE = (*user(EXE, "main", "train"), *user(CUDART, "cudaStreamSynchronize"), *user(LIBC, "ioctl"), *FUTEX)
BARRIER = (*user(EXE, "main", "save"), *user(None, "MPI_Barrier"), *FUTEX)
RECEIVE = (*user(EXE, "main", "collect"), *user(None, "MPI_Recv"), *FUTEX)
POLLS = (*user(EXE, "main"), *user(None, "MPI_Allreduce"), *user(Module("/lib/libopen-pal.so.40"), "opal_progress"))
GROUP = (*user(EXE, "main", "train"), *user(Module("/opt/lib/libnccl.so.2"), "ncclGroupEnd"), *FUTEX)


def found(profile: Profile) -> StuckRanks | None:
    verdicts = find(read(profile).facts)
    details = [each.detail for each in verdicts]
    assert all(isinstance(each, StuckRanks) for each in details) and len(details) < 2
    return details[0] if details else None  # type: ignore[return-value]


def in_gpu(inside: int, outside: int) -> Profile:
    """Ranks whose main threads wait for the GPU all the time, and others that sleep."""
    made = stuck(inside + outside, out=-1)
    for number, each in enumerate(made.samples):
        asleep = stuck(1, out=0).samples[0].stack
        made.samples[number] = each._replace(stack=asleep if number >= inside else SYNCHRONIZE)
    return made


def test_who_is_inside_and_who_is_not() -> None:
    (verdict,) = find(read(stuck()).facts)
    assert (verdict.rule, verdict.kind, verdict.time) == ("stuck-ranks", "collective", 3 * TEN)
    assert verdict.pids == {100, 101, 102, 103}
    detail = verdict.detail
    assert isinstance(detail, StuckRanks)
    assert [each.rank.number for each in detail.inside] == [0, 2, 3]
    assert detail.inside[0].frames == ("main", "MPI_Allreduce", "poll")
    (outside,) = detail.outside
    assert (outside.rank.number, outside.kind, outside.frames) == (1, "sleep", ("main", "nap", "clock_nanosleep"))
    assert outside.share == pytest.approx(90 / 101)
    assert (detail.others, detail.missing, detail.for_gpu) == ((), (), False)


def test_it_is_the_first_sentence_and_the_only_one_on_them() -> None:
    answer = summarize(stuck()).answer
    assert answer[0].startswith("3 of 4 ranks of train have been in main → MPI_Allreduce → poll")
    assert not any("keeps the other" in each or "wait for each other" in each for each in answer)


def test_one_that_calls_something_else() -> None:
    made = stuck(out=-1)
    made.samples[2] = made.samples[2]._replace(stack=BARRIER)
    detail = found(made)
    assert detail and [each.rank.number for each in detail.inside] == [0, 1, 3]
    assert [(each.rank.number, each.frames[:3]) for each in detail.others] == [(2, ("main", "save", "MPI_Barrier"))]
    assert detail.outside == ()


def test_all_are_inside() -> None:
    detail = found(stuck(out=-1))
    assert detail and len(detail.inside) == 4 and detail.outside == detail.others == detail.missing == ()


def test_one_that_has_ended() -> None:
    detail = found(stuck(3, out=-1, size=4))
    assert detail and detail.missing == (3,)


def test_several_wait_for_their_gpus() -> None:
    detail = found(in_gpu(3, 1))
    assert detail and detail.for_gpu and [each.rank.number for each in detail.outside] == [3]
    assert found(in_gpu(2, 2))
    assert found(in_gpu(1, 3)) is None, "one has something to do on its GPU"
    detail = found(in_gpu(4, 0))
    assert detail and detail.for_gpu and detail.outside == ()


def test_who_waits_for_its_gpu_may_be_in_it() -> None:
    """One rank is in the call of the library yet, where others wait for what they have put into their streams."""
    made = in_gpu(3, 1)
    made.samples[0] = made.samples[0]._replace(stack=GROUP)
    detail = found(made)
    assert detail and not detail.for_gpu
    assert [each.rank.number for each in detail.inside] == [0]
    assert [(each.rank.number, each.frames[:3]) for each in detail.maybe] == [
        (number, ("train", "cudaStreamSynchronize", "ioctl")) for number in (1, 2)
    ]
    assert [each.rank.number for each in detail.outside] == [3]
    assert "rank 1 (pid 101) is not in it" not in summarize(made).answer[0]


def test_one_that_waits_for_a_message_of_one_that_works() -> None:
    """A master waits for its worker."""
    made = stuck(2)
    made.samples[0] = made.samples[0]._replace(stack=RECEIVE)
    assert found(made) is None
    made.samples[0] = made.samples[0]._replace(stack=BARRIER)
    assert found(made), "in a barrier, it waits for all"
    made = stuck(3)
    for number in (0, -1):
        made.samples[number] = made.samples[number]._replace(stack=RECEIVE)
    detail = found(made)
    assert detail and [each.rank.number for each in detail.inside] == [0, 2], "two wait for it"


def test_threads_that_move_do_not_stand() -> None:
    assert found(job(0.0, 0.0, 0.0, 0.9)) is None, "they have come and gone 100 times"
    moves = stuck()
    for times in moves.threads:
        times.on_cpu += 1
    assert found(moves) is None


def test_ranks_that_poll() -> None:
    made = polling_ranks({POLLS: 100}, 4)
    (verdict,) = find(read(made).facts)
    detail = verdict.detail
    assert isinstance(detail, StuckRanks) and detail.polls and verdict.time == 3 * TEN
    assert [each.rank.number for each in detail.inside] == [0, 2, 3]
    assert [(each.rank.number, each.kind) for each in detail.outside] == [(1, "sleep")]
    answer = summarize(made).answer
    assert answer[0].startswith("3 of 4 ranks of train have been in main → MPI_Allreduce since before the trace began")
    assert "for 10.0 s, polling on a core; rank 1 (pid 101) is not in it" in answer[0]
    assert not any("keeps the other" in each or "use cores while they wait" in each for each in answer)


def test_which_ranks_poll() -> None:
    assert polling_ranks_of(find(read(polling_ranks({POLLS: 100}, 4)).facts)) == {100, 102, 103}
    assert polling_ranks_of(find(read(stuck()).facts)) == frozenset(), "they are blocked"


def test_ranks_that_do_nothing_but_meet() -> None:
    """All of their samples are in the operation, too."""
    assert found(polling_ranks({POLLS: 100}, 4, calls=1)) is None


def test_a_rank_that_comes_once_in_a_while() -> None:
    """One that polls came out of it while the trace went on; those that did not wait longer for it than others."""
    made = polling_ranks({POLLS: 100}, 4)
    made.watched = [replace(each, calls=1) for each in made.watched]
    assert found(made) is None
    made.watched = [each for each in made.watched if each.pid == 101]
    assert found(made) is None, "nobody has looked for their calls"


def test_some_are_blocked_and_some_poll() -> None:
    """Ranks are in one operation, however each waits there."""
    made = polling_ranks({POLLS: 100}, 4, waits=MEET, waited=1)
    for times in made.threads[2:]:
        times.blocked, times.on_cpu = {}, TEN
    kept = [each for each in made.samples if each.label("pid") in (100, 101) or each.label("state") == "running"]
    first = next(each for each in kept if each.label("pid") == 100 and each.label("state") != "running")
    made.samples = [each._replace(values=(TEN, 1, TEN, TEN, 0)) if each is first else each for each in kept]
    detail = found(made)
    assert detail and not detail.polls and detail.others == ()
    assert [each.rank.number for each in detail.inside] == [0, 2, 3]


def test_a_helper_that_waits_all_the_time_is_no_rank() -> None:
    made = job(0.5, 0.5)
    for pid in (100, 101):
        helper = Tracee(made, pid, "train", pid + 1000, "pt_gloo")
        helper.wait(BARRIER, "interruptible", TEN, 1)
    assert found(made) is None


def test_calls_that_the_trace_saw_tell_more() -> None:
    made = stuck()
    told = standing()
    ranks = tuple(replace(each, pid=each.pid + 90) for each in told.ranks)
    made.collectives = [replace(told, ranks=ranks)]
    assert found(made) is None
    made.collectives = [replace(told, ranks=ranks, standing=())]
    assert found(made)


def test_a_short_trace_shows_nothing() -> None:
    made = stuck()
    made.duration_ns = 400 * MS
    assert found(made) is None


def test_processes_of_no_job() -> None:
    made = empty()
    rank(made, 100, None, 0.0, above=(), meets=1)
    rank(made, 101, None, 0.9, above=(), executable="/opt/other", meets=1)
    assert found(made) is None
