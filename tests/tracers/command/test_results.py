from __future__ import annotations

import errno
import io
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from next_steps import step_of
from stallscope.converters import pprof
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample
from stallscope.converters.writers import output
from stallscope.tracers.command.results import Results
from stallscope.tracers.measures.offcpu import OffCpu


def given(*outputs: str, **more: Any) -> dict[str, Any]:
    return {
        "outputs": outputs,
        "force": False,
        "mode": 0o600,
        "per_thread": False,
        "as_json": False,
        "merge": False,
        "verbose": False,
        **more,
    }


def profile() -> Profile:
    labels = (("pid", 7), ("process", "demo"), ("state", "interruptible"), ("thread", "worker"), ("tid", 8))
    stack = (Frame("main"), Frame("topk"))
    return Profile(list(OffCpu().columns), [Sample(stack, (5_000_000, 2, 1, 4), labels)], title="Off-CPU time of demo")


def test_default_is_an_svg_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (path,) = Results.plan("offcpu", given()).paths
    assert path.startswith("offcpu-")
    assert path.endswith(".svg")
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_cannot_be_run_is_fitted_or_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    made, step = Results.plan("offcpu", given("-")), step_of("trace-wall -p 7", "more")
    replace(made, fit=lambda step: step._replace(sudo=True)).write(profile(), step=step)
    assert "Next: sudo trace-wall -p 7  # more\n" in capsys.readouterr().err
    replace(made, fit=lambda _: None).write(profile(), step=step)
    assert "Next:" not in capsys.readouterr().err


def test_outputs_that_cannot_be_written_are_found_before_the_trace(tmp_path: Path) -> None:
    (tmp_path / "there.svg").touch()
    for path, cause in [("there.svg", "exists"), ("no/such/folder/x.svg", "cannot be used"), ("x.doc", "no format")]:
        with pytest.raises(StallscopeError, match=cause):
            Results.plan("offcpu", given(str(tmp_path / path)))
    Results.plan("offcpu", given(str(tmp_path / "there.svg"), force=True))


def test_summary_then_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(tmp_path / "a.svg"), str(tmp_path / "b\x1b.folded")]
    Results.plan("offcpu", given(*paths)).write(profile())
    out = capsys.readouterr()
    assert out.out.endswith(f"wrote {tmp_path}/a.svg\nwrote {tmp_path}/b\\x1b.folded\n")
    assert "topk" in out.out
    assert out.err == ""
    assert Path(paths[1]).read_text() == "demo-7;main;topk 5000\n"


def test_another_next_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Results.plan("offcpu", given(str(tmp_path / "a.svg"))).write(profile(), (), step_of("trace-x", "more"))
    assert "\nNext: trace-x  # more\n" in capsys.readouterr().out


def test_per_thread(tmp_path: Path) -> None:
    path = str(tmp_path / "a.folded")
    Results.plan("offcpu", given(path, per_thread=True)).write(profile())
    assert Path(path).read_text() == "worker-7/8;main;topk 5000\n"


def test_folded_text_has_standard_output_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = io.BytesIO()
    folded = io.TextIOWrapper(written, write_through=True)
    monkeypatch.setattr(sys, "stdout", folded)
    Results.plan("offcpu", given("-", str(tmp_path / "a.svg"))).write(profile())
    assert written.getvalue() == b"demo-7;main;topk 5000\n"
    err = capsys.readouterr().err
    assert "topk" in err
    assert err.endswith(f"wrote {tmp_path}/a.svg\n")


def test_json_has_standard_output_to_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Results.plan("offcpu", given(str(tmp_path / "a.svg"), as_json=True)).write(profile())
    out = capsys.readouterr()
    assert isinstance(json.loads(out.out), dict)
    assert out.err == f"wrote {tmp_path}/a.svg\n"


def test_files_are_written_although_nobody_reads_the_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    path = tmp_path / "a.folded"
    results = Results.plan("offcpu", given(str(path)))
    with open(write, "w") as broken, pytest.raises(BrokenPipeError):
        monkeypatch.setattr(sys, "stdout", broken)
        try:
            results.write(profile())
        finally:
            monkeypatch.undo()
            os.dup2(os.open(os.devnull, os.O_WRONLY), write)
    assert path.read_text() == "demo-7;main;topk 5000\n"


def test_files_are_written_although_standard_output_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    Results.plan("offcpu", given(str(tmp_path / "x.folded"))).write(profile())
    assert (tmp_path / "x.folded").read_text() == "demo-7;main;topk 5000\n"


