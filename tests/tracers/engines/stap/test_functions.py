"""The functions of a module, from files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from runner import FOLDER
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.engines.protocol import EngineUnavailable
from stallscope.tracers.engines.stap.functions import Chosen, Function, check, choose
from stallscope.tracers.engines.stap.module_file import ModuleFile
from stallscope.tracers.probe_targets.wanted import Library, Wanted

SLEEPS = str(FOLDER / "sleeps")
CUDA = str(FOLDER / "libcudart.so.12")


def wanted(symbols: str) -> Wanted:
    return Wanted(libraries=(Library.at(SLEEPS),), symbols=re.compile(symbols))


def test_functions_that_are_named() -> None:
    chosen = choose(wanted("^sleep_"), (), ())
    assert {name for _, name in chosen.functions} == {"sleep_1ms", "sleep_10ms", "sleep_25ms"}
    assert chosen.shown(wanted("^sleep_"))["sleep_1ms"] == Function(SLEEPS, "sleep_1ms")
    assert not chosen.remarks


def test_functions_of_cuda() -> None:
    names = {name for path, name in choose(Wanted(), (CUDA, SLEEPS, "/nowhere"), (SLEEPS,)).functions if path == CUDA}
    assert "cudaMemcpy" in names
    assert "cudaLaunchKernel" not in names


def given(path: str, *names: str) -> ModuleFile:
    return ModuleFile(Path("/x.ko"), "stallscope_fc_12345678", frozenset((path, name) for name in names))


def test_a_module_for_these_functions() -> None:
    found = choose(wanted("^sleep_1"), (), ())
    checked = check(given(SLEEPS, "sleep_1ms", "sleep_10ms"), wanted("^sleep_1"), found)
    assert sorted(checked.functions) == sorted(found.functions)
    assert not checked.remarks


def test_a_module_for_other_functions() -> None:
    """Calls of these would be shown instead, or none, as if there were none."""
    with pytest.raises(StallscopeError, match="for other functions than this command asks for: sleep_10ms"):
        check(given(SLEEPS, "sleep_1ms", "sleep_10ms"), wanted("^sleep_1ms$"), Chosen(()))


def test_a_module_for_another_file() -> None:
    """The file may be the same library at another path, for example."""
    anywhere = Wanted(libraries=(Library.at("libx.so.1"),), symbols=re.compile("^f"))
    found = Chosen((("/opt/libx.so.1", "f"),))
    with pytest.raises(StallscopeError, match=r"none of the functions that the targets have: f of /opt/libx\.so\.1"):
        check(given("/usr/lib/libx.so.1", "f"), anywhere, found)
    assert check(given("/usr/lib/libx.so.1", "f"), anywhere, Chosen(())).functions == (("/usr/lib/libx.so.1", "f"),)


def test_a_module_that_lacks_a_function_is_told() -> None:
    checked = check(given(SLEEPS, "sleep_1ms"), wanted("^sleep_1"), choose(wanted("^sleep_1"), (), ()))
    assert checked.functions == ((SLEEPS, "sleep_1ms"),)
    assert checked.remarks == ("functions that the module does not time: sleep_10ms",)


def test_none() -> None:
    with pytest.raises(EngineUnavailable, match="none of the files"):
        choose(Wanted(), (SLEEPS,), (SLEEPS,))


def test_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stallscope.tracers.engines.stap.functions.MOST", 2)
    with pytest.raises(EngineUnavailable, match="3 functions are too many"):
        choose(wanted("^sleep_"), (), ())


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    damaged = tmp_path / "libcudart.so.12"
    damaged.write_bytes(b"\x7fELF" + b"\0" * 60)
    with pytest.raises(EngineUnavailable, match="none of the files"):
        choose(Wanted(), (str(damaged),), ())


def test_functions_with_a_probe_at_their_entry_only_are_left_out() -> None:
    class Begins(Wanted):
        def is_begin(self, name: str) -> bool:
            return name == "sleep_1ms"

    begins = Begins(libraries=(Library.at(SLEEPS),), symbols=re.compile("^sleep_"))
    chosen = choose(begins, (), ())
    assert {name for _, name in chosen.functions} == {"sleep_10ms", "sleep_25ms"}
