from __future__ import annotations

import json

import pytest
from scans import HOSTILE
from stallscope.converters.facts import thresholds
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.model.slices import SliceSpent, ThreadSlices
from stallscope.converters.scan.compare.comparing import compare
from stallscope.converters.scan.compare.telling import lines, to_json
from summary_profiles import MS, SECOND

NOISE = (3, -2, 0, 5, -4, 1, -1, 2, -3, 4)
"""ms by which slices differ."""


def run(
    blocked_ms: int, *, slices: int = 10, pids: tuple[int, ...] = (7,), name: str = "train", shift: int = 0
) -> Profile:
    """Processes whose thread waits for a lock for so many ms of each second, and runs for the rest."""
    profile = Profile([ValueType("wall", "nanoseconds")], duration_ns=slices * SECOND)
    for pid in pids:
        waits = tuple((blocked_ms + NOISE[(i + shift) % len(NOISE)]) * MS for i in range(slices))
        runs = tuple(SECOND - each for each in waits)
        spent = [SliceSpent("lock", waits, ("step", name), "futex_wait"), SliceSpent("cpu", runs)]
        profile.slices.append(ThreadSlices(name, name, pid, pid, SECOND, 0, spent))
    return profile


def test_known_difference() -> None:
    made = compare([run(100)], [run(400, shift=3)])
    assert made.first is not None
    assert (made.first.key.kind, made.first.key.frames) == ("lock", ("step", "train"))
    assert made.first.difference == pytest.approx(0.3, abs=0.005)
    assert 0 < made.first.margin < 0.01
    assert {each.key.kind for each in made.told} == {"lock", "cpu"}
    assert sum(each.difference for each in made.told) == pytest.approx(0)
    assert next(lines(made)).startswith(
        "Most of what is new is train: lock in step → train │ futex_wait: 0.10 → 0.40 s"
    )


def test_equal_runs_have_no_difference() -> None:
    made = compare([run(100)], [run(100, shift=4)])
    assert not made.changes
    assert next(lines(made)) == "Nothing takes more time than before, beyond noise."


def test_length_and_pids_do_not_matter() -> None:
    made = compare([run(100)], [run(100, slices=20, pids=(4711,))])
    assert not made.changes
    assert not made.processes


def test_one_process_more() -> None:
    made = compare([run(100)], [run(100, pids=(7, 8))])
    assert [(each.process, each.before, each.after) for each in made.processes] == [("train", 1, 2)]
    assert {each.key.kind for each in made.told} == {"lock", "cpu"}


def test_ranks_are_matched_by_number() -> None:
    def of(slow: int, pids: tuple[int, int]) -> Profile:
        profile = run(100, pids=pids)
        profile.processes = [ProcessTimes(pid, "train", ranks={"rank": str(i)}) for i, pid in enumerate(pids)]
        profile.slices[1] = run(slow, pids=(pids[1],)).slices[0]
        return profile

    made = compare([of(100, (7, 8))], [of(500, (22, 21))])
    assert made.first is not None
    assert {each.key.rank for each in made.told} == {1}
    assert "train (rank 1): lock" in next(lines(made))


@pytest.mark.parametrize("enough", [False, True])
def test_few_intervals_cannot_tell(enough: bool) -> None:
    number = thresholds.COMPARED_INTERVALS - (not enough)
    made = compare([run(100, slices=number)], [run(400, slices=number)])
    assert made.judged is enough
    assert bool(made.told) is enough
    assert next(lines(made)).startswith("Change cannot be told from noise") is not enough


def test_runs_of_a_side_are_put_together() -> None:
    made = compare([run(100, slices=4), run(100, slices=4)], [run(400, slices=4), run(400, slices=4)])
    assert made.intervals == (8, 8)
    assert made.first is not None
    assert not any("One run" in line for line in lines(made))
    assert any("One run" in line for line in lines(compare([run(100)], [run(400)] * 2)))


@pytest.mark.parametrize(("more", "told"), [(19, False), (21, True)])
def test_smallest_difference(more: int, told: bool) -> None:
    assert bool(compare([run(100)], [run(100 + more)]).told) is told


def test_outlier_is_noise() -> None:
    after = run(100)
    waits = after.slices[0].spent[0]
    waits.times = (SECOND, *waits.times[1:])
    made = compare([run(100)], [after])
    assert made.changes
    assert not made.told


def test_hostile_names() -> None:
    made = compare([run(100, name=HOSTILE)], [run(400, name=HOSTILE)])
    text = "\n".join(lines(made))
    assert "\x1b" not in text
    assert "\u202e" not in text
    json.dumps(to_json(made)).encode("ascii")
    text.encode()


def test_report_fits_a_screen() -> None:
    few, many = ([run(ms, pids=(i,), name=f"p{i}") for i in range(40)] for ms in (100, 400))
    one, other = Profile([], duration_ns=10 * SECOND), Profile([], duration_ns=10 * SECOND)
    one.slices = [each.slices[0] for each in few[:20]]
    other.slices = [each.slices[0] for each in many]
    assert len(list(lines(compare([one], [other])))) <= 40
