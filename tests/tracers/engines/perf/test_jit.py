"""Names of code that was made at run time, of this process and its user's map."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from stallscope.converters.model import Frame
from stallscope.tracers.engines.perf import jit
from stallscope.tracers.engines.perf.jit import JitNames

MAP = Path(f"/tmp/perf-{os.getpid()}.map")


@pytest.fixture
def names() -> Iterator[JitNames]:
    made = JitNames()
    made.begins(os.getpid())
    yield made
    made.close()
    MAP.unlink(missing_ok=True)


def test_names(names: JitNames) -> None:
    MAP.write_text("1000 10 f\n2000 10 py::g:/x/y.py\n")
    found = [names.frame(os.getpid(), address) for address in (0x1000, 0x100F, 0x1010, 0x2001, 0, 1 << 63)]
    f, g = Frame("f", "jit"), Frame("g", "python", None, 0, "/x/y.py")
    assert found == [f, f, None, g, None, None]


def test_a_map_that_grows(names: JitNames, monkeypatch: pytest.MonkeyPatch) -> None:
    """The map is read again, but not for each address."""
    MAP.write_text("1000 10 f\n")
    assert names.frame(os.getpid(), 0x2000) is None
    MAP.write_text("1000 10 f\n2000 10 g\n")
    assert names.frame(os.getpid(), 0x2000) is None
    monkeypatch.setattr(jit, "_AGAIN", 0)
    assert names.frame(os.getpid(), 0x2000) == Frame("g", "jit")


def test_maps_that_are_not_read(names: JitNames, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_AGAIN", 0)
    true = tmp_path / "true"
    true.write_text("1000 10 f\n")
    MAP.symlink_to(true)
    assert names.frame(os.getpid(), 0x1000) is None
    MAP.unlink()
    os.mkfifo(MAP)
    assert names.frame(os.getpid(), 0x1000) is None
    MAP.unlink()
    if os.geteuid() == 0:
        pid = 1  # a process of root: another user's file names nothing in it
        theirs = Path(f"/tmp/perf-{pid}.map")
        if not theirs.exists():
            theirs.write_text("1000 10 f\n")
            try:
                assert names.frame(pid, 0x1000) == Frame("f", "jit")
                os.chown(theirs, 54321, 54321)
                assert JitNames().frame(pid, 0x1000) is None
            finally:
                theirs.unlink()


def test_a_process_that_is_gone(names: JitNames) -> None:
    assert names.frame(1 << 23, 0x1000) is None


def test_processes_that_ended_are_not_kept(names: JitNames, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_MOST", 3)
    for pid in (1, 2, 1 << 23, os.getpid()):
        names.begins(pid)
    assert len(names._spaces.processes) == 3, "also if nothing tells of their ends"
    names.frame(os.getpid(), 0x1000)
    names.ends(os.getpid())
    names.ends(1 << 22)
    assert len(names._spaces.processes) == 2
    assert not names._read
    MAP.write_text("1000 10 f\n")
    assert names.frame(os.getpid(), 0x1000) == Frame("f", "jit"), "a thread of it goes on"
