from __future__ import annotations

import io
import json

import pytest
from job_profiles import job, late, rank
from scans import HOSTILE
from stallscope.converters.base.text import printable
from stallscope.converters.facts import thresholds
from stallscope.converters.model import Profile
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.scan import screen
from stallscope.converters.scan.jobs import gpu_lines, jobs_report
from stallscope.converters.scan.report import report_of
from summary_profiles import SECOND, Tracee, empty, facts_of


def text_of(profile: Profile) -> str:
    file = io.StringIO()
    screen.show(report_of(profile), file)
    return file.getvalue()


def test_the_outlier_comes_first() -> None:
    lines = text_of(late()).splitlines()
    head = next(i for i, line in enumerate(lines) if "Ranks" in line and "Running" in line)
    assert lines[head].split()[:4] == ["Running", "Queued", "Ranks", "sleep"]
    assert lines[head + 1].endswith("rank 3 (pid 103, GPU 3)*")
    assert [line.split("rank ")[1][0] for line in lines[head + 2 : head + 9]] == list("0124567")
    assert lines[head + 9].endswith("median of 8")


def test_ranks_that_are_alike_have_one_line() -> None:
    text = text_of(job(*[0.3] * 8))
    assert "Job of 8 ranks of train (0-7), started by mpirun (50), all alike: 70.0 % waiting for other ranks" in text
    assert "median of" not in text


def test_ranks_that_are_not_alike_are_not_said_to_be() -> None:
    """Nobody stands out from the median of own time, which all of each one's is."""
    made = job(1, 1, 1)
    first = made.threads[0]
    first.on_cpu, first.blocked = first.wall, {}
    made.samples = [each for each in made.samples if each.label("pid") != 100]
    text = text_of(made)
    assert "started by mpirun (50), not alike: 0.0 % (rank 0) to 100.0 % (rank 1) of their time asleep" in text
    assert "all alike" not in text and "median of" not in text


def test_who_is_late_is_said_once() -> None:
    for own in (0.5, 0.95):
        assert " ".join(text_of(late(own)).split()).count("keeps the other 7 ranks waiting") <= 1


def test_a_host_without_a_job_has_no_line() -> None:
    made = empty()
    Tracee(made, 1, "app", 1, "app").run(SECOND)
    assert "Job" not in text_of(made)
    assert jobs_report(facts_of(made)).to_json() == []


def test_of_many_ranks_a_few_have_a_row() -> None:
    text = text_of(late(ranks=40))
    assert sum(f"GPU {i})" in text.split("Verdict")[0] for i in range(40)) <= thresholds.RANK_ROWS + 1
    assert "median of 40 (32 more: --json)" in text


def test_as_json() -> None:
    data = json.loads(json.dumps(report_of(late()).to_json()))
    (found,) = data["jobs"]
    assert (found["program"], found["size"], found["launcher"]) == ("train", 8, {"name": "mpirun", "pid": 50})
    assert found["straggler"]["ranks"] == [3]
    assert (found["straggler"]["kind"], found["straggler"]["share"]) == ("sleep", 0.8)
    assert found["straggler"]["for_lock"] is False
    third = found["ranks"][3]
    assert (third["rank"], third["pid"], third["gpus"], third["rank_source"]) == (3, 103, "3", "environment")
    assert third["kinds_ns"] == {"collective": 2 * SECOND, "sleep": 8 * SECOND}
    assert [each["outlier"] for each in found["ranks"]] == [number == 3 for number in range(8)]
    assert data["gpus"][3] == {"gpu": 3, "ranks": [{"rank": 3, "pid": 103}], "others": []}


def monitored(ranks: int = 3, shared: str = "0,1,2") -> Profile:
    made = job(*[0.1] * ranks, gpus=True)
    Tracee(made, 900, "dcgm", 900, "dcgm").run(SECOND)
    made.processes.append(ProcessTimes(900, "dcgm", ranks={"gpu": shared}))
    return made


@pytest.mark.parametrize(
    ("made", "lines"),
    [
        (job(0.1, 0.1, gpus=True), []),
        (monitored(), ["GPUs 0-2: open in ranks 0-2 (one each), dcgm (pid 900)"]),
        (
            monitored(shared="1"),
            ["GPUs 0, 2: open in ranks 0, 2 (one each)", "GPU 1: open in rank 1 (pid 101), dcgm (pid 900)"],
        ),
    ],
)
def test_gpus(made: Profile, lines: list[str]) -> None:
    assert gpu_lines(jobs_report(facts_of(made))) == lines


def test_ranks_without_a_gpu_and_with_that_of_another() -> None:
    made = empty()
    for i, gpu in enumerate(("0", "0", "")):
        rank(made, 100 + i, i, gpu=gpu)
    assert gpu_lines(jobs_report(facts_of(made))) == ["No GPU open: rank 2 (pid 102)", "GPU 0: open in ranks 0, 1"]


def test_hostile_names_are_printable() -> None:
    made = empty()
    for i in range(3):
        rank(made, 100 + i, i, 0.9 if i else 0.1, name=HOSTILE, gpu=HOSTILE)
    text = text_of(made)
    assert all(line == printable(line) for line in text.splitlines())
    assert json.dumps(report_of(made).to_json())
