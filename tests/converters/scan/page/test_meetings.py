from __future__ import annotations

from dataclasses import replace

from collective_profiles import one_late, profile_of, standing
from scans import HOSTILE
from stallscope.converters.base.text import printable
from stallscope.converters.model.collectives import UNKNOWN, Collectives
from stallscope.converters.scan.page.meetings import meetings_data
from stallscope.converters.scan.report import report_of
from summary_profiles import MS, SECOND, empty


def rows_of(found: Collectives) -> list[dict[str, object]]:
    return meetings_data(report_of(profile_of(found)))


def test_a_row_for_each_rank_the_last_one_first() -> None:
    late, *others = rows_of(one_late())
    assert (late["who"], late["last"], late["late"], late["waited"], late["calls"]) == (
        "rank 1 of train (pid 11)",
        1.0,
        8 * MS,
        0,
        100,
    )
    assert (late["between"], late["waits"]) == (10 * MS, [["train → load_batch → read", 0.8]])
    assert [row["who"] for row in others] == [f"rank {number} of train (pid 1{number})" for number in (0, 2, 3)]
    assert [row["waited"] for row in others] == [SECOND] * 3
    assert {row["name"] for row in (late, *others)} == {"NCCL communicator of 4 ranks"}
    assert late["met"] == "4 ranks met in 100 × all-reduce (256 MiB)"
    assert late["kinds"] == [["all-reduce (256 MiB)", 100, 8 * MS, 16 * MS]]
    assert {row["standing"] for row in (late, *others)} == {""}


def test_where_ranks_stand() -> None:
    out, *inside = rows_of(standing())
    assert out["standing"] == "in none since its collective 25"
    assert {row["standing"] for row in inside} == {"in all-reduce 26"}
    found = standing()
    ended = replace(found, standing=tuple(replace(each, has_ended=not each.what) for each in found.standing))
    assert rows_of(ended)[0]["standing"] == "its process has ended"


def test_what_is_not_known() -> None:
    found = one_late()
    ranks = tuple(replace(each, rank=UNKNOWN, between=None, process=HOSTILE) for each in found.ranks)
    row = rows_of(replace(found, ranks=ranks, meetings=0, is_known=False))[0]
    assert (row["last"], row["between"], row["waits"]) == (None, None, [])
    assert row["met"] == "4 ranks met in 100 × all-reduce (256 MiB); which ranks meet is known by their calls only"
    assert printable(str(row["who"])) == row["who"]


def test_a_page_without_meetings() -> None:
    assert meetings_data(report_of(empty())) == []
