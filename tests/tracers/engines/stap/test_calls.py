"""Calls and what their threads did in them, from lines."""

from __future__ import annotations

import stat

from stallscope.converters.model.states import INTERRUPTIBLE, RUNNING, UNINTERRUPTIBLE, WOKEN
from stallscope.converters.readers.stap.lines import (
    Descriptor,
    Exit,
    FunctionCall,
    Inside,
    IoctlCall,
    Left,
    Line,
    Lines,
    Wait,
)
from stallscope.tracers.engines.stap.calls import Calls
from stallscope.tracers.engines.stap.functions import Function
from stallscope.tracers.engines.stap.threads import Threads

PTY = Descriptor(1, 5, stat.S_IFCHR | 0o620, 136 << 20, b"devpts", b"3")
SIZE = 0x5413
NAME = "TIOCGWINSZ /dev/pts/3"

FUNCTIONS = {name: Function("/opt/libcudart.so.12", name) for name in ("cudaMalloc", "cudaFree")}


def function(name: str, began: int, length: int, *, result: int = 0, is_open: bool = False) -> FunctionCall:
    return FunctionCall(1, 1, began, length, 7, result, name, is_open)


def call(began: int, length: int, *, tid: int = 1, pid: int = 1, error: int = 0, is_open: bool = False) -> IoctlCall:
    return IoctlCall(pid, tid, 5, SIZE, began, length, 7, error, is_open)


def took(*lines: Line, ended: int = 0, calls: Calls | None = None) -> Calls:
    calls = calls or Calls()
    threads = Threads(0, waited=calls.waited)
    for line in (PTY, *lines):
        calls.take(line)
        threads.take(line, ended)
    calls.finish(ended)
    return calls


def rows(calls: Calls) -> dict[tuple[str, str, bool], list[int]]:
    found = calls.rows(Lines().stacks(None), of_calls=False)
    return {(place.state, place.stack[1].name, place.is_open): row for place, row in found.items()}


def test_a_call_and_the_wait_in_it() -> None:
    calls = took(Inside(1, 1, 100), Wait(1, 1, "S", 3, 4, 110, 10, 50, 5), call(100, 90, error=25))
    assert rows(calls) == {
        (INTERRUPTIBLE, NAME, False): [50, 0],
        (WOKEN, NAME, False): [5, 0],
        (RUNNING, NAME, False): [35, 1],
    }
    ((_, times),) = calls.timed()
    assert (times.name, times.device) == ("TIOCGWINSZ", "/dev/pts/3")
    assert (times.count, times.total, times.blocked, times.runnable, times.on_cpu) == (1, 90, 50, 5, 35)
    assert (times.min, times.max, sum(times.latencies)) == (90, 90, 1)
    assert times.errors == {"ENOTTY": 1}


def test_waits_before_and_after_a_call_are_not_its() -> None:
    calls = took(Wait(1, 1, "S", 0, 0, 10, 0, 50, 0), call(100, 20), Wait(1, 1, "S", 0, 0, 130, 0, 50, 0))
    assert rows(calls) == {(RUNNING, NAME, False): [20, 1]}


def test_a_return_that_was_not_seen() -> None:
    """The wait belongs to a call of which nothing else is known."""
    calls = took(Inside(1, 1, 100), Wait(1, 1, "S", 0, 0, 110, 0, 50, 0), Left(1, 1, 100), call(300, 20))
    assert rows(calls) == {(RUNNING, NAME, False): [20, 1]}


def test_a_call_that_goes_on() -> None:
    open_wait = Wait(1, 1, "S", 0, 0, 150, 0, 500, 0, True)
    calls = took(Inside(1, 1, 100), open_wait, call(100, 560, is_open=True), ended=400)
    assert rows(calls) == {(INTERRUPTIBLE, NAME, True): [250, 0], (RUNNING, NAME, True): [50, 0]}
    ((_, times),) = calls.timed()
    assert (times.count, times.open_count, times.open_time) == (0, 1, 300)
    assert list(calls.remarks()) == ["1 ioctl had not ended: their time is in the picture, up to the end"]


def test_a_thread_that_ends_in_a_call() -> None:
    calls = took(Inside(1, 1, 100), Wait(1, 1, "S", 0, 0, 110, 0, 50, 0), Exit(1, 1, 170, 10), call(100, 900))
    assert rows(calls) == {(RUNNING, NAME, False): [900, 1]}  # another thread with its number


