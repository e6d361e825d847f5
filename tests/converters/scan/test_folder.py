from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from scans import three_troubles
from stallscope.converters import pprof
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.scan import folder
from stallscope.converters.scan.report import report_of

HOW = folder.How(force=False, owner=None, mode=0o600)


def written(path: Path, how: folder.How = HOW) -> None:
    profile = three_troubles()
    folder.write(profile, report_of(profile), str(path), how)


@pytest.mark.parametrize(("path", "is_one"), [("scan.d", True), ("a/scan.d/", True), ("scan.svg", False), ("d", False)])
def test_names_of_folders(path: str, is_one: bool) -> None:
    assert folder.is_folder(path) is is_one


def test_a_folder_has_the_capture_and_the_report(tmp_path: Path) -> None:
    written(tmp_path / "scan.d")
    assert (tmp_path / "scan.d").stat().st_mode & 0o777 == 0o700
    assert sorted(each.name for each in (tmp_path / "scan.d").iterdir()) == [folder.CAPTURE, folder.SUMMARY]
    assert {each.stat().st_mode & 0o777 for each in (tmp_path / "scan.d").iterdir()} == {0o600}
    made = json.loads((tmp_path / "scan.d" / folder.SUMMARY).read_text())
    with open(folder.capture_of(str(tmp_path / "scan.d")), "rb") as file:
        again = report_of(pprof.load(file))
    assert made["processes"] == again.to_json()["processes"]
    assert made["findings"] == list(again.findings)


def test_what_is_there_is_kept_without_force(tmp_path: Path) -> None:
    written(tmp_path / "scan.d")
    with pytest.raises(StallscopeError, match=r"capture\.pb\.gz exists"):
        folder.check(str(tmp_path / "scan.d"), force=False)
    with pytest.raises(StallscopeError, match="exists"):
        written(tmp_path / "scan.d")
    folder.check(str(tmp_path / "scan.d"), force=True)
    written(tmp_path / "scan.d", HOW._replace(force=True))


def test_lanes_are_kept(tmp_path: Path) -> None:
    profile, path = three_troubles(), tmp_path / "scan.d"
    folder.write(profile, report_of(profile), str(path), HOW, b"lanes")
    assert (path / folder.LANES).stat().st_mode & 0o777 == 0o600
    assert folder.lanes_of(str(path)) == b"lanes"
    assert folder.lanes_of(str(path / folder.CAPTURE)) == folder.lanes_of(str(tmp_path)) == b""


def test_too_large_lanes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MOST_LANES", 4)
    (tmp_path / folder.LANES).write_bytes(b"lanes")
    with pytest.raises(StallscopeError, match="too large"):
        folder.lanes_of(str(tmp_path))


@pytest.mark.parametrize(("path", "is_one"), [("scan.html", True), ("A.HTML", True), ("scan.html.d", False)])
def test_names_of_pages(path: str, is_one: bool) -> None:
    assert folder.is_page(path) is is_one


def test_other_files_of_a_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "scan.d").mkdir()
    (tmp_path / "scan.d" / "notes").write_text("mine")
    folder.check(str(tmp_path / "scan.d"), force=False)
    written(tmp_path / "scan.d")
    assert (tmp_path / "scan.d" / "notes").read_text() == "mine"


@pytest.mark.parametrize("name", ["scan.d", "scan.d/"])
def test_a_file_in_the_way(tmp_path: Path, name: str) -> None:
    (tmp_path / "scan.d").write_text("mine")
    with pytest.raises(StallscopeError):
        folder.check(str(tmp_path / name), force=True)
    assert (tmp_path / "scan.d").read_text() == "mine"


def test_no_link_in_a_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "scan.d").mkdir()
    (tmp_path / "other").write_text("mine")
    (tmp_path / "scan.d" / folder.SUMMARY).symlink_to(tmp_path / "other")
    with pytest.raises(StallscopeError, match="symbolic link"):
        folder.check(str(tmp_path / "scan.d"), force=True)
    with pytest.raises(StallscopeError, match="symbolic link"):
        written(tmp_path / "scan.d", HOW._replace(force=True))
    assert (tmp_path / "other").read_text() == "mine"


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(StallscopeError, match="no folder of a scan"):
        folder.capture_of(str(tmp_path))
    assert folder.capture_of("x.pb.gz") == "x.pb.gz"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(StallscopeError, match="cannot be used"):
        folder.check(str(tmp_path / "none" / "scan.d"), force=False)


def test_a_folder_that_others_may_not_look_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "x.d")

    def refused(self: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_file", refused)
    for read in (folder.capture_of, folder.lanes_of):
        with pytest.raises(StallscopeError, match=r"(capture\.pb\.gz|lanes\.bin) cannot be read: Permission denied"):
            read(str(tmp_path / "x.d"))
