from __future__ import annotations

import json

import pytest
from scans import HOSTILE
from stallscope.converters.facts.restricted import of_processes
from stallscope.converters.facts.teams import Team, library_of, teams_json, teams_of, work_of
from stallscope.converters.model import Frame, Module, Profile
from stallscope.converters.phrases.teams import teams
from stallscope.converters.scan.report import report_of
from summary_profiles import EXE, facts_of, user
from team_profiles import GOMP, PID, WORKER, with_teams


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/usr/lib/libgomp.so.1.0.0", "libgomp"),
        ("/v/numpy.libs/libgomp-a34b3233.so.1.0.0", "libgomp"),
        ("/v/lib/libiomp5.so", "libiomp5"),
        ("/usr/lib/llvm-14/lib/libomp.so.5", "libomp"),
        ("/v/numpy.libs/libscipy_openblas64_-6bb31eeb.so", "libscipy_openblas64_"),
        ("/usr/lib/libopenblas-r0.3.21.so", "libopenblas"),
        ("/opt/mkl/libmkl_intel_thread.so.2", "libmkl_intel_thread"),
        ("/usr/lib/libtbb.so.12", "libtbb"),
        ("/srv/libgompers.so", ""),
        ("/usr/lib/libc.so.6", ""),
        ("/srv/app", ""),
    ],
)
def test_libraries(path: str, name: str) -> None:
    assert library_of(Frame("f", "native", Module(path))) == name


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("conv2d._omp_fn.0", "conv2d"),
        ("at::parallel_for(long) [clone ._omp_fn.3]", "at::parallel_for"),
        ("resize.omp_outlined", "resize"),
        ("resize.omp_outlined.2", "resize"),
        (".omp_outlined..4", ".omp_outlined..4"),
        ("body", "body"),
    ],
)
def test_what_a_worker_and_its_leader_run(name: str, work: str) -> None:
    own = user(EXE, name, "inner")
    assert work_of((*WORKER, *own)) == ("libgomp", work)
    leads = (*user(EXE, "main", "conv2d"), Frame("GOMP_parallel", "native", GOMP), *own)
    assert work_of(leads) == ("libgomp", work)


def test_what_is_no_team() -> None:
    assert work_of(user(EXE, "main", "conv2d")) is None
    assert work_of(WORKER) == ("libgomp", "")
    blas = Frame("inner_thread", "native", Module("/usr/lib/libopenblas.so.0"))
    assert work_of((*WORKER, *user(EXE, "body"), blas)) == ("libopenblas", ""), "the innermost library has the work"


def found(profile: Profile) -> list[tuple[str, int]]:
    return [(team.work, len(team.threads)) for team in teams_of(facts_of(profile))]


def test_two_teams_of_one_process() -> None:
    made = with_teams({"conv2d._omp_fn.0": 8, "resize._omp_fn.0": 5})
    assert found(made) == [("conv2d", 8), ("resize", 5)]
    assert teams(teams_of(facts_of(made))) == "They are teams of libgomp: 8 threads run conv2d, 5 run resize."


def test_one_team() -> None:
    found = teams_of(facts_of(with_teams({"conv2d._omp_fn.0": 8})))
    assert teams(found) == "8 of them are a team of libgomp, and run conv2d."


def test_a_thread_is_in_the_team_whose_work_it_mostly_does() -> None:
    made = with_teams({"conv2d._omp_fn.0": 4, "resize._omp_fn.0": 4}, helps=True)
    assert found(made) == [("conv2d", 4), ("resize", 4)]


def test_who_was_only_seen_in_the_library_is_in_its_only_team() -> None:
    assert found(with_teams({"conv2d._omp_fn.0": 6, "": 2})) == [("conv2d", 8)]
    assert found(with_teams({"": 8})) == [("", 8)]
    assert found(with_teams({"conv2d._omp_fn.0": 6, "resize._omp_fn.0": 5, "": 2}))[-1] == ("", 2)


def test_teams_of_some_processes() -> None:
    facts = facts_of(with_teams({"conv2d._omp_fn.0": 8}))
    assert [team.work for team in teams_of(of_processes(facts, (PID,)))] == ["conv2d"]
    assert teams_of(of_processes(facts, (100,))) == ()


def test_one_thread_is_no_team() -> None:
    assert found(with_teams({"conv2d._omp_fn.0": 1})) == []


def test_without_stacks_none_are_known() -> None:
    made = with_teams({"conv2d._omp_fn.0": 8})
    made.samples = [sample for sample in made.samples if sample.label("state") != "running"]
    assert teams_of(facts_of(made)) == ()


def test_a_crowd_is_told_with_its_teams() -> None:
    report = report_of(with_teams({"conv2d._omp_fn.0": 8, "resize._omp_fn.0": 8}))
    assert "They are teams of libgomp: 8 threads run conv2d, 8 run resize." in report.summary.answer[0]
    assert [(each["pid"], each["work"]) for each in report.to_json()["teams"]] == [(PID, "conv2d"), (PID, "resize")]
    few = report_of(with_teams({"conv2d._omp_fn.0": 2, "resize._omp_fn.0": 2}, cpus="0-3"))
    assert not any("teams" in sentence for sentence in few.summary.answer), "there is a core for each"


def test_words() -> None:
    made = [Team(1, "", "libopenblas", frozenset(range(8)), 9)]
    made += [Team(1, f"f{i}", "libgomp", frozenset((1, 2)), 1) for i in range(4)]
    assert teams(made) == (
        "They are teams of libgomp, libopenblas: 8 threads run functions of libopenblas, 2 run f0, 2 run f1, 2 more "
        "teams."
    )
    assert teams(()) == ""


def test_teams_that_run_the_same_are_told_once() -> None:
    made = [Team(pid, work, "libgomp", frozenset((1, 2)), 1) for pid in (1, 2, 3) for work in ("fit", "split")]
    assert teams(made[:3]) == "They are teams of libgomp: 4 threads run fit in 2 teams, 2 run split."
    others = [Team(1, f"f{i}", "libgomp", frozenset((1, 2)), 1) for i in (1, 2)]
    assert teams([*made, *others]) == (
        "They are teams of libgomp: 6 threads run fit in 3 teams, 6 run split in 3 teams, 2 run f1, 1 more team."
    )


def test_as_json_with_hostile_names() -> None:
    (team,) = json.loads(json.dumps(teams_json([Team(7, HOSTILE, "libgomp", frozenset((9, 8)), 3)])))
    assert (team["pid"], team["tids"], team["samples"]) == (7, [8, 9], 3)
    assert "\udcff" not in team["work"]
