from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.tracers.base import procfs
from stallscope.tracers.cpython.functions import Function
from stallscope.tracers.engines.ebpf.measures import watched
from stallscope.tracers.engines.ebpf.measures.watched import Watched
from stallscope.tracers.kernel import breakpoints

STEP = Function("step", "/opt/train.py", 3, (3, 12), b"")
CODE = 0x1000


class Kernel:
    """Threads and breakpoints, and a memory with 4 references and these flags."""

    def __init__(self) -> None:
        self.flags = 0
        self.references = 4
        self.tids = [[7, 8], [7, 8, 9], [7, 8, 9]]
        self.opened: list[tuple[int, int]] = []
        self.closed = 0
        self.error = 0
        self.codes: dict[bytes, bytes] = {}

    def open(self, tid: int, address: int) -> int:
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        self.opened.append((tid, address))
        return 1000 + tid

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()

    @contextmanager
    def memory_of(_: int) -> Iterator[Any]:
        yield SimpleNamespace(word=lambda address: made.references if address == CODE else made.flags)

    monkeypatch.setattr(watched, "memory_of", memory_of)
    monkeypatch.setattr(breakpoints, "open_breakpoint", made.open)
    monkeypatch.setattr(breakpoints, "cost", lambda: 11_000)
    monkeypatch.setattr(procfs, "tids", lambda _: made.tids.pop(0) if made.tids else [7, 8, 9])
    return made


def watches(kernel: Kernel) -> Watched:
    program = SimpleNamespace(attach_perf_event=lambda _: SimpleNamespace(close=kernel.close))
    codes = SimpleNamespace(update=kernel.codes.__setitem__)
    loaded: Any = SimpleNamespace(programs={"hit": program}, find_map=lambda _: codes)
    return Watched(loaded, "hit")


def test_all_threads_are_watched(kernel: Kernel) -> None:
    made = watches(kernel)
    assert made.add(5, CODE, STEP, 240)
    assert kernel.opened == [(7, CODE), (8, CODE), (9, CODE)]
    assert kernel.codes == {CODE.to_bytes(8, "little"): (240).to_bytes(8, "little")}
    assert not made.add(5, CODE, STEP, 240), "once"
    found = made.of(5, CODE)
    assert found
    assert (found[0].references, found[1]) == (4, True)
    made.close()
    made.close()
    assert kernel.closed == 3
    assert not made.add(6, CODE, STEP, 240)


def test_forked_processes(kernel: Kernel) -> None:
    made = watches(kernel)
    made.add(5, CODE, STEP, 240)
    found = made.of(6, CODE)
    assert found
    assert not found[1]
    assert made.of(6, CODE + 16) is None
    made.add(7, CODE, STEP._replace(name="other"), 240)
    assert made.of(6, CODE) is None, "of which?"


@pytest.mark.parametrize(
    ("flags", "references", "said"),
    [(0x20, 4, "begins and ends many times"), (0x80, 4, "begins and ends many times"), (3, 1 << 30, "does not count")],
)
def test_what_cannot_be_watched(kernel: Kernel, flags: int, references: int, said: str) -> None:
    kernel.flags, kernel.references = flags, references
    made = watches(kernel)
    assert not made.add(5, CODE, STEP, 240)
    (remark,) = made.remarks(0)
    assert remark.startswith("calls of train.py:step are no steps: ")
    assert said in remark
    assert not kernel.opened


def test_the_processor_has_four(kernel: Kernel) -> None:
    made = watches(kernel)
    kernel.references = 4
    for i in range(breakpoints.REGISTERS):
        kernel.tids = []
        assert made.add(5, CODE, STEP._replace(name=f"f{i}"), 240) == (i == 0)
    many = {(5, CODE + 16 * i): made.watches[5, CODE] for i in range(breakpoints.REGISTERS)}
    made.watches = many
    assert not made.add(5, 8 * CODE, STEP, 240)
    assert "a process can have 4 of them" in made.refused["train.py:step"]


def test_the_kernel_refuses(kernel: Kernel) -> None:
    kernel.error = errno.ENOSPC
    made = watches(kernel)
    assert not made.add(5, CODE, STEP, 240)
    assert "in use, by a debugger perhaps" in made.refused["train.py:step"]
    kernel.error = errno.ESRCH
    assert not made.add(5, CODE, STEP, 240)
    assert not made.watches


def test_what_is_said(kernel: Kernel) -> None:
    made = watches(kernel)
    made.add(5, CODE, STEP, 240)
    assert list(made.remarks(2000)) == [
        "breakpoints were on 1 Python function of 1 process: 2,000 traps, 11.0 µs each on this machine, 22.0 ms in "
        "all, which the steps' times contain"
    ]
