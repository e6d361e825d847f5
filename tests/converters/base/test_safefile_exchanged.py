"""Outputs in a folder whose owner gives their temporary names to other files."""

from __future__ import annotations

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.base.safefile import create

STRANGER = 12345


def _swap(aside: Path, *, is_kept: bool) -> None:
    """Exchanges a file as the owner of a folder can: the file is elsewhere, or gone, and its name is another file's."""
    if is_kept:
        aside.rename(aside.with_name("kept"))
    else:
        aside.unlink()
    aside.symlink_to("/etc/passwd")


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_file_that_is_exchanged_before_it_gets_its_name(tmp_path: Path, force: bool, is_kept: bool) -> None:
    """The exchange is noticed, or the right file has the name all the same."""
    path = tmp_path / "a.svg"
    try:
        with create(path, force=force) as file:
            file.write(b"new")
            (aside,) = tmp_path.iterdir()
            _swap(aside, is_kept=is_kept)
    except StallscopeError as error:
        assert error.cause.endswith("a.svg was replaced by somebody else while it was written")
        assert error.remedy == "choose a folder that nobody else can write to"
        assert error.exit_code == 1
    else:
        assert (is_kept, force) == (True, False)
        assert not path.is_symlink()
        assert path.read_bytes() == b"new"


@pytest.mark.parametrize("force", [False, True])
def test_names_that_are_exchanged_all_the_time(tmp_path: Path, force: bool) -> None:
    """The file that has the name after a success is what was written, while the user whose folder it is exchanges
    names."""
    if os.geteuid() == 0:
        os.chown(tmp_path, STRANGER, STRANGER)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for name in os.listdir(tmp_path):
                if name.startswith(".stallscope-"):
                    with contextlib.suppress(OSError):
                        _swap(tmp_path / name, is_kept=True)

    with ThreadPoolExecutor() as pool:
        swapping = pool.submit(swap)
        try:
            for number in range(300):
                path = tmp_path / f"{number}.svg"
                try:
                    with create(path, force=force) as file:
                        file.write(str(number).encode())
                except StallscopeError as error:
                    assert "replaced by somebody else" in error.cause
                else:
                    assert not path.is_symlink()
                    assert path.read_bytes() == str(number).encode()
        finally:
            done.set()
        swapping.result()
