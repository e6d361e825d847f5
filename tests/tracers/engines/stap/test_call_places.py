"""Places of calls: the callers of timed functions, which SystemTap's walks do not reach."""

from __future__ import annotations

import pytest
from stallscope.converters.model.states import INTERRUPTIBLE, RUNNING
from stallscope.converters.readers.stap.lines import Exit, FunctionCall, Inside, IoctlCall, Left, Line, Wait
from stallscope.converters.readers.stap.stacks import Stacks
from stallscope.tracers.engines.stap import call_places as module
from stallscope.tracers.engines.stap.call_places import joined
from stallscope.tracers.engines.stap.calls import Calls
from stallscope.tracers.engines.stap.functions import Function
from stallscope.tracers.engines.stap.threads import Threads

LIBRARY = "/opt/libcudart.so.12"
FUNCTIONS = {name: Function(LIBRARY, name) for name in ("cudaMalloc", "cudaFree")}
TRAMPOLINE = b"0x7fffffffe000"
MAIN = b"main+0x10/0x20 [/opt/train]"
WAIT, FREE, MALLOC, WHOLE = 11, 12, 13, 14


def stacks() -> Stacks:
    """The stack where a thread waits in cudaFree; those of cudaFree's and cudaMalloc's callers; one without a timed
    function."""
    frames = {
        WAIT: [b"nanosleep+0x1/0x20 [/lib/libc.so.6]", b"cudaFree+0x1/0x20 [%b]" % LIBRARY.encode(), TRAMPOLINE],
        FREE: [b"cudaMalloc+0x1/0x20 [%b]" % LIBRARY.encode(), TRAMPOLINE],
        MALLOC: [b"topk+0x1/0x20 [/opt/train]", MAIN],
        WHOLE: [b"nanosleep+0x1/0x20 [/lib/libc.so.6]", MAIN],
    }
    numbered = {number: dict(enumerate(texts)) for number, texts in frames.items()}
    return Stacks(numbered, set(), None)


def took(*lines: Line) -> Calls:
    calls = Calls(FUNCTIONS, alone=False)
    threads = Threads(0, waited=calls.waited)
    for line in lines:
        calls.take(line)
        threads.take(line, 1000)
    calls.finish(1000)
    return calls


def names(calls: Calls) -> dict[tuple[str, str], int]:
    """Time by state and functions."""
    found = calls.rows(stacks(), of_calls=True)
    return {
        (place.state, ";".join(frame.name for frame in place.stack)): row[0] for place, row in found.items() if row[0]
    }


def call(name: str, began: int, length: int, user: int, *, is_open: bool = False) -> FunctionCall:
    return FunctionCall(1, 1, began, length, user, 0, name, is_open)


ENTERED = Inside(1, 1, 100), Inside(1, 1, 120)
IN_FREE = Wait(1, 1, "S", 0, WAIT, 130, 0, 40, 0)
FREED = call("cudaFree", 120, 60, FREE)


def test_a_wait_in_a_call_in_a_call_has_all_callers() -> None:
    calls = took(*ENTERED, IN_FREE, FREED, call("cudaMalloc", 100, 100, MALLOC))
    assert names(calls) == {
        (INTERRUPTIBLE, "main;topk;cudaMalloc;cudaFree;nanosleep"): 40,
        (RUNNING, "main;topk;cudaMalloc;cudaFree"): 20,
        (RUNNING, "main;topk;cudaMalloc"): 40,
    }
    frames = {frame.name: frame.kind for place in calls.rows(stacks(), of_calls=True) for frame in place.stack}
    assert frames == {"main": "native", "topk": "native", "nanosleep": "native", "cudaMalloc": "api", "cudaFree": "api"}


def test_an_ioctl_in_a_call_has_its_callers() -> None:
    ioctl = IoctlCall(1, 1, 5, 0x5413, 120, 60, FREE, 0, False)
    calls = took(*ENTERED, Wait(1, 1, "D", 0, FREE, 130, 0, 40, 0), ioctl, call("cudaMalloc", 100, 100, MALLOC))
    assert names(calls) == {
        ("uninterruptible", "main;topk;cudaMalloc;TIOCGWINSZ no such descriptor"): 40,
        (RUNNING, "main;topk;cudaMalloc;TIOCGWINSZ no such descriptor"): 20,
        (RUNNING, "main;topk;cudaMalloc"): 40,
    }


@pytest.mark.parametrize(
    "ends",
    [
        (Left(1, 1, 100),),
        (Exit(1, 1, 300, 10),),
        (call("cudaMalloc", 50, 200, MALLOC),),  # of which only the return was seen
        (),
    ],
)
def test_a_call_whose_caller_is_not_known_to_return(ends: tuple[Line, ...]) -> None:
    found = names(took(*ENTERED, IN_FREE, FREED, *ends))
    found.pop((RUNNING, "main;topk;cudaMalloc"), None)
    assert found == {
        (INTERRUPTIBLE, "[unknown];cudaMalloc;cudaFree;nanosleep"): 40,
        (RUNNING, "[unknown];cudaMalloc;cudaFree"): 20,
    }


def test_a_call_that_goes_on_has_no_callers_yet() -> None:
    calls = took(*ENTERED, IN_FREE, FREED, call("cudaMalloc", 100, 0, 0, is_open=True))
    assert (INTERRUPTIBLE, "[unknown];cudaMalloc;cudaFree;nanosleep") in names(calls)


def test_a_stack_that_is_whole_stays_as_it_is() -> None:
    assert [frame.name for frame in joined((WHOLE, MALLOC), stacks())] == ["main", "nanosleep"]
    assert joined((0, MALLOC), stacks()) == joined((MALLOC,), stacks())
    assert joined((), stacks()) == joined((0,), stacks()) == ()


def test_a_stack_for_which_there_was_no_room() -> None:
    assert [frame.name for frame in joined((-1, MALLOC), stacks())] == ["[other stacks]"]


def test_many_places_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places beyond a number are kept, without callers."""
    monkeypatch.setattr(module, "_MOST_INNER", 2)
    waits = [
        line
        for i in range(5)
        for line in (
            Inside(1, 1, 120 + 10 * i),
            Wait(1, 1, "SDTtI"[i], 0, WAIT, 121 + 10 * i, 0, 5, 0),
            call("cudaFree", 120 + 10 * i, 8, FREE),
        )
    ]
    found = names(took(Inside(1, 1, 100), *waits, call("cudaMalloc", 100, 100, MALLOC)))
    assert sum(found.values()) == 100
    assert sum(time for (_, stack), time in found.items() if stack.startswith("main;topk;")) < 100


def test_places_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PLACES", 1)
    places = module.CallPlaces({})
    what = module.What("f", "")
    for user in (WHOLE, MALLOC, FREE):
        places.add({module.Key(1, 1, RUNNING, (user,), 0, what, of_calls=True): [10, 1]})
    rows = places.rows(stacks(), of_calls=True)
    assert sorted(rows.values()) == [[10, 1], [20, 2]]
    assert sorted(place.stack[0].name for place in rows) == ["[other stacks]", "main"]
