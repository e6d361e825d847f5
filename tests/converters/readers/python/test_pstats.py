from __future__ import annotations

import io
import marshal
import pstats as reference
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.python import pstats

DATA = Path(__file__).resolve().parents[3] / "data" / "pstats"


def read(data: bytes) -> Profile:
    return pstats.read(Source(io.BytesIO(data), "x"), ReadOptions())


def key(name: str) -> tuple[str, int, str]:
    return ("a.py", 1, name)


def frame(name: str) -> Frame:
    return Frame(name, "python", file="a.py", line=1)


def entry(calls: int, own: float, total: float, **callers: tuple[int, float, float]) -> tuple[Any, ...]:
    edges = {key(name): (n, n, t, c) for name, (n, t, c) in callers.items()}
    return (calls, calls, own, total, edges)


def stacks(**functions: tuple[Any, ...]) -> dict[str, tuple[int, ...]]:
    """Values by path; seconds of the input are ns of the output."""
    document = {}
    for name, (n, m, t, c, edges) in functions.items():
        callers = {k: (a, b, x * 1e-9, y * 1e-9) for k, (a, b, x, y) in edges.items()}
        document[key(name)] = (n, m, t * 1e-9, c * 1e-9, callers)
    data = marshal.dumps(document)
    return {";".join(f.name for f in s.stack): s.values for s in read(data).samples}


def test_time_is_shared_among_the_callers_by_their_edges() -> None:
    found = stacks(
        main=entry(1, 10, 110),
        a=entry(1, 5, 35, main=(1, 5, 35)),
        b=entry(1, 5, 65, main=(1, 5, 65)),
        leaf=entry(10, 90, 90, a=(2, 30, 30), b=(8, 60, 60)),
    )
    assert found == {
        "main": (10, 1), "main;a": (5, 1), "main;b": (5, 1), "main;a;leaf": (30, 2), "main;b;leaf": (60, 8),
    }  # fmt: skip


def test_longer_paths_are_shared_by_the_time_with_callees() -> None:
    found = stacks(
        a=entry(1, 0, 75),
        b=entry(1, 0, 25),
        middle=entry(4, 0, 100, a=(1, 0, 75), b=(3, 0, 25)),
        leaf=entry(100, 100, 100, middle=(100, 100, 100)),
    )
    assert found["a;middle;leaf"] == (75, 75)
    assert found["b;middle;leaf"] == (25, 25)


def test_what_callers_do_not_explain_is_a_root() -> None:
    found = stacks(main=entry(1, 10, 40), f=entry(5, 100, 100, main=(1, 30, 30)))
    assert found == {"main": (10, 1), "main;f": (30, 1), "f": (70, 4)}


def test_recursion_is_left_where_it_was_entered() -> None:
    found = stacks(
        main=entry(1, 1, 101),
        fib=entry(9, 60, 60, main=(1, 10, 60), fib=(8, 50, 50)),
        even=entry(5, 20, 40, main=(1, 5, 40), odd=(4, 15, 30)),
        odd=entry(5, 20, 35, even=(5, 20, 35)),
    )
    assert found == {
        "main": (1, 1),
        "main;fib": (60, 9),
        "main;even": (5, 1),
        "main;even;odd": (20, 5),
        "main;even;odd;even": (15, 4),
    }


def test_a_cycle_that_nobody_entered_ends() -> None:
    found = stacks(a=entry(1, 10, 20, b=(1, 10, 20)), b=entry(1, 10, 20, a=(1, 10, 20)))
    assert sum(values[0] for values in found.values()) == 20
    assert all(path.count("a") <= 2 for path in found)


@pytest.mark.parametrize("version", ["2.7", "3.8", "3.13"])
def test_recordings_keep_their_totals(version: str) -> None:
    profile = read((DATA / f"python{version}.prof").read_bytes())
    assert profile.value_types == [ValueType("time", "nanoseconds"), ValueType("calls", "count")]
    paths = {";".join(f.name for f in s.stack).partition("<module>")[2]: s.values for s in profile.samples}
    assert paths[";main;small;leaf"][1] == paths[";main;large;leaf"][1] == 3
    assert paths[";main;small;leaf"][0] < paths[";main;large;leaf"][0]
    assert paths[";main;fib"][1] == 1219
    if version != "2.7":
        stats: Any = reference.Stats(str(DATA / f"python{version}.prof"))
        assert profile.total("time") == round(stats.total_tt * 1e9)
        assert profile.total("calls") == stats.total_calls


def test_functions_in_c_are_native() -> None:
    data = marshal.dumps({("~", 0, "<built-in method time.sleep>"): (1, 1, 1.0, 1.0, {})})
    assert read(data).samples == [Sample((Frame("<built-in method time.sleep>"),), (10**9, 1))]


def test_many_paths_are_bounded() -> None:
    """Forty layers of two functions that all call each other: 2 to the 40 paths."""
    functions: dict[Any, Any] = {key("root"): (1, 1, 0.0, 80.0, {})}
    above = ["root"]
    for layer in range(40):
        names = [f"{side}{layer}" for side in "ab"]
        for name in names:
            edges = {key(caller): (1, 1, 1.0 / len(above), 1.0) for caller in above}
            functions[key(name)] = (2, 2, 1.0, float(len(above)), edges)
        above = names
    profile = read(marshal.dumps(functions))
    assert profile.total("time") == 80 * 10**9
    assert len(profile.samples) < 20_000


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"{", "byte 1: cut short"),
        (marshal.dumps(("x",)), "no dictionary"),
        (marshal.dumps({key("f"): (1, 2)}), "its four numbers"),
        (marshal.dumps({"f": (1, 1, 1.0, 1.0, {})}), r"no \(file, line, name\)"),
        (marshal.dumps({key("f"): (1, 1, "x", 1.0, {})}), "no number"),
        (marshal.dumps({key("f"): (1, 1, float("nan"), 1.0, {})}), "no number"),
        (marshal.dumps({key("f"): (1, 1, 1.0, 1.0, {key("g"): (1,)})}), "a caller without"),
    ],
)
def test_malformed(document: bytes, message: str) -> None:
    with pytest.raises(StallscopeError, match=f"x is not a file of cProfile.*{message}"):
        read(document)


def test_sniff() -> None:
    for version in (0, 2, 4):
        assert pstats.sniff(marshal.dumps({key("f"): (1, 1, 1.0, 1.0, {})}, version))
    assert not pstats.sniff(b'{"traceEvents": []}')
    assert not pstats.sniff(b"")
    assert not pstats.sniff(marshal.dumps({1: 2}))


NAMES = st.sampled_from("abcde")
TIMES = st.floats(0, 10, allow_subnormal=False)
EDGES = st.dictionaries(NAMES, st.tuples(st.integers(0, 9), TIMES, TIMES), max_size=4)


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(NAMES, st.tuples(st.integers(0, 9), TIMES, TIMES, EDGES), max_size=5))
def test_the_sum_is_always_that_of_the_own_times(functions: dict[str, Any]) -> None:
    document = {key(name): entry(n, t, c, **edges) for name, (n, t, c, edges) in functions.items()}
    profile = read(marshal.dumps(document))
    assert abs(profile.total("time") - sum(t for _, t, _, _ in functions.values()) * 1e9) <= 1000
    assert profile.total("calls") == sum(n for n, _, _, _ in functions.values())
