from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.converters.model import Frame, Module
from stallscope.tracers.images import debuginfod
from stallscope.tracers.images.maps import Mapping
from stallscope.tracers.symbols import symboliser as subject
from stallscope.tracers.symbols.kallsyms import Kallsyms
from stallscope.tracers.symbols.lines import LineTool
from stallscope.tracers.symbols.process import ProcessSpaces
from stallscope.tracers.symbols.symboliser import Symboliser
from symbolised import names, strip

Nm = Callable[..., list[tuple[int, int, str, str]]]

SIGNAL = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>
static void *handler_ip, *restorer, *interrupted;
__attribute__((noinline)) static void handler(int number, siginfo_t *info, void *context) {
    restorer = __builtin_return_address(0);
    interrupted = (void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    handler_ip = &&here; here: __asm__ volatile("");
}
extern char first_byte[], caller_return[];
__asm__(".text\n.type before, @function\nbefore: nop\n.size before, .-before\n"
        ".globl first_byte\n.type first_byte, @function\nfirst_byte: ud2\n ret\n.size first_byte, .-first_byte\n");
static void fault(int number, siginfo_t *info, void *context) {
    handler(number, info, context);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}
int main(void) {
    struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO };
    sigaction(SIGILL, &action, 0);
    ((void (*)(void))first_byte)();
    struct sigaction direct = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    void *at_first_byte = interrupted;
    sigaction(SIGUSR1, &direct, 0);
    raise(SIGUSR1);
    printf("%p %p %p %p %p\n", handler_ip, restorer, at_first_byte, (void *)&main, (void *)&write);
    fflush(stdout);
    pause();
}
"""


@pytest.mark.parametrize("kind", ["program", "static_program"])
def test_a_real_stack(
    kind: str,
    request: pytest.FixtureRequest,
    processes: ProcessSpaces,
    symboliser: Symboliser,
    start: Callable,
) -> None:
    path = request.getfixturevalue(kind)
    running = start(path)
    processes.adopt(running.pid)
    addresses = (running.leaf, running.inner_return, running.outer_return)
    (stack,) = symboliser.user_stacks([(running.pid, 0, addresses)])
    assert [frame.name for frame in stack] == ["main", "outer_local", "inner"]
    assert {frame.kind for frame in stack} == {"native"}
    assert {frame.module.path for frame in stack if frame.module} == {str(path)}
    # Addresses are the file's: addr2line agrees.
    asked = [hex(stack[2].address), *(hex(frame.address - 1) for frame in stack[:2])]
    listed = subprocess.run(["addr2line", "-f", "-e", path, *asked], capture_output=True, text=True).stdout.split("\n")
    assert listed[::2][:3] == ["inner", "main", "outer_local"]
    assert sum(symboliser.lost.values()) == 0


@pytest.mark.parametrize("layout", ["-Wl,-z,separate-code", "-Wl,-z,noseparate-code", "-no-pie"])
def test_layouts(
    *,
    layout: str,
    compile_program: Callable[..., Path],
    program_source: str,
    processes: ProcessSpaces,
    symboliser: Symboliser,
    start: Callable,
) -> None:
    running = start(compile_program(program_source, "-fno-optimize-sibling-calls", layout))
    processes.adopt(running.pid)
    assert names(symboliser, running.pid, running.leaf, running.inner_return) == ["inner", "outer_local"]
    libc = names(symboliser, running.pid, running.write)
    assert libc == ["write"]


def test_a_call_as_the_last_instruction(
    program: Path, nm: Nm, processes: ProcessSpaces, symboliser: Symboliser, start: Callable
) -> None:
    symbols = {name: (value, size) for value, size, _, name in nm(program)}
    behind = sum(symbols["last_words"])
    code = subprocess.run(
        ["objdump", "-d", f"--start-address={behind - 5:#x}", f"--stop-address={behind:#x}", program],
        capture_output=True,
        text=True,
    ).stdout
    assert re.search(r"call\s+\w+ <outer_local>\s*$", code)
    running = start(program)
    processes.adopt(running.pid)
    address = running.main - symbols["main"][0] + behind
    exact, caller = names(symboliser, running.pid, address), names(symboliser, running.pid, running.leaf, address)
    assert exact != ["last_words"]
    assert caller == ["inner", "last_words"]


def test_unresolved_frames_never_vanish(
    *, program: Path, processes: ProcessSpaces, symboliser: Symboliser, start: Callable, tmp_path: Path, nm: Nm
) -> None:
    stripped = tmp_path / "strip ped;"
    subprocess.run(["objcopy", "--strip-all", program, stripped], check=True)
    running = start(stripped)
    processes.adopt(running.pid)
    at = {name: value for value, _, _, name in nm(program)}
    (stack,) = symboliser.user_stacks([(running.pid, 0, (running.main, running.main + 4, 0, 5, 2**64 - 1))])
    assert [frame.name for frame in reversed(stack)] == [
        f"[strip ped;!fn_{at['main']:#x}]",
        f"[strip ped;!fn_{at['main']:#x}]",
        "[unmapped]",
        "[unmapped]",
        "[unmapped]",
    ]
    assert [frame.address for frame in stack[-2:]] == [at["main"] + 4, at["main"]]
    assert symboliser.lost[subject.NO_SYMBOL] == 2
    assert symboliser.lost[subject.NO_MAPPING] == 3
    assert names(symboliser, 2**22 + 3, 0x1000) == ["[unmapped]"]
    assert names(symboliser, running.pid, running.main, epoch=7) == ["[unmapped]"]
    assert symboliser.user_stacks([(running.pid, 0, ())]) == [()]


def test_equal_functions_without_a_name_are_one(
    *, program: Path, processes: ProcessSpaces, symboliser: Symboliser, start: Callable, tmp_path: Path, nm: Nm
) -> None:
    """Two return addresses of one function, of two processes; but nothing is said of what lies behind its end."""
    at = {name: (value, size) for value, size, _, name in nm(program)}
    stripped = strip(program, tmp_path)
    first, second = start(stripped), start(stripped)
    for running in (first, second):
        processes.adopt(running.pid)
    begin, size = at["main"]
    requests = [(r.pid, 0, (r.leaf, r.main + offset)) for r in (first, second) for offset in (1, 9, size)]
    found = {stack[0].name for stack in symboliser.user_stacks(requests)}
    assert found == {f"[stripped!fn_{begin:#x}]"}
    # The leaf is not a return address: one byte behind the function is outside.
    behind = names(symboliser, first.pid, first.main + size)
    assert behind in ([f"[stripped+{begin + size:#x}]"], [f"[stripped!fn_{begin + size:#x}]"])
    gap = at["_start"][0] + at["_start"][1]  # the padding of the C library's start code
    assert names(symboliser, first.pid, first.main - begin + gap) == [f"[stripped+{gap:#x}]"]


def test_names_from_a_debuginfod_server(
    *,
    program: Path,
    processes: ProcessSpaces,
    start: Callable,
    tmp_path: Path,
    serve_debug_file: Callable[[Path], Path],
) -> None:
    running = start(strip(program, tmp_path))
    processes.adopt(running.pid)
    addresses = (running.leaf, running.inner_return, running.outer_return)
    without = names(Symboliser(processes), running.pid, *addresses)
    assert all(name.startswith("[stripped!fn_0x") for name in without)
    serve_debug_file(program)
    said: list[str] = []
    symboliser = Symboliser(processes, on_progress=said.append)
    assert names(symboliser, running.pid, *addresses) == ["inner", "outer_local", "main"]
    assert symboliser.lost[subject.NO_SYMBOL] == 0
    assert symboliser.problems == []


def test_a_server_that_fails_costs_no_stack(
    *, program: Path, processes: ProcessSpaces, start: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start(strip(program, tmp_path))
    processes.adopt(running.pid)
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1")
    monkeypatch.setattr(debuginfod, "_MAX_FAILURES", 1)
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    symboliser = Symboliser(processes)
    (name,) = names(symboliser, running.pid, running.leaf)
    assert name.startswith("[stripped!fn_0x")
    assert symboliser.problems == ["debuginfod was asked no more: Connection refused"]


def test_the_file_with_the_most_frames_is_asked_for_first(
    *,
    program: Path,
    compile_program: Callable[..., Path],
    program_source: str,
    processes: ProcessSpaces,
    start: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many, named = tmp_path / "few", tmp_path / "many", tmp_path / "named"
    other = compile_program(program_source.replace("return 0", "return 3"), "-fno-optimize-sibling-calls")
    for source, target in ((program, few), (other, many)):
        subprocess.run(["objcopy", "--strip-all", source, target], check=True)
    third = compile_program(program_source.replace("return 0", "return 4"), "-fno-optimize-sibling-calls")
    shutil.copy(third, named)
    asked: list[str] = []

    class Recorder:
        problem = ""

        def find(self, build_id: str, name: str) -> None:
            asked.append(name)

        def close(self) -> None: ...

    monkeypatch.setattr(subject.Debuginfod, "from_environment", lambda _: Recorder())
    requests = []
    for path, frames in ((few, 1), (many, 3), (named, 5)):
        running = start(path)
        processes.adopt(running.pid)
        requests.append((running.pid, 0, (running.leaf, running.inner_return, running.outer_return, 0, 0)[:frames]))
    Symboliser(processes).user_stacks(requests)
    assert asked == ["many", "few"]
    asked.clear()
    Symboliser(processes, lines=LineTool([], lambda *_: {})).user_stacks(requests)
    assert asked == ["many", "named", "few"]


def test_every_reason_has_its_count(processes: ProcessSpaces, symboliser: Symboliser) -> None:
    pid = 2**22 + 9
    gone = Mapping(0x1000, 0x2000, 0x3000, "/nonexistent/libgone.so.1 (deleted)", 1, 5)
    processes.mmap(pid, gone)
    processes.mmap(pid, Mapping(0x5000, 0x6000, 0, "//anon"))
    processes.mmap(pid, Mapping(0x7000, 0x8000, 0, "[anon:jit \x1b[31m]"))
    processes.mmap(pid, gone._replace(start=0x9000, end=0xA000, offset=0))
    processes.mmap(pid, gone._replace(start=0x9000, end=0xA000, offset=0, inode=6))
    processes.mmap(pid, Mapping(0xB000, 0xC000, 0, "[uprobes]"))
    assert names(symboliser, pid, 0x1010, 0x5005, 0x7005, 0x9005, 0xB005) == [
        "[libgone.so.1+0x3010]",
        "[anon]",
        "[anon]",
        "[remapped]",
        "[uprobes+0x5]",
    ]
    lost = symboliser.lost
    assert (lost[subject.NO_FILE], lost[subject.ANONYMOUS], lost[subject.AMBIGUOUS]) == (2, 2, 1)


def test_signal_frames(
    compile_program: Callable[..., Path], processes: ProcessSpaces, symboliser: Symboliser, start: Callable
) -> None:
    """The interrupted instruction is the first of its function: one byte earlier is another function."""
    running = start(compile_program(SIGNAL))
    handler_ip, restorer, interrupted = running.leaf, running.inner_return, running.outer_return
    processes.adopt(running.pid)
    found = names(symboliser, running.pid, handler_ip, restorer, interrupted)
    assert found[0] == "handler"
    assert re.fullmatch(r"__restore_rt|\[libc.so.6(\+|!fn_)0x[0-9a-f]+\]", found[1])
    assert found[2] == "first_byte"
    # The same address behind a call is the function before.
    assert names(symboliser, running.pid, handler_ip, interrupted) == ["handler", "before"]


def test_the_dead_and_the_replaced_keep_their_names(
    *,
    program: Path,
    static_program: Path,
    tmp_path: Path,
    processes: ProcessSpaces,
    symboliser: Symboliser,
    start: Callable,
    as_root: None,
) -> None:
    copy = Path(shutil.copy(program, tmp_path / "p"))
    running = start(copy)
    copy.unlink()
    shutil.copy(static_program, copy)
    processes.adopt(running.pid)
    os.kill(running.pid, 9)
    processes.exit(running.pid)
    assert names(symboliser, running.pid, running.leaf, running.inner_return) == ["inner", "outer_local"]


def test_exited_before_its_maps_were_read(
    program: Path, processes: ProcessSpaces, symboliser: Symboliser, start: Callable
) -> None:
    """The events are all that is left, and the file where it was."""
    running = start(program)
    live = ProcessSpaces()
    live.adopt(running.pid)
    mapping = live.processes[running.pid].space.find(running.main)
    assert mapping is not None
    processes.mmap(2**22 + 11, mapping)
    assert names(symboliser, 2**22 + 11, running.leaf, running.inner_return) == ["inner", "outer_local"]


def test_jit_and_python_frames(processes: ProcessSpaces, symboliser: Symboliser, start: Callable) -> None:
    code = (
        "import os, time\n"
        "open(f'/tmp/perf-{os.getpid()}.map', 'w').write('7f00 10 py::f:/a.py\\n8000 10 LazyCompile:~g\\n')\n"
        "print('0 0 0 0 0', flush=True); time.sleep(60)"
    )
    running = start(code, sys.executable, "-c")
    try:
        processes.adopt(running.pid)
        processes.mmap(running.pid, Mapping(0x7000, 0x9000, 0, "//anon"))
        (stack,) = symboliser.user_stacks([(running.pid, 0, (0x7F00, 0x8010, 0x8011))])
        assert stack == (
            Frame("[anon]", "native", None, 0x8011),
            Frame("LazyCompile:~g", "jit", None, 0x8010),
            Frame("f", "python", None, 0x7F00, "/a.py"),
        )
    finally:
        Path(f"/tmp/perf-{running.pid}.map").unlink()


def test_cpp_names_are_readable(
    compile_program: Callable[..., Path],
    program_source: str,
    processes: ProcessSpaces,
    symboliser: Symboliser,
    start: Callable,
) -> None:
    source = program_source.replace("(void *)&main, (void *)&write", "(void *)&inner, (void *)&write")
    running = start(compile_program(source, "-fno-optimize-sibling-calls", suffix=".cc", compiler="g++"))
    processes.adopt(running.pid)
    assert names(symboliser, running.pid, running.leaf, running.inner_return) == ["inner()", "outer_local()"]


def test_frames_are_shared(program: Path, processes: ProcessSpaces, symboliser: Symboliser, start: Callable) -> None:
    first, second = start(program), start(program)
    processes.adopt(first.pid)
    processes.adopt(second.pid)
    one, two = symboliser.user_stacks([(r.pid, 0, (r.leaf, r.inner_return)) for r in (first, second)])
    assert one == two
    assert all(a is b for a, b in zip(one, two, strict=True))


def test_kernel_stacks(processes: ProcessSpaces) -> None:
    text = (
        b"ffffffff81000000 T _stext\nffffffff81000000 T do_wait\nffffffff81000100 T caller\n"
        b"ffffffff81000200 T _etext\nffffffffc0000000 t nv_ioctl\t[nvidia]\n"
    )
    symboliser = Symboliser(processes, Kallsyms(text))
    base = 0xFFFFFFFF81000000
    (stack, empty) = symboliser.kernel_stacks([(base + 0x10, base + 0x100, base + 0x200, 0xFFFFFFFFC0000010, 5), ()])
    assert [frame.name for frame in reversed(stack)] == ["do_wait", "do_wait", "caller", "nv_ioctl", "[kernel]"]
    assert empty == ()
    assert stack[-1] == Frame("do_wait", "kernel", Module("[kernel.kallsyms]"), 0x10)
    assert stack[1] == Frame("nv_ioctl", "kernel", Module("nvidia.ko"), 0x10)
    absolute = Symboliser(processes, Kallsyms(text, absolute=True))
    assert absolute.kernel_stacks([(base + 0x10,)])[0][0].address == base + 0x10
    assert symboliser.lost[subject.NO_KERNEL_SYMBOL] == 1
    assert [f.name for f in Symboliser(processes).kernel_stacks([(base,)])[0]] == ["[kernel]"]
