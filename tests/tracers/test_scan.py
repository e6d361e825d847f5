"""trace-scan's options. With a real trace: tests/live/test_scan.py."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from scans import scanned_host, three_troubles
from stallscope.converters.scan import folder
from stallscope.converters.scan.page.page import lanes_block
from stallscope.converters.scan.report import report_of
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.protocol import columns_of, find
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.scan import LEFT_OUT, main


def test_the_whole_host_for_ten_seconds(recorded: list[Request]) -> None:
    main([])
    (request,) = recorded
    assert request.scope.everything
    assert request.duration == 10
    assert [each.name for each in request.measures] == ["offcpu", "oncpu", "wakeup", "locks", "ioctl", "calls"]
    assert columns_of(request.measures)[0].name == "wall"


@pytest.mark.parametrize("scope", [("-p", "4711"), ("-n", "train"), ("--", "true")])
def test_a_choice_of_processes(recorded: list[Request], scope: tuple[str, ...]) -> None:
    main([*scope])
    (request,) = recorded
    assert not request.scope.everything
    assert request.duration == (None if "--" in scope else 10)


@pytest.mark.parametrize(("word", "name"), LEFT_OUT.items())
def test_measures_can_be_left_out(recorded: list[Request], word: str, name: str) -> None:
    main(["--without", word])
    names = {each.name for each in recorded[0].measures}
    assert names == {"offcpu", "oncpu", "wakeup", "locks", "ioctl", "calls"} - {name}


@pytest.mark.parametrize(("seconds", "ns"), [("10", 1_000_000_000), ("1e-9", 1_000_000)])
def test_slices_are_a_tenth_and_not_too_short(seconds: str, ns: int, recorded: list[Request]) -> None:
    main(["-a", "-d", seconds])
    offcpu = find(recorded[0].measures, OffCpu)
    assert offcpu and offcpu.slice == ns


def test_a_report_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = three_troubles()
    path = str(tmp_path / "scan.d")
    folder.write(profile, report_of(profile), path, folder.How(force=False, owner=None, mode=0o600))
    assert main(["--from", path]) == 0
    again = capsys.readouterr().out
    assert "main → save → fsync │ folio_wait_bit" in again
    assert main(["--from", f"{path}/{folder.CAPTURE}"]) == 0
    assert capsys.readouterr().out == again
    assert main(["--from", path, "--json"]) == 0
    assert capsys.readouterr().out == (tmp_path / "scan.d" / folder.SUMMARY).read_text()


@pytest.mark.parametrize("output", ["scan.html", "scan.d", "scan.pftrace"])
def test_outputs_with_times_need_events(recorded: list[Request], tmp_path: Path, output: str) -> None:
    main(["-o", str(tmp_path / output), "-o", str(tmp_path / "scan.svg")])
    timeline = find(recorded[0].measures, Timeline)
    assert timeline
    assert timeline.every_switch
    sampled = find(recorded[0].measures, OnCpu)
    assert sampled
    assert sampled.one_by_one


def test_other_outputs_need_none(recorded: list[Request], tmp_path: Path) -> None:
    main(["-p", "4711", "-o", str(tmp_path / "scan.svg")])
    assert find(recorded[0].measures, Timeline) is None


def test_a_page_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = scanned_host()
    report = report_of(profile)
    path, page = str(tmp_path / "scan.d"), tmp_path / "again.html"
    how = folder.How(force=False, owner=None, mode=0o600)
    folder.write(profile, report, path, how, lanes_block(profile, report))
    assert main(["--from", path, "-o", str(page)]) == 0
    assert f"wrote {page}" in capsys.readouterr().out
    assert page.stat().st_mode & 0o777 == 0o600
    source = page.read_text()
    assert 'id="lanesdata"' in source
    assert report.summary.answer[0] in html.unescape(source)
    assert main(["--from", path, "-o", str(page)]) == 1
    assert "exists" in capsys.readouterr().err
    (tmp_path / "scan.d" / folder.LANES).unlink()
    assert main(["--from", path, "-o", str(page), "--force"]) == 0
    assert 'id="lanesdata"' not in page.read_text()


def test_a_folder_is_only_made_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--from", str(tmp_path), "-o", "x.svg"]) == 2
    assert "trace-convert" in capsys.readouterr().err


def test_no_file_is_written_unasked(recorded: list[Request], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o500)
    monkeypatch.chdir(tmp_path)
    main(["-p", "4711"])
    assert recorded


def test_a_folder_in_the_way(recorded: list[Request], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scan.d").write_text("mine")
    assert main(["-o", str(tmp_path / "scan.d")]) == 1
    assert "cannot be used" in capsys.readouterr().err
    assert not recorded


@pytest.mark.parametrize(("options", "seconds"), [(("--watch", "60s"), 60), (("--watch", "5m", "-d", "600"), 300)])
def test_a_scan_that_goes_on(recorded: list[Request], options: tuple[str, ...], seconds: float) -> None:
    main([*options])
    (request,) = recorded
    assert (request.every, request.every_option, request.writers) == (seconds, "--watch", 1)
    assert request.duration == (600 if "-d" in options else None)
    assert request.quiet, "its lines are data"
    assert not find(request.measures, Timeline)


def test_what_a_condition_keeps_has_events(
    recorded: list[Request], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["--watch", "10s", "--when", "lock > 50%"])
    main(["--watch", "10s", "-o", "x-%H%M%S.d"])
    assert all(find(each.measures, Timeline) for each in recorded)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--every", "60s"), "--watch in place of --every"),
        (("--when", "lock > 50%"), "add --watch"),
        (("--watch", "1s", "--when", "lok > 50%"), "at character 1, 'lok' is no quantity, but 'lock' is"),
        (("--watch", "1s", "-o", "x.d"), "--watch needs a name for each interval"),
        (("--live",), "--live needs a terminal"),
    ],
)
def test_what_cannot_be_watched(options: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*options]) == 2
    assert says in capsys.readouterr().err
