"""Fixtures for the tests of the tracers."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from debug_server import DebugServer
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base import privilege
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import probes
from stallscope.tracers.engines.ebpf.engine import Ebpf
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.shapes import SHAPES

Require = Callable[[bool, str], None]


@pytest.fixture
def root(require: Require) -> None:
    """Skips where BPF cannot be used; with REQUIRE_LIVE=1 fails there."""
    require(privilege.allowed(), "this needs root")


@pytest.fixture(scope="session")
def go_home(tmp_path_factory: pytest.TempPathFactory, require: Require) -> Path:
    """Folder in which Go keeps what it has compiled, once for all programs."""
    require(shutil.which("go") is not None, "there is no go (package golang-go)")
    return tmp_path_factory.mktemp("go-home")


@pytest.fixture
def clang(require: Require) -> str:
    """The compiler of BPF programs."""
    found = shutil.which("clang")
    require(found is not None, "there is no clang")
    return str(found)


@pytest.fixture
def gcc(require: Require) -> str:
    """The compiler of the machine."""
    found = shutil.which("gcc")
    require(found is not None, "there is no gcc")
    return str(found)


@pytest.fixture
def opened() -> Iterator[Object]:
    """Object with our programs, not loaded."""
    made = Object(probes.object_path())
    yield made
    made.close()


@pytest.fixture
def loaded(root: None) -> Iterator[Object]:
    """Object with the programs that follow forks and execs, loaded."""
    made = probes.load_shape(ProbeOptions(Scope(everything=True), (), table_entries=1 << 14), SHAPES[0])
    yield made
    made.close()


PROGRAM = r"""
#include <stdio.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static void *leaf_ip, *inner_ra, *outer_ra;
NOINLINE void inner(void) { inner_ra = __builtin_return_address(0); leaf_ip = &&here; here: __asm__ volatile(""); }
static NOINLINE void outer_local(void) { outer_ra = __builtin_return_address(0); inner(); __asm__ volatile(""); }
/* The call is the last instruction: its return address lies in the function behind. */
NOINLINE void last_words(void) { outer_local(); __builtin_unreachable(); }
NOINLINE void innocent(void) { __asm__ volatile("nop"); }
int main(int argc, char **argv) {
    if (argc > 2) last_words();
    outer_local();
    printf("%p %p %p %p %p\n", leaf_ip, inner_ra, outer_ra, (void *)&main, (void *)&write);
    fflush(stdout);
    pause();
    return 0;
}
"""

NmSymbol = tuple[int, int, str, str]
"""Value, size, type letter, name."""


class Running(NamedTuple):
    """A `PROGRAM` that waits: its pid and what it printed."""

    pid: int
    leaf: int
    inner_return: int
    outer_return: int
    main: int
    write: int


def list_symbols(path: Path, *options: str) -> list[NmSymbol]:
    """Text symbols as binutils lists them."""
    lines = subprocess.run(["nm", "-S", *options, path], capture_output=True, text=True, check=True).stdout.split("\n")
    result = []
    for fields in map(str.split, lines):
        if fields[-1:] == ["_.stapsdt.base"]:  # weak, but the mark of a section with probes of SystemTap, not of text
            continue
        if len(fields) == 4 and fields[2] in "tTwWi":
            result.append((int(fields[0], 16), int(fields[1], 16), fields[2], fields[3].split("@")[0]))
        elif len(fields) == 3 and fields[1] in "tTwW":
            result.append((int(fields[0], 16), 0, fields[1], fields[2].split("@")[0]))
    return result


@pytest.fixture(scope="session")
def nm() -> Callable[..., list[NmSymbol]]:
    """``nm(path, *options)``: the text symbols of a file as binutils lists them, (value, size, type letter, name)."""
    return list_symbols


@pytest.fixture(scope="session")
def program_source() -> str:
    """The C code of `program`."""
    return PROGRAM


@pytest.fixture(scope="session")
def compile_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``compile_program(source, *flags, suffix=".c")``: the path of a new executable or library."""

    def build(source: str, *flags: str, suffix: str = ".c", compiler: str = "gcc") -> Path:
        folder = tmp_path_factory.mktemp("program")
        code = folder / f"program{suffix}"
        code.write_text(source)
        target = folder / "program"
        subprocess.run([compiler, "-O1", "-o", target, code, *flags], check=True)
        return target

    return build


@pytest.fixture(scope="session")
def program(compile_program: Callable[..., Path]) -> Path:
    """`PROGRAM`, not stripped."""
    return compile_program(PROGRAM, "-fno-optimize-sibling-calls")


@pytest.fixture(scope="session")
def static_program(compile_program: Callable[..., Path]) -> Path:
    """`PROGRAM` with all of libc in it, at fixed addresses."""
    return compile_program(PROGRAM, "-fno-optimize-sibling-calls", "-static", "-no-pie")


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    """``start(path, *command_before)``: run a `PROGRAM` until the test ends."""
    children = []

    def run(path: Path | str, *before: str) -> Running:
        command = [*before, os.fspath(path)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        children.append(child)
        assert child.stdout is not None
        numbers = [int(word, 16) for word in child.stdout.readline().split()]
        return Running(child.pid, *numbers)

    yield run
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def as_root(require: Callable[[bool, str], None]) -> None:
    """Skips the test without root's rights."""
    require(os.geteuid() == 0, "this test needs root")


@pytest.fixture
def serve_debug_file(
    require: Callable[[bool, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Path], Path]]:
    """``serve_debug_file(program)``: the debug file of a program, which from then on $DEBUGINFOD_URLS has."""
    require(shutil.which("debuginfod") is not None, "there is no debuginfod")
    with contextlib.ExitStack() as servers:

        def serve(program: Path) -> Path:
            server = servers.enter_context(DebugServer(program, tmp_path / "served"))
            for name, value in server.environment(tmp_path / "cache").items():
                monkeypatch.setenv(name, value)
            return server.debug_file

        yield serve


@pytest.fixture(autouse=True)
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the servers of the machine from being asked."""
    for name in [name for name in os.environ if name.startswith("DEBUGINFOD_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Request]:
    """Requests that a command made; nothing is traced."""
    seen: list[Request] = []

    def trace(_: Ebpf, request: Request) -> None:
        seen.append(request)
        raise StallscopeError("recorded")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Ebpf, "trace", trace)
    return seen
