"""Lines and inlined functions."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.converters.model import Stack
from stallscope.tracers.symbols import symboliser as subject
from stallscope.tracers.symbols.lines import Line, LineTool
from stallscope.tracers.symbols.process import ProcessSpaces
from stallscope.tracers.symbols.symboliser import Symboliser
from symbolised import strip

Nm = Callable[..., list[tuple[int, int, str, str]]]

INLINED = r"""
#include <stdio.h>
#include <unistd.h>
static void *leaf_ip, *inner_ra;
#define RA __builtin_return_address(0)
__attribute__((noinline)) static void target(void) { inner_ra = RA; leaf_ip = &&here; here: __asm__ volatile(""); }
static inline __attribute__((always_inline)) void deep(void) { target(); __asm__ volatile(""); }
static inline __attribute__((always_inline)) void shallow(void) { deep(); }
__attribute__((noinline)) void caller(void) { shallow(); __asm__ volatile(""); }
int main(void) {
    caller();
    printf("%p %p %p %p %p\n", leaf_ip, inner_ra, leaf_ip, (void *)&main, (void *)&write);
    fflush(stdout);
    pause();
}
"""


@pytest.fixture(scope="session")
def inlining(compile_program: Callable[..., Path]) -> Path:
    return compile_program(INLINED, "-g", "-fno-optimize-sibling-calls")


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(INLINED.splitlines(), 1) if text in line)


def check_lines(stack: Stack, source: str) -> None:
    assert [(frame.name, frame.file, frame.line) for frame in stack] == [
        ("caller", source, line_of("caller(void)")),
        ("shallow", source, line_of("shallow(void)")),
        ("deep", source, line_of("deep(void)")),
        ("target", source, line_of("leaf_ip = ")),
    ]
    assert {frame.kind for frame in stack} == {"native"}
    assert len({frame.address for frame in stack[:3]}) == 1
    assert len({frame.module for frame in stack}) == 1


@pytest.mark.parametrize("kept", ["program", "link", "server"])
def test_lines_and_inlined_functions(
    *,
    kept: str,
    inlining: Path,
    processes: ProcessSpaces,
    start: Callable,
    tmp_path: Path,
    serve_debug_file: Callable[[Path], Path],
) -> None:
    path = inlining
    if kept != "program":
        path = strip(inlining, tmp_path)
    if kept == "link":
        debug = tmp_path / "p.debug"
        subprocess.run(["objcopy", "--only-keep-debug", inlining, debug], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", path], check=True)
    if kept == "server":
        serve_debug_file(inlining)
    running = start(path)
    processes.adopt(running.pid)
    symboliser = Symboliser(processes, lines=LineTool.find())
    (stack,) = symboliser.user_stacks([(running.pid, 0, (running.leaf, running.inner_return))])
    check_lines(stack, str(inlining.with_suffix(".c")))
    assert sum(symboliser.lost.values()) == 0
    assert symboliser.problems == []


def test_lines_of_a_program_that_was_replaced(
    *, inlining: Path, processes: ProcessSpaces, start: Callable, tmp_path: Path, as_root: None
) -> None:
    """The tool reads the file that runs, not the one that has its path now."""
    copy = Path(shutil.copy(inlining, tmp_path / "p"))
    running = start(copy)
    copy.unlink()
    shutil.copy("/bin/true", copy)
    processes.adopt(running.pid)
    (stack,) = Symboliser(processes, lines=LineTool.find()).user_stacks(
        [(running.pid, 0, (running.leaf, running.inner_return))]
    )
    check_lines(stack, str(inlining.with_suffix(".c")))


def test_lines_are_those_of_the_call(
    compile_program: Callable[..., Path], program_source: str, processes: ProcessSpaces, start: Callable, nm: Nm
) -> None:
    """The return address of a call that is the last instruction lies in another function, on another line."""
    program = compile_program(program_source, "-fno-optimize-sibling-calls", "-g")
    symbols = {name: (value, size) for value, size, _, name in nm(program)}
    running = start(program)
    processes.adopt(running.pid)
    behind = running.main - symbols["main"][0] + sum(symbols["last_words"])
    (stack,) = Symboliser(processes, lines=LineTool.find()).user_stacks([(running.pid, 0, (running.leaf, behind))])
    line = next(i for i, text in enumerate(program_source.splitlines(), 1) if "void last_words" in text)
    assert (stack[0].name, stack[0].line) == ("last_words", line)


def test_a_line_of_dwarf_names_what_has_no_symbol(
    program: Path, processes: ProcessSpaces, start: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start(strip(program, tmp_path))
    processes.adopt(running.pid)
    tool = LineTool([], lambda *_: {})
    monkeypatch.setattr(subject.ObjectFile, "lines_fd", lambda self: 0)
    answer = (Line("_Z1fi", "/a.c", 3), Line("", "/b.c", 0), Line("_Z1gi", "/c.c", 5))
    monkeypatch.setattr(tool, "look_up", lambda fd, addresses: dict.fromkeys(addresses, answer))
    symboliser = Symboliser(processes, lines=tool)
    (stack,) = symboliser.user_stacks([(running.pid, 0, (running.leaf,))])
    assert [(f.name, f.file, f.line) for f in stack] == [("g(int)", "/c.c", 5), ("f(int)", "/a.c", 3)]
    assert symboliser.lost[subject.NO_SYMBOL] == 0
    tool.problem = "it died"
    symboliser.user_stacks([(running.pid, 0, (running.leaf,))])
    assert symboliser.problems == ["it died"]
