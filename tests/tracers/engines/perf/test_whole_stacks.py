from __future__ import annotations

import pytest
from stallscope.converters.model import Frame, Module, Stack
from stallscope.tracers.engines.named_rows import Place
from stallscope.tracers.engines.perf.options import How
from stallscope.tracers.engines.perf.whole_stacks import incomplete, remarks

PROGRAM, LIBC = Module("/x/program"), Module("/usr/lib/libc.so.6")


def stack(*names: str, module: Module | None = PROGRAM) -> Stack:
    return tuple(Frame(name, "native", module) for name in names)


def share(found: Stack) -> float:
    cut, made = shares(found)
    assert not made
    return cut


def shares(found: Stack) -> tuple[float, float]:
    return incomplete([{Place(1, 1, "running", found): (10,), Place(1, 1, "running", stack("_start", "main")): (30,)}])


@pytest.mark.parametrize(
    "found",
    [
        stack("_start", "__libc_start_main@@GLIBC_2.34", "main"),
        stack("__clone3", "start_thread", "work"),
        stack("__clone", "start_thread"),
        stack("start_thread", "work"),
        stack("thread_start", "work"),
        stack("runtime.goexit.abi0", "main.main"),
        stack("[program]", "__libc_start_main@@GLIBC_2.34", "main"),
        stack("[libc.so.6]", "[libc.so.6]", "work", module=LIBC),
    ],
    ids=str,
)
def test_whole_stacks(found: Stack) -> None:
    assert share(found) == 0


@pytest.mark.parametrize(
    "found",
    [
        stack("[unknown]", "uv__io_poll", "epoll_pwait", module=None),
        stack("[unknown]", "start_thread_pool", module=None),
        stack("uv__io_poll", "epoll_pwait"),
        stack("[program]", "[program]", "work"),
        stack("restart_thread", "_start_all"),
    ],
    ids=str,
)
def test_stacks_without_their_callers(found: Stack) -> None:
    assert share(found) == 0.25


@pytest.mark.parametrize("found", [(), (Frame("schedule", "kernel"),), (Frame("[no stack]", "other"),)])
def test_what_is_not_in_user_code_does_not_count(found: Stack) -> None:
    assert share(found) == 0
    assert incomplete([{Place(1, 1, "running", found): (10,)}]) == (0, 0)


@pytest.mark.parametrize("outermost", [Frame("[anon]"), Frame("f", "jit"), Frame("g", "python")])
def test_code_made_at_run_time(outermost: Frame) -> None:
    assert shares((outermost, Frame("main"))) == (0, 0.25)
    rows = {Place(1, 1, "other", (outermost,)): (1,), Place(1, 1, "other", stack("_start")): (3,)}
    (said,) = remarks([rows], How())
    assert said.startswith("75.00% of the time in user code is in complete stacks; of others, callers are missing")
    assert said.endswith(" (25.00% begin in code made at run time, which has no unwind tables)")


def test_remarks() -> None:
    def said(cut: int, how: How, of: str = "the time") -> list[str]:
        rows = {Place(1, 1, "other", stack("_start")): (1000 - cut,), Place(1, 1, "other", stack("f")): (cut,)}
        return remarks([rows], how, of)

    assert said(9, How()) == []
    whole = "96.00% of the time in user code is in complete stacks; of others, callers are missing"
    assert said(40, How()) == [f"{whole}: --call-graph dwarf,65528 copies more of the stack than 8,192 bytes"]
    assert said(40, How(stack_bytes=65528)) == [whole]
    assert said(40, How(dwarf=False)) == [f"{whole}: use --call-graph dwarf"]
    assert said(40, How(), "the events")[0].startswith("96.00% of the events in user code")
