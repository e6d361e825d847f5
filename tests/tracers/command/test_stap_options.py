"""Options of --engine stap."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers import offcpu


def test_files_have_to_exist() -> None:
    done = CliRunner().invoke(offcpu.main, ["--engine", "stap", "-a", "--stap-symbols", "/nowhere"])
    assert done.exit_code == 2
    assert "does not exist" in done.output


def test_a_folder_without_makefile_is_no_build_folder(tmp_path: Path) -> None:
    words = ["--engine", "stap", "-a", "--stap-compile-only", str(tmp_path / "x.ko"), "--stap-build", str(tmp_path)]
    done = CliRunner().invoke(offcpu.main, words)
    assert done.exit_code != 0
    assert not (tmp_path / "x.ko").exists()


def test_a_module_is_not_compiled_for_a_file_without_functions(tmp_path: Path) -> None:
    words = ["--engine", "stap", "-a", "--stap-compile-only", str(tmp_path / "x.ko"), "--stap-symbols", __file__]
    done = CliRunner().invoke(offcpu.main, words)
    assert isinstance(done.exception, StallscopeError)
    assert done.exception.cause.endswith("is not an ELF file: it has no functions and tables")
