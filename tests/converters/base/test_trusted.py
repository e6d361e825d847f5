"""Users who control a path."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.converters.base.trusted import weak_part


def test_what_is_ours(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").touch()
    (tmp_path / "link").symlink_to("a/../a/./file")
    for name in ("a", "a/file", "link", "a/../link", "./a/file"):
        assert weak_part(f"{tmp_path}/{name}") == ""
    assert weak_part(f"{tmp_path}/link", links=False) == str(tmp_path / "link")
    assert weak_part("/") == weak_part("/usr/bin/env") == ""
    with pytest.raises(FileNotFoundError):
        weak_part(f"{tmp_path}/none")


@pytest.mark.parametrize(("mode", "weak"), [(0o755, False), (0o777, True), (0o1777, False)])
def test_a_folder_that_others_write_to(tmp_path: Path, mode: int, weak: bool) -> None:
    """The sticky bit keeps others from replacing what is in a folder; but what comes last is not to be written to at
    all."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").touch()
    folder.chmod(mode)
    assert weak_part(str(folder / "file")) == (str(folder) if weak else "")
    assert weak_part(str(folder)) == ("" if mode == 0o755 else str(folder))


def test_what_belongs_to_somebody_else(tmp_path: Path, require: Callable[[bool, str], None]) -> None:
    require(os.geteuid() == 0, "this needs root")
    folder, file = tmp_path / "folder", tmp_path / "folder" / "file"
    folder.mkdir()
    file.touch()
    (tmp_path / "link").symlink_to(file)
    os.chown(tmp_path / "link", 65534, 65534, follow_symlinks=False)
    assert weak_part(str(tmp_path / "link")) == str(tmp_path / "link")
    os.chown(file, 65534, 65534)
    assert weak_part(str(file)) == str(file)
    os.chown(folder, 65534, 65534)
    assert weak_part(str(file)) == str(folder)


def test_a_group_that_may_write(tmp_path: Path, require: Callable[[bool, str], None]) -> None:
    require(os.geteuid() == 0, "this needs root")
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o664)
    assert weak_part(str(file)) == ""
    os.chown(file, 0, 65534)
    assert weak_part(str(file)) == str(file)


def test_links_without_end(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert weak_part(str(tmp_path / "loop")) == str(tmp_path / "loop")
