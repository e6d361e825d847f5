"""Compiling with a stap that does what it is told. With the real one: the check `stap` of the VM lane."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.engines.protocol import EngineUnavailable
from stallscope.tracers.engines.stap.compiling import (
    SCRIPTS,
    Source,
    compile_module,
    find_stap,
)
from stallscope.tracers.engines.stap.folders import find_headers


def calls(tmp_path: Path) -> list[str]:
    log = tmp_path / "log"
    return log.read_text().splitlines() if log.exists() else []


def test_a_module_is_compiled_once(fakes: Path, build: Path, tmp_path: Path) -> None:
    said: list[str] = []
    source = Source(("oncpu", "offcpu"), ("99",), ("/bin/true",), build)
    made = compile_module(source, said.append)
    assert made.read_text().startswith("a module")
    assert compile_module(source) == made
    (call,) = calls(tmp_path)
    assert f"-r {build}" in call
    assert "-d /bin/true" in call
    assert call.endswith(".stp 99")
    assert any("compiles" in each for each in said)


def test_another_source_is_another_module(fakes: Path, build: Path, tmp_path: Path) -> None:
    one = Source(("offcpu",), (), (), build)
    made = {
        compile_module(each)
        for each in (one, Source(("oncpu",), (), (), build), Source(("offcpu",), ("9",), (), build))
    }
    assert len(made) == len(calls(tmp_path)) == 3
    (build / "Module.symvers").touch()
    assert compile_module(one) not in made


def test_few_modules_are_kept(fakes: Path, build: Path) -> None:
    for number in range(20):
        made = compile_module(Source(("oncpu",), (str(number),), (), build))
        os.utime(made, (number, number))
    assert len(list(made.parent.glob("*.ko"))) == 16
    assert made.exists()


def test_a_folder_that_others_may_write_to_is_refused(fakes: Path, build: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "stap"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(EngineUnavailable, match="others may write"):
        compile_module(Source(("offcpu",), (), (), build))


def test_no_stap(fakes: Path) -> None:
    (fakes / "stap").unlink()
    with pytest.raises(EngineUnavailable, match="no SystemTap"):
        find_stap()


def test_a_stap_that_does_not_run(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_STAP_VERSION", "what?")
    with pytest.raises(EngineUnavailable, match="does not run"):
        find_stap()


def test_no_headers(tmp_path: Path) -> None:
    with pytest.raises(StallscopeError, match="has no Makefile"):
        find_headers(tmp_path)
    if not Path(f"/lib/modules/{os.uname().release}/build/Makefile").exists():
        with pytest.raises(EngineUnavailable, match="no headers of this kernel") as error:
            find_headers()
        assert os.uname().release in error.value.remedy
        assert "(--stap-compile-only)" in error.value.remedy
        with pytest.raises(EngineUnavailable, match="no headers of this kernel") as error:
            find_headers(only_compiles=True)
        assert "--stap-build DIR" in error.value.remedy
        assert "--stap-compile-only" not in error.value.remedy


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("semantic error: resolution failed in tracepoint builder\n", "no tracepoints in the kernel's headers"),
        ("x.c:1: error: incompatible\nPass 4: compilation failed.\n", "SystemTap 4.8 is too old for this kernel"),
        ("WARNING: x\nparse error: expected\x1b[2J 'probe'\n", "stap failed: parse error: expected"),
        (
            "WARNING: Kernel function symbol table missing\nsemantic error: process return probes not available\n",
            "SystemTap 4.8 does not find the kernel's symbols",
        ),
        ("", "stap failed"),
    ],
)
def test_what_stap_says(fakes: Path, build: Path, monkeypatch: pytest.MonkeyPatch, said: str, cause: str) -> None:
    fake_make(fakes, "exit 0")
    monkeypatch.setenv("FAKE_STAP_SAYS", said or " ")
    with pytest.raises(EngineUnavailable, match=cause) as error:
        compile_module(Source(("offcpu",), (), (), build))
    assert "\x1b" not in error.value.cause


@pytest.mark.parametrize("said", ["resolution failed in tracepoint builder", "identifier 'kernel' at 1\n\nno match"])
def test_a_missing_compiler_is_told(fakes: Path, build: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("FAKE_STAP_SAYS", f"semantic error: {said}")
    fake_make(fakes, "echo '/bin/sh: 1: gcc-99: not found' >&2; exit 2")
    with pytest.raises(EngineUnavailable, match=r"no module can be compiled .* gcc-99: not found"):
        compile_module(Source(("offcpu",), (), (), build))


def fake_make(folder: Path, line: str) -> None:
    (folder / "make").write_text(f"#!/bin/sh\n{line}\n")
    (folder / "make").chmod(0o755)


def test_every_script_says_how_it_is_used() -> None:
    scripts = sorted(SCRIPTS.glob("*.stp"))
    assert [each.stem for each in scripts] == ["cuda", "ioctl", "offcpu", "oncpu", "wakeup"]
    for script in scripts:
        text = script.read_text()
        assert f"stap/{script.name}" in text, script
        assert "README.md" in text, script


def test_functions_take_the_place_of_arguments() -> None:
    text = Source(("cuda",), functions=(("/opt/a.so", "one"), ("/opt/b.so", "two"))).text()
    points = 'process("/opt/a.so").function("one").{0},\n\tprocess("/opt/b.so").function("two").{0} {{\n'
    assert "probe " + points.format("call") in text
    assert "probe " + points.format("return") in text
    assert "@1" not in text.partition("global")[2]


def test_a_path_that_a_script_cannot_name() -> None:
    with pytest.raises(StallscopeError, match="cannot take functions of"):
        Source(("cuda",), functions=(('/opt/"x', "one"),)).text()
