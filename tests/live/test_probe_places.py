"""Breakpoints in the code of others' programs while a trace runs: they are only where instructions begin."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from pythons import interpreters, running, runtime_in
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.cpython.deallocator import deallocator
from stallscope.tracers.cpython.memory import memory_of
from stallscope.tracers.cpython.runtime import find_runtime
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
from stallscope.tracers.engines.ebpf.session import Session
from stallscope.tracers.images.elf import ElfFile, FileSource
from stallscope.tracers.kernel.records import RecordSink
from stallscope.tracers.measures.offcpu import OffCpu

INT3 = 0xCC
OVERWRITE = """
import ctypes
kind = type(compile("", "", "exec"))
ctypes.c_uint64.from_address(id(kind) + 48).value += 1
print(0)
"""


def breakpoints(pid: int) -> list[int]:
    """Offsets in its interpreter's file of bytes of its code that are not the file's. All are int3."""
    mapping, _, _ = runtime_in(pid)
    with memory_of(pid) as memory:
        has = memory.read(mapping.start, mapping.end - mapping.start)
    with Path(mapping.path).open("rb") as file:
        file.seek(mapping.offset)
        own = file.read(len(has))
    places = [i for i, (ours, theirs) in enumerate(zip(own, has, strict=False)) if ours != theirs]
    assert all(has[i] == INT3 for i in places)
    return [mapping.offset + i for i in places]


def while_traced(traced: int, bystander: int) -> tuple[list[int], tuple[str, ...]]:
    """Breakpoints in the bystander while another process is traced, and the remarks on Python."""
    sink = RecordSink(())
    engine = Probes(ProbeOptions(Scope(tgids={traced}), collectors([OffCpu()]), python=True), sink)
    seen: list[int] = []

    def look(*_: object) -> None:
        if not seen:
            seen.extend([-1, *breakpoints(bystander)])
            os.kill(os.getpid(), signal.SIGINT)

    try:
        capture = Session(engine, None, None).run(sink, look)
    finally:
        engine.close()
    capture.spaces.close()
    assert seen
    return seen[1:], capture.python.remarks


def freed_at(path: str) -> int:
    """Address at which a file says that it frees code objects."""
    fd = os.open(path, os.O_RDONLY)
    try:
        elf = ElfFile(FileSource(fd))
        runtime = find_runtime(elf, path)
        assert runtime
        return deallocator(elf, runtime.code_type)[1]
    finally:
        os.close(fd)


def test_a_bystander_has_one_breakpoint_at_a_function() -> None:
    """The bystanders are interpreters, of each version that the machine has."""
    for command in interpreters().values():
        with running(command, "print(0)") as (pid, _), running(command, "print(0)") as (other, _):
            places, remarks = while_traced(pid, other)
            assert places == [freed_at(runtime_in(pid)[0].path)]
            assert not any("read each time" in remark for remark in remarks)
            assert breakpoints(other) == []


def test_a_hostile_process_puts_no_breakpoint_into_others() -> None:
    """The hostile process's own type says the middle of an instruction."""
    command = next(reversed(interpreters().values()))
    with running(command, OVERWRITE) as (hostile, _), running(command, "print(0)") as (other, _):
        places, remarks = while_traced(hostile, other)
        assert places == []
        assert any("its process frees them elsewhere than its file says" in remark for remark in remarks)
