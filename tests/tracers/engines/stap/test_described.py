"""Description of a module that was compiled for another machine."""

from __future__ import annotations

import os
from pathlib import Path

from stallscope.tracers.engines.stap.compiling import MOST_FILES, Source
from stallscope.tracers.engines.stap.described import described


def test_what_it_is_for(build: Path) -> None:
    header = build / "include/generated/utsrelease.h"
    header.parent.mkdir(parents=True)
    header.write_text('#define UTS_RELEASE "6.1.0-50-amd64"\n')
    source = Source(("offcpu",), files=("/usr/bin/a", "/usr/bin/b"), build=build)
    assert described(source, "trace-wall") == (
        "for trace-wall and Linux 6.1.0-50-amd64, with the functions and tables of 2 files; take it along, and give "
        "it to the same command there: trace-wall --engine stap --stap-module"
    )


def test_a_module_without_any_files_tables() -> None:
    said = described(Source(("offcpu",)), "trace-wall")
    assert f"Linux {os.uname().release}, without any file's functions and tables: user stacks will end" in said
    assert "--stap-symbols FILE" in said


def test_more_files_than_a_module_takes() -> None:
    files = tuple(f"/{number}" for number in range(MOST_FILES + 3))
    assert f"of {MOST_FILES} files (of {MOST_FILES + 3}: others" in described(Source(("offcpu",), files=files), "x")