def test_another_file_under_the_same_descriptor() -> None:
    calls = took(call(100, 10), PTY._replace(mode=0, device=0, filesystem=b""), call(200, 10), call(300, 10, pid=2))
    names = sorted(times.device for _, times in calls.timed())
    assert names == ["/dev/pts/3", "no such descriptor", "no such descriptor"]


def test_who_was_inside() -> None:
    both = [Inside(2, 2, 120), Wait(2, 2, "D", 0, 0, 130, 0, 60, 0), call(100, 90), call(120, 100, tid=2, pid=2)]
    (shared,) = took(PTY._replace(pid=2), *both).shared(1000)
    assert (shared.name, shared.device, shared.count) == ("TIOCGWINSZ", "/dev/pts/3", 2)
    assert (shared.busy, shared.shared, shared.inside) == (120, 70, 190)
    assert shared.waits == {(2, 1): 60}


def test_many_waits_in_one_call() -> None:
    waits = [Wait(1, 1, "S", 0, 0, 100 + i, 0, 1, 0) for i in range(5000)]
    calls = took(Inside(1, 1, 100), *waits, call(100, 5000))
    assert rows(calls)[INTERRUPTIBLE, NAME, False] == [5000, 0]
    assert calls.lost["calls and waits left out of who was inside"] == 5000 - 4096


def of_functions(*lines: Line, ended: int = 0) -> Calls:
    return took(*lines, ended=ended, calls=Calls(FUNCTIONS, alone=False))


def test_a_function_and_the_ioctl_in_it() -> None:
    calls = of_functions(
        Inside(1, 1, 100),
        Wait(1, 1, "S", 3, 4, 110, 10, 50, 5),
        Inside(1, 1, 200),
        Wait(1, 1, "D", 5, 4, 210, 10, 20, 0),
        call(200, 40),
        function("cudaMalloc", 100, 200, result=2),
    )
    found = calls.rows(Lines().stacks(None), of_calls=True)
    rows = {
        (place.state, tuple(frame.name for frame in place.stack if frame.kind == "api")): row
        for place, row in found.items()
    }
    assert rows == {
        (INTERRUPTIBLE, ()): [50, 0],  # its stack would have the function
        (WOKEN, ()): [5, 0],
        (UNINTERRUPTIBLE, (NAME,)): [20, 0],
        (RUNNING, (NAME,)): [20, 0],
        (RUNNING, ("cudaMalloc",)): [105, 1],
    }
    assert not calls.rows(Lines().stacks(None), of_calls=False)
    ((_, times),) = calls.timed()
    assert (times.name, times.library, times.total, times.blocked, times.runnable) == (
        "cudaMalloc",
        "libcudart.so.12",
        200,
        70,
        5,
    )
    assert times.errors == {"cudaErrorMemoryAllocation": 1}
    ((_, part),) = calls.call_ioctls()
    assert (part.name, part.command, part.count, part.total, part.blocked) == ("cudaMalloc", "TIOCGWINSZ", 1, 40, 20)


def test_a_function_in_a_function() -> None:
    calls = of_functions(Inside(1, 1, 100), function("cudaFree", 120, 30), function("cudaMalloc", 100, 100))
    times = {each.name: (each.total, each.inner, each.own) for _, each in calls.timed()}
    assert times == {"cudaFree": (30, 0, 30), "cudaMalloc": (100, 30, 70)}
    rows = calls.rows(Lines().stacks(None), of_calls=True).values()
    assert sorted(rows) == [[30, 1], [70, 1]]


def test_functions_that_go_on_in_any_order() -> None:
    lines = [function("cudaMalloc", 100, 900, is_open=True), function("cudaFree", 120, 900, is_open=True)]
    for order in (lines, lines[::-1]):
        calls = of_functions(Inside(1, 1, 100), *order, ended=200)
        times = {each.name: (each.open_count, each.open_time, each.open_inner) for _, each in calls.timed()}
        assert times == {"cudaMalloc": (1, 100, 80), "cudaFree": (1, 80, 0)}
        assert list(calls.remarks()) == ["2 calls had not ended: their time is in the picture, up to the end"]


def test_an_ioctl_outside_of_functions() -> None:
    calls = of_functions(call(100, 10))
    assert rows(calls) == {(RUNNING, NAME, False): [10, 0]}
    assert not calls.timed()
