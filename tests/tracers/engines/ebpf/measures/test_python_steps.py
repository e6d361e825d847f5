from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stallscope.tracers.cpython.functions import Function
from stallscope.tracers.engines.ebpf.measures.protocol import Ended
from stallscope.tracers.engines.ebpf.measures.python_steps import PythonStepsCollector
from stallscope.tracers.engines.ebpf.measures.step_hits import FRAME, HIT
from stallscope.tracers.engines.ebpf.measures.watched import Watch
from stallscope.tracers.kernel.records import RECORD_STEP
from stallscope.tracers.measures.protocol import columns_of
from stallscope.tracers.measures.span_options import SpanOptions
from stallscope.tracers.measures.steps import PythonSteps
from stallscope.tracers.probe_targets.python_steps import PythonFunction

STEP = Function("Model.step", "/opt/train.py", 3, (3, 12), b"")
OTHER = Function("step", "/opt/train.py", 30, (3, 12), b"")
CODE, MAIN = 0x1000, 0x2000


class Watches:
    """Takes all functions."""

    def __init__(self) -> None:
        self.watches: dict[tuple[int, int], Watch] = {}
        self.refused: dict[str, str] = {}
        self.is_closed = False

    def add(self, pid: int, code: int, function: Function, _: int) -> bool:
        self.watches[pid, code] = Watch(function, 2, 0)
        return True

    def is_full(self, pid: int) -> bool:
        return sum(process == pid for process, _ in self.watches) >= 4

    def put(self, pid: int, code: int, watch: Watch) -> None:
        self.watches[pid, code] = watch

    def release(self, pid: int, code: int) -> None:
        self.watches.pop((pid, code))

    def of(self, pid: int, code: int) -> tuple[Watch, bool] | None:
        return (self.watches[pid, code], True) if (pid, code) in self.watches else None

    def remarks(self, traps: int) -> list[str]:
        return [f"{traps} traps"]


def measure(*names: str) -> PythonStepsCollector:
    made = PythonStepsCollector(PythonSteps([PythonFunction("train.py", name) for name in names], SpanOptions(100)))
    watches: Any = Watches()
    made._watched = watches
    return made


def record(time: int, references: int, flags: int = 0, code: int = CODE) -> bytes:
    return HIT.pack(RECORD_STEP, references, time, code, MAIN, 9, 20, 7, 5, 1, 0, flags)


def test_calls_are_spans() -> None:
    made = measure("step")
    made.saw_function(5, CODE, STEP)
    for data in (record(10, 3), record(20, 2, FRAME), record(30, 3)):
        assert made.on_record(data)
    assert not made.on_record(b"\1" + bytes(63))
    found = made.spans()
    assert found
    assert [tuple(name) for name in found.names] == [("train.py:Model.step", "step", ())]
    assert found.calls["begin"].tolist() == [10, 30]
    assert found.calls["end"][0] == 20
    assert found.calls["tid"].tolist() == [7, 7]
    assert list(made.remarks()) == ["3 traps"]


def test_functions_of_the_same_name_have_their_line() -> None:
    made = measure("step")
    made.saw_function(5, CODE, OTHER)
    made.saw_function(6, CODE, OTHER._replace(first_line=40))
    assert made._titles() == ["train.py:step (line 30)", "train.py:step (line 40)"]


def test_other_functions_are_not_watched() -> None:
    made = measure("Model.step", "eval")
    made.saw_function(5, CODE, OTHER)
    made.saw_function(5, CODE, STEP._replace(file="/opt/other.py"))
    assert made.spans() is None
    assert "no traced process has a Python function train.py:Model.step, train.py:eval" in list(made.remarks())[1]


def test_similar_names_are_told() -> None:
    made = measure("stepp")
    made.saw_function(5, CODE, STEP)
    assert list(made.remarks())[1].endswith("train.py:stepp: there is Model.step")


def test_what_it_says() -> None:
    made = measure("step")
    made.seeded()
    made.saw_function(5, CODE, STEP)
    made.on_record(record(10, 3))
    made.on_record(record(12, 4))
    made.on_record(record(20, 2, code=8 * CODE))
    loaded: Any = SimpleNamespace(find_map=lambda _: SimpleNamespace(lookup_percpu_u64=lambda _: 4))
    made.read(loaded)
    made.on_record(record(30, 9))
    assert made.losses() == {
        "writes to a Python function's count of references without room in the ring buffer": 4,
        "changes of a Python function's count of references that the kernel did not report": 1,
        "begins and ends of Python functions in threads that could not be read": 0,
    }
    said = list(made.remarks())
    assert any("after the trace began: its steps before are missing" in each for each in said)
    assert any("one function or another: 1" in each for each in said)


def test_it_adds_nothing_to_the_picture() -> None:
    made = measure("step")
    assert columns_of([made]) == ()
    assert made.rows(Ended(0, 1, [])) == []
    assert made.placed == ("python_steps_hit",)


def test_a_function_that_is_defined_again_at_the_place_of_the_freed_one() -> None:
    made = measure("step")
    found: list[Function | None] = [None]
    searched: Any = SimpleNamespace(function_at=lambda _: found[0], again=lambda: None)
    made._searches[5] = searched
    made.saw_function(5, CODE, STEP)
    made._watched.watches[5, CODE] = Watch(STEP, 1, 0)  # type: ignore[union-attr]
    for data in (record(10, 2), record(20, 1, FRAME), record(30, 0)):
        made.on_record(data)
    made.on_record(record(31, 0x7F3210))
    made._look_at_freed()
    assert made.is_missing(5)
    for data in (record(40, 1), record(50, 2), record(60, 1, FRAME)):
        made.on_record(data)
    found[0] = STEP
    made._look_at_freed()
    assert not made.is_missing(5)
    for data in (record(70, 2), record(80, 1, FRAME)):
        made.on_record(data)
    spans = made.spans()
    assert spans
    assert spans.calls["begin"].tolist() == [10, 50, 70]
    assert spans.names[0].unwatched == ((5, 30, 40),)
