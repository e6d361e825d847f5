"""Interpreters of running processes, and functions read from them; the probes are a table in memory."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pythons import inside_of, interpreters, running, runtime_in
from stallscope.tracers.cpython import functions
from stallscope.tracers.cpython.memory import memory_of
from stallscope.tracers.engines.ebpf import interpreters as module
from stallscope.tracers.engines.ebpf.interpreters import Interpreters
from stallscope.tracers.kernel import python
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.records import RECORD_STACK
from stallscope.tracers.symbols.process import ProcessSpaces

TELL = """
def work(): pass
children = []
for _ in range(FORKS):
    child = os.fork()
    if not child:
        import time
        time.sleep(60)
        os._exit(0)
    children.append(child)
print(json.dumps([id(work.__code__), children]))
"""


class Table:
    """Stands for a BPF hash."""

    def __init__(self) -> None:
        self.content: dict[bytes, bytes] = {}

    def lookup(self, key: bytes) -> bytes | None:
        return self.content.get(key)

    def update(self, key: bytes, value: bytes) -> None:
        self.content[key] = value

    def delete(self, key: bytes) -> None:
        self.content.pop(key, None)

    def items(self) -> list[tuple[bytes, bytes]]:
        return list(self.content.items())


class Traced:
    """Interpreters of a trace that has no probes."""

    def __init__(self, *, has_python: bool = True) -> None:
        self.table = Table()
        self.generations: list[int] = []
        self.restacked = 0
        loaded = SimpleNamespace(
            find_map=lambda _: self.table, set_variable=lambda _, value: self.generations.append(value)
        )
        self.links: list[Any] = []
        self.seen: list[tuple[int, int, str]] = []
        measure = SimpleNamespace(saw_function=lambda pid, code, found: self.seen.append((pid, code, found.name)))
        options = SimpleNamespace(has_python=has_python, collectors=[measure])
        engine: Any = SimpleNamespace(object=loaded, options=options, keep=self.links.append)
        self.spaces = ProcessSpaces()
        unwinding: Any = SimpleNamespace(restack_soon=self._restack)
        self.interpreters = Interpreters(engine, self.spaces, unwinding)

    def _restack(self) -> None:
        self.restacked += 1

    def space(self, pid: int) -> bytes:
        return self.table.content[pid.to_bytes(4, "little")]

    def see(self, pid: int, code: int, wanted: int) -> None:
        """A stack with this function comes from the probes."""
        words = (python.PROCESS << 56 | pid, python.CODE << 56 | code, wanted << 32 | 1)
        head = struct.pack("<IHHQ", RECORD_STACK, 2 + len(words), 0x100, 5)
        self.interpreters.on_record(head + struct.pack("<2Q", 1, 2) + struct.pack(f"<{len(words)}Q", *words))

    def checksum(self, pid: int, code: int) -> int:
        with memory_of(pid) as memory:
            inside = inside_of(pid, memory, int.from_bytes(self.space(pid)[8:12], "little"))
            head = functions._Head.read(memory, inside, code)
            assert head
            return head.checksum(memory, inside)


@contextmanager
def interpreter(forks: int = 0) -> Iterator[tuple[int, int, list[int]]]:
    """Pid, address of a code object, and children, which are the same process."""
    command = next(reversed(interpreters().values()))
    with running(command, TELL.replace("FORKS", str(forks))) as (pid, (code, children)):
        try:
            yield pid, code, children
        finally:
            for child in children:
                os.kill(child, 9)


@pytest.fixture
def traced() -> Iterator[Traced]:
    made = Traced()
    yield made
    made.spaces.close()


@pytest.fixture(autouse=True)
def attached(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """The programs that were attached: name, inode of the file, and offset in it."""
    found: list[tuple[str, int, int]] = []

    def attach(_: object, name: str, fd: int, offset: int) -> str:
        found.append((name, os.fstat(fd).st_ino, offset))
        return "a link"

    monkeypatch.setattr(module, "attach_entry", attach)
    return found


def names(traced: Traced) -> list[str]:
    return [function.name for function in traced.interpreters.found().by_code.values()]


def test_probes_are_told_once(traced: Traced) -> None:
    with interpreter() as (pid, _, _), interpreter() as (other, _, _):
        traced.spaces.adopt(pid)
        traced.interpreters.poll()
        assert (traced.generations, traced.restacked) == ([1], 1)
        first = traced.space(pid)
        traced.spaces.adopt(pid)
        traced.spaces.adopt(other)
        traced.interpreters.poll()
        assert (traced.generations, traced.restacked) == ([1, 2], 2)
        assert traced.space(pid) == first
        assert traced.space(other)[8:12] != first[8:12]
        traced.interpreters.poll()
        assert traced.generations == [1, 2]


def counted(space: bytes) -> int:
    """`freed`, behind which are four bytes and the address of the interpreter lock."""
    return int.from_bytes(space[-16:-12], "little")


def test_freed_functions_are_counted_by_one_probe_per_file(traced: Traced, attached: list[Any]) -> None:
    with interpreter() as (pid, _, _), interpreter() as (other, _, _):
        for process in (pid, other):
            traced.spaces.adopt(process)
        traced.interpreters.poll()
        assert [counted(traced.space(process)) for process in (pid, other)] == [1, 1]
        mapping, runtime, address = runtime_in(pid)
        with memory_of(pid) as memory:
            freed = memory.word(address - runtime.vaddr + runtime.code_type + 48)
        assert attached == [("python_freed", mapping.inode, freed - mapping.start + mapping.offset)]
        assert traced.links == ["a link"]
        # The probes count; what they know of the process stays the same.
        key = pid.to_bytes(4, "little")
        before = traced.space(pid)
        traced.table.content[key] = before[:-16] + (7).to_bytes(4, "little") + before[-12:]
        traced.spaces.adopt(pid)
        traced.interpreters.poll()
        assert traced.generations == [1]
        assert counted(traced.space(pid)) == 7


def test_without_that_probe_functions_are_read_each_time(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise BpfError("attach python_freed", 1, [])

    monkeypatch.setattr(module, "attach_entry", refuse)
    with interpreter() as (pid, _, _):
        traced.spaces.adopt(pid)
        traced.interpreters.poll()
        assert counted(traced.space(pid)) == 0


OVERWRITE = """
import ctypes
kind = type(compile("", "", "exec"))
ctypes.c_uint64.from_address(id(kind) + 48).value += MOVED
print(0)
"""


@pytest.mark.parametrize("moved", [1, 5, -(1 << 20)])
def test_a_process_chooses_no_place(traced: Traced, attached: list[Any], moved: int) -> None:
    command = next(reversed(interpreters().values()))
    with running(command, OVERWRITE.replace("MOVED", str(moved))) as (hostile, _), interpreter() as (pid, _, _):
        traced.spaces.adopt(hostile)
        traced.interpreters.poll()
        assert attached == []
        assert counted(traced.space(hostile)) == 0
        (said,) = traced.interpreters.found().remarks
        assert said.startswith("code objects of 1 interpreter are read each time: ")
        assert said.endswith(": its process frees them elsewhere than its file says")
        traced.spaces.adopt(pid)
        traced.interpreters.poll()
        assert len(attached) == 1, "others of the same file have it"
        assert (counted(traced.space(hostile)), counted(traced.space(pid))) == (0, 1)


def test_a_file_without_a_proven_place_has_no_probe(
    traced: Traced, attached: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise module.Unproven("no function begins there")

    monkeypatch.setattr(module, "deallocator", refuse)
    with interpreter() as (pid, _, _), interpreter() as (other, _, _):
        for process in (pid, other):
            traced.spaces.adopt(process)
        traced.interpreters.poll()
        assert counted(traced.space(pid)) == 0
    assert attached == []
    (said,) = traced.interpreters.found().remarks
    assert said.startswith("code objects of 2 interpreters are read each time: ")


def test_switched_off() -> None:
    off = Traced(has_python=False)
    with interpreter() as (pid, _, _):
        off.spaces.adopt(pid)
        off.interpreters.poll()
        off.interpreters.finish()
    assert not off.table.content
    assert not off.interpreters.found().by_code
    assert off.interpreters.found().remarks == ()
    off.spaces.close()


def test_functions_stay_when_the_process_ends(traced: Traced) -> None:
    with interpreter() as (pid, code, _):
        traced.spaces.adopt(pid)
        traced.interpreters.poll()
        traced.see(pid, code, traced.checksum(pid, code))
        traced.interpreters.poll()
    traced.interpreters.finish()
    assert names(traced) == ["work"]
    assert traced.seen == [(pid, code, "work")], "the measures are told once"


def test_another_function_there_has_no_name(traced: Traced) -> None:
    with interpreter() as (pid, code, _):
        traced.spaces.adopt(pid)
        traced.interpreters.poll()
        traced.see(pid, code, traced.checksum(pid, code) ^ 1)
        traced.see(pid, 0x10, 5)
        traced.see(pid + 1, code, 5)
        traced.interpreters.poll()
        traced.interpreters.finish()
    assert names(traced) == []


def test_function_of_a_process_that_has_ended(traced: Traced) -> None:
    """One that was forked has the same."""
    with interpreter(forks=1) as (pid, code, (child,)):
        traced.spaces.adopt(pid)
        traced.interpreters.poll()
        traced.table.update(child.to_bytes(4, "little"), traced.space(pid))  # as the probes do
        traced.spaces.fork(pid, child, time.monotonic_ns())
        traced.spaces.adopt(child)
        traced.interpreters.poll()
        assert traced.space(child) == traced.space(pid)
        os.kill(child, 9)
        while os.path.exists(f"/proc/{child}/exe"):
            time.sleep(0.001)
        traced.see(child, code, traced.checksum(pid, code))
        traced.interpreters.poll()
        assert names(traced) == ["work"]


def test_forked_process_that_only_the_probes_know(traced: Traced) -> None:
    with interpreter(forks=1) as (pid, code, (child,)):
        traced.spaces.adopt(pid)
        traced.interpreters.poll()
        traced.table.update(child.to_bytes(4, "little"), traced.space(pid))
        traced.see(child, code, traced.checksum(pid, code))
        traced.interpreters.poll()
        assert names(traced) == ["work"]


@pytest.mark.parametrize("is_late", [False, True])
def test_forked_process_that_the_probes_do_not_know(traced: Traced, is_late: bool) -> None:
    """The process was forked before the interpreter of the other one was found, whenever that is told."""
    with interpreter(forks=1) as (pid, code, (child,)):
        traced.spaces.adopt(pid)
        if is_late:
            traced.interpreters.poll()
        traced.spaces.fork(pid, child, time.monotonic_ns())
        traced.interpreters.poll()
        assert traced.space(child)
        traced.see(child, code, traced.checksum(child, code))
        traced.interpreters.poll()
        assert names(traced) == ["work"]


def test_processes_that_ended_are_forgotten(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PRUNE", 0.0)
    with interpreter() as (pid, _, _), interpreter() as (other, _, _):
        for process in (pid, other):
            traced.spaces.adopt(process)
        traced.interpreters.poll()
        assert len(traced.table.content) == 2
        os.kill(other, 9)
        os.waitpid(other, 0)
        traced.interpreters.poll()
        assert list(traced.table.content) == [pid.to_bytes(4, "little")]


def test_functions_leave_that_no_stack_has(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FUNCTIONS", 4)
    with interpreter() as (pid, code, _):
        traced.spaces.adopt(pid)
        traced.interpreters.poll()
        wanted = traced.checksum(pid, code)
        for other in (1, 2):
            traced.see(pid, code, wanted ^ other)
        traced.see(pid, code, wanted)
        assert not traced.interpreters.is_full
        traced.interpreters.poll()
        monkeypatch.setattr(traced.interpreters, "_most", (2, 1 << 20))
        assert traced.interpreters.is_full
        traced.interpreters.keep(np.array([7, python.CODE << 56 | code, wanted << 32 | 5, 9], np.uint64))
        assert names(traced) == ["work"]
        assert not traced.interpreters.is_full
        assert traced.interpreters._most[0] == (1 + 4) // 2
        traced.interpreters.keep(np.array([python.CODE << 56 | code, wanted << 32 ^ 1 << 32, 9], np.uint64))
        assert names(traced) == []
        traced.see(pid, code, wanted)
        traced.interpreters.poll()
        assert names(traced) == ["work"]


def test_a_function_that_could_not_be_read_is_looked_for_again(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PRUNE", 0.0)
    refusals = [OSError(5, "no answer"), OSError(5, "no answer")]

    def may_refuse(*given: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return functions.read_functions(*given)

    with interpreter() as (pid, code, _):
        traced.spaces.adopt(pid)
        traced.interpreters.poll()
        monkeypatch.setattr(module, "read_functions", may_refuse)
        traced.see(pid, code, traced.checksum(pid, code))
        traced.interpreters.poll()
        assert names(traced) == []
        traced.interpreters.poll()
        traced.interpreters.poll()
    assert names(traced) == ["work"]


def test_a_function_that_is_gone_is_not_looked_for_for_ever(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PRUNE", 0.0)
    looks: list[Any] = []
    monkeypatch.setattr(module, "read_functions", lambda *given: looks.append(given) or [None])
    with interpreter() as (pid, code, _):
        traced.spaces.adopt(pid)
        traced.see(pid, code, 5)
        for _ in range(20):
            traced.interpreters.poll()
    assert len(looks) == 1 + 3


def test_limits(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BYTES", 10)
    with interpreter() as (pid, code, _):
        traced.spaces.adopt(pid)
        traced.interpreters.poll()
        traced.see(pid, code, traced.checksum(pid, code))
        traced.interpreters.poll()
    assert names(traced) == []


def test_refusal_is_told(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise module.Refused("it is too good")

    monkeypatch.setattr(module, "layout_of", refuse)
    with interpreter() as (pid, _, _):
        traced.spaces.adopt(pid)
        traced.interpreters.poll()
    (said,) = traced.interpreters.found().remarks
    assert said.startswith("Python functions of 1 process are not shown: ")
    assert said.endswith("it is too good")
    assert not traced.table.content
