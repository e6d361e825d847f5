"""Options of --engine stap."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers import offcpu
from stallscope.tracers.command.stap_options import require_elf


def test_files_have_to_exist() -> None:
    done = CliRunner().invoke(offcpu.main, ["--engine", "stap", "-a", "--stap-symbols", "/nowhere"])
    assert done.exit_code == 2
    assert "does not exist" in done.output


def test_a_folder_without_makefile_is_no_build_folder(tmp_path: Path) -> None:
    words = ["--engine", "stap", "-a", "--stap-compile-only", str(tmp_path / "x.ko"), "--stap-build", str(tmp_path)]
    done = CliRunner().invoke(offcpu.main, words)
    assert done.exit_code != 0
    assert not (tmp_path / "x.ko").exists()


def test_symbols_are_those_of_an_elf_file(tmp_path: Path) -> None:
    text, empty = tmp_path / "a\x1b.txt", tmp_path / "empty"
    text.write_text("root:x:0:0\n")
    empty.touch()
    require_elf([])
    require_elf([sys.executable])
    for file in (text, empty):
        with pytest.raises(StallscopeError, match="is not an ELF file") as raised:
            require_elf([sys.executable, str(file)])
        assert raised.value.exit_code == 2
        assert "\x1b" not in raised.value.cause
        assert "a program or a library" in raised.value.remedy
    with pytest.raises(StallscopeError, match=r"cannot read .*: No such file"):
        require_elf([str(tmp_path / "gone")])


def test_a_module_is_not_compiled_for_a_file_without_functions(tmp_path: Path) -> None:
    words = ["--engine", "stap", "-a", "--stap-compile-only", str(tmp_path / "x.ko"), "--stap-symbols", __file__]
    done = CliRunner().invoke(offcpu.main, words)
    assert isinstance(done.exception, StallscopeError)
    assert done.exception.cause.endswith("is not an ELF file: it has no functions and tables")