def test_what_was_not_written_is_not_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, missing = tmp_path / "old.folded", tmp_path / "new.svg", tmp_path / "missing.svg"
    old.write_text("before")
    results = Results.plan("offcpu", given(str(old), str(new), str(missing), force=True))
    real = output.write

    def full(profile: Profile, path: str, *rest: Any, **more: Any) -> None:
        if path != str(new):
            raise StallscopeError(f"{path}: {os.strerror(errno.ENOSPC)}")
        real(profile, path, *rest, **more)

    monkeypatch.setattr(output, "write", full)
    with pytest.raises(StallscopeError, match="2 of 3 outputs were not written"):
        results.write(profile())
    out = capsys.readouterr().out
    assert f"wrote {new}" in out
    assert f"wrote {old}" not in out
    assert f"wrote {missing}" not in out
    assert old.read_text() == "before"


def test_overwritten_file_is_claimed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "old.folded"
    path.write_text("before")
    Results.plan("offcpu", given(str(path), force=True)).write(profile())
    assert capsys.readouterr().out.endswith(f"wrote {path}\n")
    assert path.read_text() == "demo-7;main;topk 5000\n"


def test_files_belong_to_the_user_behind_sudo(root: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "54321")
    monkeypatch.setenv("SUDO_GID", "54322")
    os.chown(tmp_path, 54321, 54322)
    path = tmp_path / "a.svg"
    Results.plan("offcpu", given(str(path))).write(profile())
    status = path.stat()
    assert (status.st_uid, status.st_gid) == (54321, 54322)


def test_details_only_when_asked_for_and_safe_to_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verbose in (False, True):
        path = tmp_path / f"{verbose}.svg"
        Results.plan("offcpu", given(str(path), verbose=verbose)).write(profile(), ["files: 1 (\x1b[2J)"])
        assert path.exists()
        assert capsys.readouterr().err == ("files: 1 (\\x1b[2J)\n" if verbose else "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_takes_long_is_shown_on_a_terminal_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    big = profile()
    big.samples *= 5_000
    path = str(tmp_path / "a\x1b.folded")
    Results.plan("offcpu", given(path)).write(big)
    clear = "\r\x1b[K"
    shown = terminal.getvalue().split(clear)
    assert shown[:3] == ["", "adding up 5,000 stacks", ""]
    assert shown[3].startswith(f"writing {tmp_path}"[:79])
    assert "\x1b" not in shown[3]
    assert shown[4:] == [""]
    assert "topk" in capsys.readouterr().out


def test_what_is_short_shows_no_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    Results.plan("offcpu", given(str(tmp_path / "a.folded"))).write(profile())
    assert terminal.getvalue() == ""


def test_each_interval_has_a_name_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pattern = str(tmp_path / "x-%Y%m%d-%H%M%S.folded")
    results = Results.plan("offcpu", given(pattern, every=60.0))
    assert list(tmp_path.iterdir()) == []
    made = profile()
    for start in (1_700_000_000, 1_700_000_060):
        made.start_ns = start * 1_000_000_000 + 5
        results.publish(made)
    names = [time.strftime("x-%Y%m%d-%H%M%S.folded", time.localtime(1_700_000_000 + i * 60)) for i in range(2)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert capsys.readouterr().out == "".join(f"wrote {tmp_path}/{name}\n" for name in names)
    with pytest.raises(StallscopeError, match="exists"):
        results.publish(made)


def test_intervals_are_not_written_to_pipes(tmp_path: Path) -> None:
    pattern = str(tmp_path / "x-%Y%m%d-%H%M%S.folded")
    results = Results.plan("offcpu", given(pattern, every=60.0))
    made = profile()
    made.start_ns = 1_700_000_000_000_000_000
    os.mkfifo(time.strftime(pattern, time.localtime(1_700_000_000)))
    with pytest.raises(StallscopeError, match="is a named pipe, which --every does not write to"):
        results.publish(made)


@pytest.mark.parametrize("path", ["x.svg", "x-%H.svg", "-"])
def test_a_name_that_comes_again_is_refused(path: str) -> None:
    with pytest.raises(StallscopeError, match="a name for each interval"):
        Results.plan("offcpu", given(path, every=60.0))


def test_the_command_that_was_just_run_is_not_recommended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = profile()
    told.duration_ns = 1_000_000_000
    told.samples[0] = told.samples[0]._replace(
        labels=(("pid", 7), ("process", "demo"), ("state", "uninterruptible"), ("thread", "demo"), ("tid", 7))
    )
    for stem, is_told in (("wall", True), ("wakeup", False)):
        results = Results.plan(stem, {**given(str(tmp_path / "x.pftrace")), "pids": (7,)})
        replace(results, paths=(str(tmp_path / f"{stem}.svg"),)).write(told)
        assert ("Next: trace-wakeup -p 7 -d 5" in capsys.readouterr().out) == is_told


def test_a_file_with_merged_processes_has_what_was_answered(tmp_path: Path) -> None:
    path, traced = tmp_path / "x.pb.gz", profile()
    Results.plan("offcpu", given(str(path), merge=True)).write(traced)
    with path.open("rb") as file:
        merged = pprof.load(file)
    assert [dict(sample.labels).get("pid") for sample in merged.samples] == [None]
    assert merged.answered and merged.answered.samples == traced.samples
