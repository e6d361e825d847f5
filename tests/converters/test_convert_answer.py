"""The answer of a capture, again."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from conversions import convert
from next_steps import step_of
from stallscope.converters import pprof
from stallscope.converters.model import Frame
from stallscope.converters.model.critical import CriticalPath, Segment
from stallscope.converters.model.display import Display
from stallscope.converters.model.scheduling import NO_STACK, THREAD, Scheduling
from stallscope.converters.summary.showing import show
from stallscope.converters.summary.summarize import summarize
from stallscope.converters.transforms.critical_path import path_profile
from summary_profiles import model_case


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Capture with a command that was recommended."""
    profile = model_case()
    profile.display = Display(next_step=step_of("trace-wakeup -n job -d 5", "more"))
    path = tmp_path / "capture.pb.gz"
    with path.open("wb") as file:
        pprof.save(profile, file)
    return path


def test_the_answer_of_a_capture(capture: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert convert("--answer", capture) == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[0] == summarize(model_case()).answer[0]
    assert "Next: trace-wakeup -n job -d 5  # more" in out
    assert err == ""
    assert convert("--answer", "--json", capture) == 0
    assert json.loads(capfd.readouterr().out)["answer"] == list(summarize(model_case()).answer)


def test_a_critical_path_is_answered_as_the_trace_did(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    profile = model_case()
    threads = np.array([(5, 5, 0, 0, 0), (6, 5, 0, 1, 0)], THREAD)
    profile.scheduling = Scheduling(100_000, threads=threads, names=["train", "worker"], stacks=[(Frame("nap"),)])
    segments = Segment(0, 20_000, 0, 5, "running", NO_STACK), Segment(20_000, 100_000, 1, 6, "interruptible", 0, (0,))
    profile.critical, path = CriticalPath(0, segments), tmp_path / "path.pb.gz"
    with path.open("wb") as file:
        pprof.save(path_profile(profile, profile.critical), file)
    for options, as_json in (((), False), (("--json",), True)):
        assert convert("--answer", *options, path) == 0
        shown = io.StringIO()
        show(summarize(profile), shown, as_json=as_json)
        assert capfd.readouterr().out == shown.getvalue()
    assert convert(path, "-o", tmp_path / "x.folded") == 0
    assert "worker" in (tmp_path / "x.folded").read_text(), "the other outputs show the path"
    assert convert("--answer", "--drop", "process=nobody", path) == 1
    assert convert(path, "--hide", "nothing", "-o", tmp_path / "y.pb.gz") == 0
    with (tmp_path / "y.pb.gz").open("rb") as file:
        assert pprof.load(file).answered is None


def test_an_answer_beside_outputs(capture: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.folded"
    assert convert("--answer", capture, "-o", path) == 0
    out, err = capfd.readouterr()
    assert "Next: trace-wakeup" in out
    assert "distinct stacks, total" in err
    assert path.stat().st_size
    assert convert("--answer", capture, "-o", "-") == 0
    out, err = capfd.readouterr()
    assert "Next: trace-wakeup" in err
    assert out == path.read_text()


@pytest.mark.parametrize("options", [("--drop", "process=nobody"), ("--simplify", "all")])
def test_what_was_recommended_is_of_the_whole_capture(
    options: tuple[str, ...], capture: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert convert("--answer", *options, capture) == 0
    assert "-n job" not in capfd.readouterr().out


def test_the_answer_of_merged_processes_is_of_single_ones(
    capture: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert convert("--answer", capture) == 0
    single, path = capfd.readouterr().out, tmp_path / "merged.pb.gz"
    assert convert("--answer", "--merge", capture, "-o", path) == 0
    assert capfd.readouterr().out == single
    with path.open("rb") as file:
        assert not any("pid" in dict(sample.labels) for sample in pprof.load(file).samples)
    assert convert("--answer", path) == 1
    assert "it is not known who waits" in capfd.readouterr().err


def test_wrong_use_of_answers(capture: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert convert("--json", capture) == 2
    assert "use them with --answer" in capfd.readouterr().err
    assert convert("--answer", "--diff", capture, capture) == 2
    assert "a comparison has no answer" in capfd.readouterr().err
