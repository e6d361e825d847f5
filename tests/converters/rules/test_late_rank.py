"""Ranks that come late to their collectives."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np
import pytest
import tcp_profiles
from collective_pins import seldom
from collective_profiles import COMPUTE, LOAD, MEETINGS, UNKNOWN, of_ranks, one_late, pair, profile_of, rank, spent
from processes import process as add_process
from stallscope.converters.collectives.meetings import Meetings, Member, lateness
from stallscope.converters.facts.wait_sites import site
from stallscope.converters.model import Stack
from stallscope.converters.model.collectives import CollectiveKind, Collectives
from stallscope.converters.model.losses import NOT_TAKEN
from stallscope.converters.model.processes import CpuLimit
from stallscope.converters.model.sites import Site
from stallscope.converters.model.steps import StepRun, StepWait
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.rules.late_rank import (
    FOR_GIL,
    KEPT,
    QUEUED,
    RUNS,
    THROTTLED,
    WAITS,
    WANTS,
    Excess,
    LateRank,
    find,
)
from stallscope.converters.rules.verdict import Verdict
from stallscope.converters.summary.judging import read
from summary_profiles import EXE, MS, SECOND, Tracee, user
from verdict_profiles import GIL, LOCK, with_quota


def found(of: Collectives) -> LateRank | None:
    for verdict in find(read(profile_of(of)).facts):
        assert isinstance(verdict.detail, LateRank)
        return verdict.detail
    return None


def told(of: Collectives) -> str:
    facts = read(profile_of(of)).facts
    return " ".join(Sentences(facts).of(each) for each in find(facts))


def test_a_rank_that_is_late_and_why() -> None:
    assert told(one_late()) == (
        "Rank 1 of train (pid 11) comes 8.00 ms late (median) to 100.0 % of 100 all-reduces (256 MiB) of 4 ranks: "
        "before, it is blocked in train → load_batch → read for 8.00 ms more than the other 3."
    )


def test_what_others_do_as_well_is_no_cause() -> None:
    late = found(one_late(others=8 * MS))
    assert late and late.late and late.excess == Excess(KEPT, 8 * MS)
    assert told(one_late(others=8 * MS)).endswith(
        "of 4 ranks: it comes so much later out of the one before, and does no more than the other 3 in between."
    )
    late = found(one_late(others=6 * MS))
    assert late and late.excess == Excess(WAITS, 2 * MS, LOAD)


def test_who_waits_in_between_takes_as_long_as_who_is_late() -> None:
    """The others wait for the late one in between, where it is not known when operations are done."""
    waiting = replace(spent(8 * MS), waits=(StepWait(Site(("train", "synchronize"), ""), 8 * MS * MEETINGS, MEETINGS),))
    of = one_late()
    late = found(replace(of, ranks=tuple(each if each.last else replace(each, between=waiting) for each in of.ranks)))
    assert late and late.excess == Excess(WAITS, 8 * MS, LOAD)


def test_small_parts_may_be_much_together() -> None:
    waits = tuple(StepWait(Site(("train", f"f{number}"), ""), MS * MEETINGS, MEETINGS) for number in range(8))
    of = one_late()
    late = replace(of.ranks[1], between=replace(spent(8 * MS), waits=waits))
    detail = found(replace(of, ranks=(of.ranks[0], late, *of.ranks[2:])))
    assert detail and detail.excess and detail.excess.kind == WAITS


def with_slow_link(of: Collectives, far: bool = True) -> list[Verdict]:
    """Verdicts on ranks of which one waits on a link whose round trips explain that, or half as long ones do not."""
    profile = profile_of(of)
    slow = tcp_profiles.both(0.9, 0.9)
    slow.objects[0].links = [tcp_profiles.FAR if far else replace(tcp_profiles.FAR, round_trip=40 * MS)]
    profile.samples += [
        each._replace(labels=tuple((name, 11 if name in ("pid", "tid") else value) for name, value in each.labels))
        for each in slow.samples[:1]
    ]
    profile.objects = slow.objects
    profile.value_types, profile.samples = slow.value_types, profile.samples
    return find(read(profile).facts)


def test_who_comes_last_by_the_network_is_not_told_as_late() -> None:
    for of in (one_late(others=8 * MS), one_late(last=30)):  # one that is kept; ranks in turn
        assert not with_slow_link(of)
        assert with_slow_link(of, far=False)
    assert with_slow_link(one_late()), "it does more than the others"


@pytest.mark.parametrize(
    ("late", "excess"),
    [
        (spent(0, on_cpu=10 * MS), Excess(RUNS, 8 * MS, COMPUTE)),
        (spent(0, on_cpu=10 * MS, samples=0), Excess(RUNS, 8 * MS, None)),
        (spent(0, queued=7 * MS), Excess(QUEUED, 7 * MS)),
        (spent(0, on_cpu=5 * MS, queued=7 * MS), Excess(WANTS, 10 * MS, COMPUTE)),
        (spent(0, on_cpu=5 * MS, queued=7 * MS, samples=0), Excess(WANTS, 10 * MS, None)),
        (spent(0, on_cpu=3 * MS, queued=7 * MS), Excess(QUEUED, 7 * MS)),  # others have its core
        (spent(6 * MS, on_cpu=7 * MS), Excess(WAITS, 6 * MS, LOAD)),
    ],
)
def test_the_largest_excess_is_the_cause(late: object, excess: Excess) -> None:
    of = one_late()
    ranks = (of.ranks[0], replace(of.ranks[1], between=late), *of.ranks[2:])
    detail = found(replace(of, ranks=ranks))
    assert detail and detail.excess == excess


def test_a_rank_that_runs_is_where_it_runs_for_longer() -> None:
    """All compute for as long; only the late one prepares."""
    prepare = StepRun(("train", "prepare"), 3)
    of = one_late()
    late = replace(spent(0, on_cpu=8 * MS), samples=8, ran=(StepRun(COMPUTE.frames, 5), prepare))
    others = replace(spent(0, on_cpu=5 * MS), samples=5, ran=(StepRun(COMPUTE.frames, 5),))
    ranks = [replace(each, between=late if each.last else others) for each in of.ranks]
    detail = found(replace(of, ranks=tuple(ranks)))
    assert detail and detail.excess == Excess(RUNS, 3 * MS, Site(prepare.frames, ""))


@pytest.mark.parametrize(("throttled", "kind"), [(98, THROTTLED), (0, QUEUED)])
def test_a_quota_that_stops_the_late_rank(throttled: int, kind: str) -> None:
    of = one_late()
    ranks = (of.ranks[0], replace(of.ranks[1], between=spent(0, queued=7 * MS)), *of.ranks[2:])
    profile = profile_of(replace(of, ranks=ranks))
    stopped = throttled * SECOND // 100
    add_process(profile, 11, "train", limits=(CpuLimit("/x", 50_000, 100_000, 100, throttled, stopped),))
    facts = read(profile).facts
    (verdict,) = find(facts)
    assert isinstance(verdict.detail, LateRank) and verdict.detail.excess
    assert verdict.detail.excess.kind == kind
    says = ", as a quota stops it, for 7.00 ms" if throttled else "waits for a core for 7.00 ms"
    assert says in Sentences(facts).of(verdict)


def test_a_quota_of_another_process_is_no_cause() -> None:
    of = one_late()
    ranks = (of.ranks[0], replace(of.ranks[1], between=spent(0, queued=7 * MS)), *of.ranks[2:])
    detail = find(read(with_quota(profile_of(replace(of, ranks=ranks)), 5 * SECOND)).facts)[0].detail
    assert isinstance(detail, LateRank) and detail.excess and detail.excess.kind == QUEUED


@pytest.mark.parametrize(("stack", "kind", "more"), [(GIL, FOR_GIL, 7), (LOCK, WAITS, 4)])
def test_waits_for_the_interpreter_lock_are_one_cause(stack: Stack, kind: str, more: int) -> None:
    """Waits of 3 ms and of 4 ms, in two places."""
    stacks = stack, (*user(EXE, "main", "step"), *stack[1:])
    waits = tuple(StepWait(site(each), ms * MS * MEETINGS, MEETINGS) for ms, each in zip((3, 4), stacks, strict=True))
    of = one_late()
    ranks = (of.ranks[0], replace(of.ranks[1], tid=11, between=replace(spent(7 * MS), waits=waits)), *of.ranks[2:])
    profile = profile_of(replace(of, ranks=ranks))
    profile.threads = [each for each in profile.threads if each.pid != 11]
    thread = Tracee(profile, 11, "train", 11, "train")
    for each in stacks:
        thread.wait(each, "interruptible", SECOND)
    facts = read(profile).facts
    (verdict,) = find(facts)
    assert isinstance(verdict.detail, LateRank)
    assert verdict.detail.excess == Excess(kind, more * MS, site(stacks[1]))
    says = "it waits for Python's interpreter lock (GIL) in " if kind == FOR_GIL else "it is blocked in "
    assert says in Sentences(facts).of(verdict)


def test_waits_whose_stacks_were_left_out() -> None:
    """Others with the same function of the kernel tell where they were."""
    of = one_late()
    shed = StepWait(Site((NOT_TAKEN, "read"), LOAD.kernel), 6 * MS * MEETINGS, MEETINGS)
    other = StepWait(Site((NOT_TAKEN, "futex"), "futex_wait"), MS * MEETINGS, MEETINGS)
    known = spent(2 * MS)
    between = replace(spent(9 * MS), waits=(shed, *known.waits, other))
    ranks = (of.ranks[0], replace(of.ranks[1], between=between), *of.ranks[2:])
    detail = found(replace(of, ranks=ranks))
    assert detail and detail.excess == Excess(WAITS, 8 * MS, LOAD)


def test_what_it_does_before_it_is_late_counts() -> None:
    of = one_late()
    ranks = (of.ranks[0], replace(of.ranks[1], between=spent(MS), between_late=spent(9 * MS, count=50)), *of.ranks[2:])
    detail = found(replace(of, ranks=ranks))
    assert detail and detail.excess == Excess(WAITS, 9 * MS, LOAD)


def test_without_events_the_cause_is_not_known() -> None:
    of = one_late()
    detail = found(replace(of, ranks=tuple(replace(each, between=None) for each in of.ranks)))
    assert detail and detail.late and detail.excess is None


@pytest.mark.parametrize(("last", "is_one"), [(51, True), (49, False)])
def test_who_comes_last_to_most(last: int, is_one: bool) -> None:
    detail = found(one_late(last=last))
    assert detail
    assert (detail.late is not None) == is_one
    if not is_one:
        assert told(one_late(last=last)) == (
            "The ranks of train come in turn 8.00 ms late (median) to 100 all-reduces (256 MiB) of 4 ranks: in each, "
            "they wait 30.0 ms for each other, all together."
        )


@pytest.mark.parametrize(("deviation", "is_one"), [(2, True), (3, False)])
def test_lateness_beyond_the_scatter(deviation: int, is_one: bool) -> None:
    detail = found(replace(one_late(), deviation=deviation * MS))
    assert detail and (detail.late is not None) == is_one


@pytest.mark.parametrize(("waited", "told_of"), [(670, True), (660, False)])
def test_waits_that_matter(waited: int, told_of: bool) -> None:
    """Three of four ranks wait, of 40 s."""
    assert (found(one_late(waited=waited * MS)) is not None) == told_of


@pytest.mark.parametrize(("meetings", "told_of"), [(10, True), (9, False)])
def test_few_meetings(meetings: int, told_of: bool) -> None:
    assert (found(replace(one_late(), meetings=meetings)) is not None) == told_of


@pytest.mark.parametrize(
    ("ranks", "meetings", "least"),
    [(2, 10, None), (2, 11, 11), (2, 20, 18), (3, 10, 10), (3, 20, 15), (4, 10, 9), (4, 40, 21), (8, 10, 7)],
)
def test_how_often_one_of_equal_ranks_comes_last(ranks: int, meetings: int, least: int | None) -> None:
    """Compares with the tail of the binomial distribution, times the number of ranks, at 1 in 1,000."""
    tail = [comb(meetings, last) * (ranks - 1) ** (meetings - last) / ranks**meetings for last in range(meetings + 1)]
    rare = [last for last in range(meetings + 1) if ranks * sum(tail[last:]) <= 0.001]
    assert min(rare, default=None) == least
    named = []
    for last in range(-(-meetings * 4 // 5) if ranks == 2 else -(-meetings // 2), meetings + 1):
        others = [rank(number, waited=4 * SECOND) for number in range(1, ranks)]
        detail = found(of_ranks(rank(0, last=last, late=8 * MS), *others, meetings=meetings))
        assert detail and detail.few == (detail.late is None)
        named += [last] if detail.late else []
    assert min(named, default=None) == least


def test_too_few_meetings_to_tell() -> None:
    assert told(of_ranks(rank(0, waited=4 * SECOND), rank(1, last=10), meetings=10)).startswith(
        "The ranks of train come 8.00 ms late (median) to 10 all-reduces (256 MiB) of 2 ranks, too few to tell whether "
        "it is always the same one: in each, they wait "
    )


def test_equal_ranks_are_not_told_apart() -> None:
    """Ranks that come at random: in 600 runs of few meetings, one is told of at most."""
    times = np.random.default_rng(1)
    named = 0
    for ranks, meetings in ((2, 12), (3, 10), (3, 20), (4, 10), (8, 10)) * 120:
        began = times.integers(0, 40 * MS, (meetings, ranks))
        members = tuple(Member(number, 0) for number in range(ranks))
        late = lateness(Meetings(members, began, began, began, began[:, 0] < 0))
        waited = (began.max(axis=1)[:, None] - began).sum(axis=0).tolist()
        by_rank = zip(late.last.tolist(), late.median.tolist(), waited, strict=True)
        found_ranks = [
            rank(number, last=last, late=round(by), waited=50 * time) for number, (last, by, time) in enumerate(by_rank)
        ]
        detail = found(of_ranks(*found_ranks, deviation=round(late.deviation), meetings=meetings))
        named += bool(detail and detail.late)
    assert named <= 1


def test_the_number_in_the_job_if_the_communicator_is_not_known() -> None:
    of = one_late()
    ranks = tuple(replace(each, rank=UNKNOWN) for each in of.ranks)
    assert told(replace(of, ranks=ranks)).startswith("train (pid 11) comes 8.00 ms late")


def test_two_kinds_of_collectives() -> None:
    of = one_late()
    both = replace(of, kinds=(*of.kinds, replace(of.kinds[0], what="broadcast", bytes=1)))
    assert "to 100.0 % of 100 collectives of 4 ranks" in told(both)


def test_two_ranks() -> None:
    """MAD decides nothing: it is half of what is between them."""
    assert told(pair()) == (
        "Rank 1 of train (pid 11) comes 8.00 ms late (median) to 100.0 % of 100 all-reduces (256 MiB) of 2 ranks: "
        "before, it is blocked in train → load_batch → read for 8.00 ms more than the other one."
    )
    assert told(pair(last=60)).startswith("The ranks of train come in turn 8.00 ms late")


def test_who_is_late_seldom_but_by_more_is_told_of() -> None:
    """Rank 1 comes last to most by little, and waits longer itself: unless what it costs matters."""
    ranks = pair(last=90).ranks
    of = replace(pair(), ranks=(replace(ranks[0], waited=SECOND), replace(ranks[1], waited=3 * SECOND)))
    for spread, is_one in ((5 * MS, False), (6 * MS, True)):  # of 10 s, 90 times
        detail = found(replace(of, spread=spread))
        assert detail and (detail.late is not None) == is_one


def by_operation(*, last: int = MEETINGS) -> Collectives:
    """Rank 1 comes last to all-reduces; in the more frequent broadcasts that follow, ranks hardly wait."""
    of = pair(last=28)
    reduces = replace(
        of.kinds[0],
        last=(MEETINGS - last, last),
        lateness=(-10 * MS, 10 * MS),
        waited=(2 * SECOND, 0),
        spread=20 * MS,
        total=2 * SECOND,
    )
    casts = CollectiveKind("broadcast", 1024, 200, 2000, 4000, 400_000, (100, 100), (0, 0), (200_000, 200_000))
    return replace(of, meetings=300, spread=3000, deviation=1500, kinds=(reduces, casts))


def test_the_operation_that_costs_most_tells_who_is_late() -> None:
    assert told(by_operation()).startswith(
        "Rank 1 of train (pid 11) comes 20.0 ms late (median) to 100.0 % of 100 all-reduces (256 MiB) of 2 ranks: "
    )
    assert told(by_operation(last=60)) == (
        "The ranks of train come in turn 20.0 ms late (median) to 100 all-reduces (256 MiB) of 2 ranks: in each, they "
        "wait 20.0 ms for each other, all together."
    )


def test_one_long_meeting_makes_nobody_late() -> None:
    """A barrier at the begin, of 4 s, and all-reduces in which nobody waits."""
    of = by_operation()
    barrier = CollectiveKind("barrier", 0, 1, 4 * SECOND, 4 * SECOND, 4 * SECOND, (0, 1), (0, 0), (4 * SECOND, 0))
    reduces = replace(of.kinds[0], waited=(MS, 0), total=MS)
    assert found(replace(of, kinds=(barrier, reduces, of.kinds[1]))) is None
    assert found(replace(of, kinds=(barrier, *of.kinds))) is not None


def test_of_more_ranks_the_scatter_is_that_of_the_operation() -> None:
    of = replace(one_late(last=20), deviation=9 * MS)
    late, waited = (0, 8 * MS, 0, 0), (SECOND, 0, SECOND, SECOND)
    kind = replace(of.kinds[0], last=(0, MEETINGS, 0, 0), lateness=late, waited=waited)
    detail = found(replace(of, kinds=(kind,)))
    assert detail and detail.late and detail.late.rank == 1
    detail = found(replace(of, kinds=(replace(kind, lateness=(-4 * MS, 8 * MS, 0, 4 * MS)),)))
    assert detail and detail.late is None


def test_what_it_does_before_that_operation_is_the_cause() -> None:
    """Ranks all run for longer before the others, which is not what makes it late."""
    of = by_operation()
    ranks = (
        replace(of.ranks[0], between=spent(MS), before=spent(3 * MS)),
        replace(of.ranks[1], between=spent(4 * MS), before=spent(9 * MS)),
    )
    detail = found(replace(of, ranks=ranks))
    assert detail and detail.excess == Excess(WAITS, 6 * MS, LOAD)


def test_a_rank_for_which_others_wait_though_it_is_late_seldom() -> None:
    """Others wait for it most of the time, though it comes last to few of the meetings: an evaluation, say."""
    of = seldom(10, 0, 9 * SECOND // 10, SECOND // 10, 0, alike=20)
    assert told(of).startswith(
        "Rank 1 of train (pid 11) is the one for which the others wait in 100 all-reduces (256 MiB) of 4 ranks: it "
        "comes last to 10.0 % of them, for 30.0 % of the time that the ranks wait for each other: before, it is "
    )
    # One meeting has most of the time: it may be any rank's.
    late = found(seldom(10, 0, 9 * SECOND // 10, SECOND // 10, 0, alike=1))
    assert late and late.late is None
    late = found(seldom(10, SECOND // 4, SECOND // 4, SECOND // 4, SECOND // 4))
    assert late and late.late is None
