"""The thread between a trace and the processes that compile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from descriptors import readable
from stallscope.tracers.images.elf import BytesSource, ElfFile, FileSource
from stallscope.tracers.unwind import compiling as module
from stallscope.tracers.unwind.cache import TableCache
from stallscope.tracers.unwind.compiling import Compiling, Request
from stallscope.tracers.unwind.pool import Answer, Job, Pool
from stallscope.tracers.unwind.rows import UnwindTable

PATIENCE = 60.0
Result = tuple[Request, "int | str"]


class Held(Pool[Request]):
    """Answers nobody before it is let go; notes what it was given."""

    def __init__(self) -> None:
        super().__init__("/nowhere")
        self.given: list[Job[Request]] = []
        self.hastened: list[Request] = []
        self.open = threading.Event()
        self.result: UnwindTable | str = "refused"

    def put(self, job: Job[Request], *, urgent: bool = False) -> None:
        self.given.append(job)
        super().put(job, urgent=urgent)

    def hasten(self, token: Request) -> None:
        self.hastened.append(token)

    def feed(self) -> Iterator[Answer[Request]]:
        while self.open.is_set() and self._waiting:
            yield Answer(self._waiting.pop(0).token, self.result, "the disk is full")


@pytest.fixture
def cache(tmp_path: Path) -> TableCache:
    return TableCache(str(tmp_path / "cache"))


@pytest.fixture
def request_for() -> Iterator[Callable[..., Request]]:
    opened: list[int] = []

    def made(path: str = "/lib/x86_64-linux-gnu/libc.so.6", processes: int = 1) -> Request:
        opened.append(os.open(path, os.O_RDONLY))
        return Request(ElfFile(FileSource(opened[-1])), path, processes)

    yield made
    for fd in opened:
        os.close(fd)


@pytest.fixture
def make(cache: TableCache) -> Iterator[Callable[..., Compiling[Request, int]]]:
    made: list[Compiling[Request, int]] = []

    def build(pool: Pool[Request] | None = None) -> Compiling[Request, int]:
        made.append(Compiling(cache, lambda table: len(table.rows), pool))
        return made[-1]

    yield build
    for each in made:
        each.close(PATIENCE)


def results(compiling: Compiling[Request, int]) -> list[Result]:
    """All that was asked for."""
    found: list[Result] = []
    while not compiling.idle:
        assert readable([compiling.ready], PATIENCE)
        compiling.heard()
        while (result := compiling.take()) is not None:
            found.append(result)
    return found


def test_first_compiled_then_found(
    make: Callable[..., Compiling[Request, int]], request_for: Callable[..., Request]
) -> None:
    compiling = make()
    first, second = request_for(), request_for()
    compiling.put(first, urgent=False)
    ((answered, rows),) = results(compiling)
    assert (answered, first.was_compiled, first.waits) == (first, True, False)
    assert isinstance(rows, int)
    assert rows > 1000
    assert len(compiling.pids) == 2, "with the one that has no rights"
    compiling.put(second, urgent=False)
    assert results(compiling) == [(second, rows)]
    assert not second.was_compiled
    assert compiling.state == (2, 2, "")


def test_what_is_in_the_cache_does_not_wait_for_what_is_not(
    make: Callable[..., Compiling[Request, int]], request_for: Callable[..., Request], cache: TableCache
) -> None:
    quick, slow = request_for(), request_for("/lib/x86_64-linux-gnu/libm.so.6", 7)
    cache.table(quick.elf)
    pool = Held()
    compiling = make(pool)
    compiling.put(slow, urgent=False)
    compiling.put(quick, urgent=False)
    while (found := compiling.take()) is None:
        compiling.wait(PATIENCE)
    assert found[0] is quick
    assert not compiling.idle
    (job,) = pool.given
    assert (job.token, job.share) == (slow, 7)
    assert job.size > 1000
    assert compiling.state.asked == 2
    assert compiling.state.ready == 1
    compiling.put(slow, urgent=False)
    compiling.put(slow, urgent=True)
    while not pool.hastened:
        compiling.wait(0.01)
    pool.open.set()
    compiling.put(quick, urgent=False)  # wakes it up
    assert {request.path: result for request, result in results(compiling)}[slow.path] == "refused"
    assert len(pool.given) == 1, "asked for once"
    assert compiling.uncached == "the disk is full"


def test_urgent_before_others(
    make: Callable[..., Compiling[Request, int]], request_for: Callable[..., Request]
) -> None:
    begun, gate, order = threading.Event(), threading.Event(), []
    compiling = make(Held())

    def look_up(request: Request) -> None:
        begun.set()
        gate.wait(PATIENCE)
        order.append(request)
        compiling._answer(request, 1)

    compiling._look_up = look_up  # type: ignore[method-assign]
    requests = [request_for() for _ in range(5)]
    compiling.put(requests[0], urgent=False)
    assert begun.wait(PATIENCE), "from here on the others wait"
    for request in requests[1:4]:
        compiling.put(request, urgent=False)
    compiling.put(requests[4], urgent=True)
    compiling.put(requests[2], urgent=True)
    gate.set()
    assert len(results(compiling)) == 5
    assert order.index(requests[2]) < order.index(requests[4]) < order.index(requests[3])


def test_the_vdso_is_compiled_here(make: Callable[..., Compiling[Request, int]], vdso_image: Path) -> None:
    compiling = make(Held())
    compiling.put(Request(ElfFile(BytesSource(vdso_image.read_bytes())), "[vdso]"), urgent=False)
    ((_, rows),) = results(compiling)
    assert isinstance(rows, int)
    assert rows > 0


@pytest.mark.parametrize(
    ("error", "reason"), [(MemoryError(), "not enough memory"), (RuntimeError("a defect"), "RuntimeError: a defect")]
)
def test_what_goes_wrong_is_the_answer_for_one_file(
    error: Exception,
    reason: str,
    make: Callable[..., Compiling[Request, int]],
    request_for: Callable[..., Request],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise error

    compiling = make()
    for where, what in ((module, "find_sections"), (compiling, "_finish")):
        with monkeypatch.context() as patched:
            patched.setattr(where, what, broken)
            request = request_for()
            compiling.put(request, urgent=False)
            assert results(compiling) == [(request, reason)]
    compiling.put(request_for(), urgent=False)
    assert isinstance(results(compiling)[0][1], int)


def test_nobody_waits_for_what_is_being_compiled_at_the_end(
    make: Callable[..., Compiling[Request, int]], request_for: Callable[..., Request]
) -> None:
    pool = Held()
    compiling = make(pool)
    compiling.put(request_for(), urgent=False)
    while not pool.given:
        compiling.wait(0.01)
    compiling.close(PATIENCE)
    assert not compiling._thread.is_alive()
    assert not compiling.idle


def test_descriptors_are_given_back(request_for: Callable[..., Request], tmp_path: Path) -> None:
    request = request_for()
    before = len(os.listdir("/proc/self/fd"))
    compiling: Compiling[Request, int] = Compiling(TableCache(str(tmp_path / "cache")), lambda table: len(table.rows))
    compiling.put(request, urgent=False)
    results(compiling)
    compiling.close(PATIENCE)
    assert len(os.listdir("/proc/self/fd")) == before
