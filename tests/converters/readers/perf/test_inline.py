from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stallscope.converters.base import helpers
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module
from stallscope.converters.readers.perf import inline
from stallscope.converters.readers.perf.inline import Inliner, Place
from stallscope.converters.readers.perf.lines import inlined_frames

SOURCE = """static inline __attribute__((always_inline)) int inner(volatile int *n) { return *n * 7; }
__attribute__((noinline)) int outer(volatile int *n)
{
    return inner(n) + 1;
}
int main(int argc, char **argv) { return outer(&argc); }
"""


@pytest.fixture(scope="module")
def program(require: Callable[[bool, str], None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    require(bool(shutil.which("gcc") and shutil.which("addr2line")), "gcc or addr2line is missing")
    folder = tmp_path_factory.mktemp("inline")
    (folder / "small.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O2", "-o", folder / "small", folder / "small.c"], check=True)
    return folder / "small"


@pytest.fixture
def inliner() -> Iterator[Inliner]:
    each = Inliner()
    yield each
    each.close()


def start(program: Path, function: str) -> int:
    lines = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines()
    return next(int(line.split()[0], 16) for line in lines if line.endswith(f" {function}"))


def test_functions_that_were_inlined(program: Path, inliner: Inliner) -> None:
    address = b"%x" % start(program, "outer")
    places = inliner.places(address, b"outer+0x0", bytes(program))
    assert places == [Place(b"inner", b"small.c:1"), Place(b"outer", b"small.c:4")]
    assert inliner.places(address, b"outer+0x0", bytes(program)) == places
    line = b"\t %b outer+0x0 (%b)" % (address, bytes(program))
    module = Module(str(program))
    assert inlined_frames(line, inliner, context=False) == (
        Frame("outer", "native", module, 0, "small.c", 4),
        Frame("inner", "native", module, 0, "small.c", 1),
    )
    assert [frame.name for frame in inlined_frames(line, inliner, context=True)] == [
        "outer:small.c:4",
        "inner:small.c:1",
    ]


def test_an_absolute_address_is_found_by_the_symbol(program: Path, inliner: Inliner) -> None:
    assert inliner.places(b"7ffff7dd1130", b"outer+0x0", bytes(program))[-1] == Place(b"outer", b"small.c:4")
    assert inliner.places(b"7ffff7dd1130", b"nothing+0x0", bytes(program)) == []
    assert inliner.places(b"0", b"outer+0x0", bytes(program))[-1] == Place(b"outer", b"small.c:4")


@pytest.mark.parametrize("module", [b"[kernel.kallsyms]", b"/tmp/perf-12.map", b"/nowhere", b"", b"\0", b"-e"])
def test_what_is_no_file_is_not_asked(module: bytes, inliner: Inliner) -> None:
    assert inliner.places(b"40", b"f+0x1", module) == []
    assert not inliner._processes


def test_a_file_that_is_no_program_has_no_answers(tmp_path: Path, inliner: Inliner) -> None:
    path = tmp_path / "text"
    path.write_text("hello")
    for _ in range(3):
        assert inliner.places(b"40", b"f+0x1", bytes(path)) == []
    assert inlined_frames(b"\t 40 f (%b)" % bytes(path), inliner, context=True) == ()
    assert inlined_frames(b"no frame", inliner, context=True) == ()


@pytest.mark.parametrize("name", ["@file", "-e", "--help", "with space"])
def test_names_that_mean_something_else_to_addr2line(
    program: Path, tmp_path: Path, inliner: Inliner, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """@FILE stands for the arguments in FILE."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(program, tmp_path / name)
    (tmp_path / "file").write_text("--help")
    places = inliner.places(b"%x" % start(program, "outer"), b"outer+0x0", name.encode())
    assert places == [Place(b"inner", b"small.c:1"), Place(b"outer", b"small.c:4")]


def test_few_processes_are_kept(program: Path, inliner: Inliner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "_MAX_MODULES", 2)
    address = b"%x" % start(program, "outer")
    paths = [program.with_name(f"copy{i}") for i in range(4)]
    for path in paths:
        shutil.copy(program, path)
        assert len(inliner.places(address, b"outer", bytes(path))) == 2
    kept = list(inliner._processes.values())
    assert list(inliner._processes) == [bytes(path) for path in paths[2:]]
    inliner.close()
    assert all(asked is not None and asked.process.returncode is not None for asked in kept)


def test_without_addr2line(tmp_path: Path, inliner: Inliner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "FOLDERS", (str(tmp_path),))
    path = tmp_path / "x"
    path.write_text("x")
    with pytest.raises(StallscopeError, match="needs addr2line"):
        inliner.places(b"40", b"f", bytes(path))
