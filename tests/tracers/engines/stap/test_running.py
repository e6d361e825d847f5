"""staprun with one that does what it is told."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from stallscope.tracers.engines.protocol import EngineUnavailable
from stallscope.tracers.engines.stap import running
from stallscope.tracers.engines.stap.module_file import ModuleFile
from stallscope.tracers.engines.stap.running import Running, find_staprun, loaded


@pytest.fixture
def module(tmp_path: Path) -> ModuleFile:
    file = tmp_path / "x.ko"
    file.write_bytes(b"\x7fELF\0name=stallscope_f_12345678\0vermagic=6.1\0")
    return ModuleFile.read(file)


def test_what_it_prints(fakes: Path, module: ModuleFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_STAPRUN_TEXT", "first\n")
    monkeypatch.setenv("FAKE_STAPRUN_REST", "last\n")
    started = Running(find_staprun(), module, {"pids": "1,2", "children": 0})
    assert started.first() == b"first\n"
    pid, *words = (tmp_path / "log").read_text().split()
    assert words[:3] == ["-R", "-b", "16"]
    assert os.path.basename(words[3]) == "stallscope_f_12345678.ko"  # what -R renames is the file's own name
    assert words[4:] == ["pids=1,2", "children=0"]
    assert not started.stop(), "it has no module that could be asked"
    started.end()
    assert os.read(started.text, 100) == b"last\n"
    started.close()
    assert not os.path.exists(f"/proc/{pid}")


def test_a_loaded_module_needs_no_file(fakes: Path, module: ModuleFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are there when this process gets SIGKILL stay."""
    monkeypatch.setenv("FAKE_STAPRUN_TEXT", "first\n")
    started = Running(find_staprun(), module, {})
    try:
        started.first()
        assert not Path(started._folder.name).exists()
    finally:
        started.close()


def test_a_module_is_asked_to_stop(
    fakes: Path, module: ModuleFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_STAPRUN_TEXT", "first\n")
    started = Running(find_staprun(), module, {})
    try:
        started.first()
        name = f"stallscope_1_{started.pid}"
        monkeypatch.setattr(running, "_LOADED", str(tmp_path / "modules"))
        monkeypatch.setattr(running, "_CONTROL", str(tmp_path))
        (tmp_path / "modules").write_text(f"stallscope_2_77 1 0 - Live 0x0\n{name} 1 0 - Live 0x0\n")
        for each in (name, "stallscope_2_77"):
            (tmp_path / each).mkdir()
            (tmp_path / each / "stop").touch()
        assert started.stop()
        assert [(tmp_path / each / "stop").read_text() for each in (name, "stallscope_2_77")] == ["1\n", ""]
    finally:
        monkeypatch.setattr(running, "_LOADED", str(tmp_path / "none"))
        started.close()


def test_close_alone_ends_it(fakes: Path, module: ModuleFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_STAPRUN_TEXT", "first\n")
    monkeypatch.setenv("FAKE_STAPRUN_REST", "last\n" * 20_000)  # more than a pipe holds
    started = Running(find_staprun(), module, {})
    started.first()
    started.close()
    assert not os.path.exists(f"/proc/{(tmp_path / 'log').read_text().split()[0]}")


def test_a_module_that_was_left_is_unloaded(
    fakes: Path, module: ModuleFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL for staprun: only its own module goes."""
    monkeypatch.setenv("FAKE_STAPRUN_TEXT", "first\n")
    started = Running(find_staprun(), module, {})
    started.first()
    monkeypatch.setattr(running, "_LOADED", str(tmp_path / "modules"))
    names = [f"stallscope_1_{started.pid}", f"stallscope_1_1{started.pid}", f"other_{started.pid}"]
    (tmp_path / "modules").write_text("".join(f"{name} 1 0 - Live 0x0\n" for name in names))
    assert loaded() == names[:2]
    os.kill(started.pid, signal.SIGKILL)
    monkeypatch.delenv("FAKE_STAPRUN_TEXT")
    started.close()
    _, *later = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[1:] for line in later] == [["-d", names[0]]]


def test_a_system_that_loads_no_more_modules(fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_DISABLED", str(tmp_path / "disabled"))
    for text in ("0\n", "1\n"):
        find_staprun()
        (tmp_path / "disabled").write_text(text)
    with pytest.raises(EngineUnavailable, match="modules_disabled is 1"):
        find_staprun()


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("ERROR: Couldn't insert module 'x.ko': Key was rejected by service", "only signed modules"),
        ("ERROR: Couldn't insert module 'x.ko': Operation not permitted", "only signed modules"),
        ("ERROR: Couldn't insert module 'x.ko': Invalid module format", "compiled for another kernel"),
        ("ERROR: You are trying to run systemtap as a normal user.\nYou should be in stapdev", "may not load modules"),
        ("ERROR: a\x1b[2Jb", "staprun failed: ERROR: a"),
        ("", "it said nothing"),
    ],
)
def test_why_it_cannot_be_loaded(
    fakes: Path, module: ModuleFile, monkeypatch: pytest.MonkeyPatch, said: str, cause: str
) -> None:
    monkeypatch.setenv("FAKE_STAPRUN_SAYS", said)
    started = Running(find_staprun(), module, {})
    with pytest.raises(EngineUnavailable, match=cause) as error:
        started.first()
    started.close()
    assert "\x1b" not in error.value.cause


def test_what_is_missing(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running.os, "geteuid", lambda: 1000)
    with pytest.raises(EngineUnavailable, match="takes root"):
        find_staprun()
    monkeypatch.setattr(running, "can_load", lambda: False)
    with pytest.raises(EngineUnavailable, match="cannot load modules"):
        find_staprun()
    (fakes / "staprun").chmod(0o644)
    with pytest.raises(EngineUnavailable, match=f"this user may not run {fakes}/staprun"):
        find_staprun()
    (fakes / "staprun").unlink()
    with pytest.raises(EngineUnavailable, match="no staprun"):
        find_staprun()
