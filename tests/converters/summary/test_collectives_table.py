"""The table of ranks, and all of it as JSON."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from collective_profiles import UNKNOWN, of_ranks, one_late, profile_of, rank, spent, standing
from job_profiles import job, stuck
from rich.console import Console
from stallscope.converters.facts import thresholds
from stallscope.converters.model import Profile
from stallscope.converters.model.collectives import Collectives, Meeting
from stallscope.converters.summary.collective_sentences import collectives_json, sentences
from stallscope.converters.summary.collectives_table import collectives_tables
from stallscope.converters.summary.summarize import summarize
from summary_profiles import MS, SECOND


def text(*found: Collectives, top: int = 20) -> list[str]:
    console = Console(file=io.StringIO(), width=160, color_system=None, highlight=False)
    with console.capture() as captured:
        for each in collectives_tables(found, top):
            console.print(each)
    return [line.rstrip() for line in captured.get().splitlines()]


def test_a_row_for_each_rank_the_late_one_first() -> None:
    head, first, *rest = text(one_late())
    assert head.endswith("4 ranks met in 100 × all-reduce (256 MiB)")
    assert first.split()[:3] == ["1", "100.0", "%"]
    assert first.endswith("train (pid 11): between, 80.0 % in train → load_batch → read")
    assert len(rest) == 3
    assert len(text(one_late(), top=2)) == 3


def test_a_rank_that_has_not_come_in_its_row() -> None:
    found = standing()
    asleep = replace(found.standing[1], meanwhile=spent(2000 * MS, 0, count=1))
    of = replace(found, standing=(found.standing[0], asleep, *found.standing[2:]))
    assert text(of)[1].endswith(
        "has not come for 2.00 s, of which it is blocked in train → load_batch → read for 100.0 %"
    )
    other = replace(asleep, elsewhere="MPI_Recv")
    of = replace(found, standing=(found.standing[0], other, *found.standing[2:]))
    assert text(of)[1].endswith("train (pid 11): has not come; it is in MPI_Recv")
    ended = replace(asleep, has_ended=True)
    of = replace(found, standing=(found.standing[0], ended, *found.standing[2:]))
    assert text(of)[1].endswith("train (pid 11): has ended")


def test_ranks_of_other_hosts_and_a_communicator_of_before() -> None:
    found = replace(one_late(), size=16, is_known=False)
    assert (
        "4 ranks of 16 met in 100 × all-reduce (256 MiB); which ranks meet is known by their calls only"
        in text(found)[0]
    )


def test_ranks_that_are_threads_of_one_process_stand_by_themselves() -> None:
    found = standing()
    of = replace(
        found,
        ranks=tuple(replace(each, pid=10) for each in found.ranks),
        standing=tuple(replace(each, pid=10) for each in found.standing),
    )
    (told,) = sentences([of])
    assert "3 of 4 are in it; rank 1 (pid 10) has not come" in told
    late, *others = text(of)[1:]
    assert "has not come" not in " ".join(others)
    assert late.split()[0] == "1"


def test_few_communicators_are_shown() -> None:
    assert len(text(*[one_late()] * 9)) == 5 * thresholds.COMMUNICATORS_SHOWN


def test_a_profile_tells_who_stands_still_first() -> None:
    answer = summarize(profile_of(standing())).answer
    assert answer[0].startswith("The ranks of train stand still in all-reduce 26")
    assert answer[1].startswith("Rank 1 of train (pid 11) comes 8.00 ms late")
    assert sentences([one_late()]) == ()


def test_all_in_json() -> None:
    found = replace(standing(), worst=(Meeting(7, "all-reduce", UNKNOWN, (0, MS, 2, 3)),), size=UNKNOWN)
    made = json.loads(json.dumps(collectives_json(found)))
    assert (made["library"], made["size"], made["known"], made["meetings"]) == ("NCCL", None, True, 100)
    assert made["ranks"][1]["late_ns"] == 8 * MS
    assert made["ranks"][1]["between"]["mean_ns"] == 10 * MS
    assert made["ranks"][1]["between_late"] is None
    assert made["kinds"][0] == {
        "what": "all-reduce",
        "bytes": 256 << 20,
        "meetings": 100,
        "spread_ns": 8 * MS,
        "longest_ns": 16 * MS,
        "total_ns": 800 * MS,
        "last": [],
        "late_ns": [],
        "waited_ns": [],
        "caused_ns": [],
        "took_ns": None,
        "bytes_per_s": None,
    }
    assert made["worst"] == [{"number": 7, "what": "all-reduce", "bytes": None, "arrivals_ns": [0, MS, 2, 3]}]
    assert made["standing"][1] == {
        "pid": 11,
        "number": 25,
        "what": None,
        "bytes": 0,
        "since_ns": 1_000_000_000,
        "ended": False,
        "meanwhile": None,
        "stopped_ns": 0,
        "elsewhere": None,
    }


def test_bandwidth_of_calls_that_wait() -> None:
    of = one_late()
    found = replace(of, kinds=(replace(of.kinds[0], took=250 * MS),))
    assert "100 × all-reduce (256 MiB) at 1 GiB/s" in "".join(text(found))
    (kind,) = collectives_json(found)["kinds"]
    assert (kind["took_ns"], kind["bytes_per_s"]) == (250 * MS, 1 << 30)
    assert "/s" not in "".join(text(of))


def test_hostile_names() -> None:
    of = one_late()
    ranks = tuple(replace(each, process="\x1b[2J\udcff") for each in of.ranks)
    found = replace(of, ranks=ranks)
    assert "\x1b" not in "".join(text(found))
    json.dumps(collectives_json(found)).encode()


def answer_of(profile: Profile) -> tuple[str, ...]:
    return summarize(profile).answer


def late_in(profile: Profile, *, in_turn: bool = False) -> Profile:
    """The profile of a job with a communicator, of which rank 1 comes last, or each rank in turn."""
    last = (33, 34, 33) if in_turn else (0, 100, 0)
    ranks = [
        replace(rank(place, last=number, waited=SECOND, between=spent(0)), pid=100 + place)
        for place, number in enumerate(last)
    ]
    if not in_turn:
        ranks[1] = replace(ranks[1], late=8 * MS, waited=0, between=spent(8 * MS))
    profile.collectives = [of_ranks(*ranks)]
    return profile


def test_waits_for_a_rank_that_is_told_as_late_are_not_told_again() -> None:
    late, keeps, *_ = answer_of(late_in(job(0.02, 0.5, 0.02)))
    assert late.startswith("Rank 1 of train (pid 101) comes 8.00 ms late")
    assert keeps.startswith("Rank 1 (pid 101) keeps the other 2 ranks waiting")
    waits = "spent waiting for other ranks"
    assert waits not in " ".join(answer_of(late_in(job(0.02, 0.5, 0.02))))
    assert waits in answer_of(job(0.02, 0.5, 0.02))[0]
    # Nobody is named, or the longest waits are others.
    assert waits in answer_of(late_in(job(0.02, 0.5, 0.02), in_turn=True))[1]
    assert "sleeping again and again" in answer_of(late_in(job(0.2, 0.9, 0.2)))[1]


def test_a_job_that_stands_still_comes_before_one_that_is_slow() -> None:
    """Another job, whose ranks are late."""
    profile = stuck()
    profile.collectives = [one_late()]
    stands, late, *_ = answer_of(profile)
    assert "since before the trace began" in stands
    assert late.startswith("Rank 1 of train (pid 11) comes 8.00 ms late")
