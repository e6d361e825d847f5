from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.vtune import reader as vtune

DATA = Path(__file__).resolve().parents[3] / "data" / "vtune"
CPU = ValueType("CPU Time", "nanoseconds")
MS = 1_000_000


def read(text: str | bytes) -> Profile:
    return vtune.read(Source(io.BytesIO(text.encode() if isinstance(text, str) else text), "x"), ReadOptions())


def paths(profile: Profile) -> dict[str, tuple[int, ...]]:
    return {";".join(frame.name for frame in s.stack): s.values for s in profile.samples}


def test_top_down() -> None:
    profile = read((DATA / "top_down.csv").read_bytes())
    topk = "void ops::topk<float, 3>(at::Tensor const&, int)"
    assert profile.value_types == [CPU]
    assert paths(profile) == {
        "[Outside any known module]": (250 * MS,),
        "_start;main": (10 * MS,),
        f"_start;main;{topk}": (1500 * MS,),
        f"_start;main;{topk};ioctl": (500 * MS,),
        f"_start;main;{topk};ioctl;do_syscall_64": (125 * MS,),
        "_start;main;print;<b>": (MS,),
        "_start;exit": (2 * MS,),
    }
    stack = next(s.stack for s in profile.samples if len(s.stack) == 5)
    assert stack[2] == Frame(topk, "native", Module("libops.so"), file="topk.cpp")
    assert stack[4].kind == "kernel"
    assert profile.lost == {"rows not understood": 1}
    assert worded(profile.comments)[0].startswith("x, line 10: expected a row of VTune's CSV")


def test_callstacks_are_turned_round_and_keep_the_time_of_the_functions() -> None:
    profile = read((DATA / "callstacks.csv").read_bytes())
    assert paths(profile) == {
        "trace;shader;intersect_objects;grid_intersect": (1918 * MS,),
        "main;trace;grid_intersect": (3500 * MS,),
        "grid_intersect": (18 * MS,),
        "sphere_intersect": (1250 * MS,),
    }
    assert profile.total("CPU Time") == (5436 + 1250) * MS


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(delimiter: str) -> None:
    rows = [
        ["Function Stack", "CPU Time:Self", "Module"],
        [" main", "1", "a"],
        ['"  f(int)"', "2", "b"],
        ["  g", "", ""],
    ]
    profile = read("\n".join(delimiter.join(row) for row in rows))
    assert paths(profile) == {"main": (10**9,), "main;f(int)": (2 * 10**9,)}


def test_quotation_marks_inside_and_outside_of_the_spaces() -> None:
    profile = read('Function Stack,CPU Time:Self\nmain,0\n "f(a, b)",1\n"  g ""x""",2\n   "h, i",3\n')
    assert paths(profile) == {
        "main;f(a, b)": (10**9,),
        'main;f(a, b);g "x"': (2 * 10**9,),
        'main;f(a, b);g "x";h, i': (3 * 10**9,),
    }


def test_other_values() -> None:
    profile = read(
        "Function Stack,Allocation Size:Self,Allocations:Self,CPU Time:Self,CPU Time:Total,Wait Time:Self\n"
        "f,4096,3,0.5,50%,2ms\n"
    )
    assert profile.value_types == [
        CPU,
        ValueType("Allocation Size", "bytes"),
        ValueType("Allocations", "count"),
        ValueType("Wait Time", "nanoseconds"),
    ]
    assert profile.samples == [Sample((Frame("f"),), (500 * MS, 4096, 3, 2 * MS))]


def test_2015() -> None:
    assert paths(read((DATA / "2015.csv").read_bytes())) == {"main": (1500 * MS,), "main;work": (5000 * MS,)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello\nworld\n", "x, line 1: expected a row of VTune's CSV"),
        ("Function Stack,Module\nf,a\n", "has no column with times"),
        ("Function Stack,CPU Time:Total\nf,100%\n", "has no column with times"),
        ("Function Stack,CPU Time:Self\nf,100%\n", "percentages, which cannot be added up"),
        ("Function Stack,CPU Time:Self\nf,x\n", "x, line 2: expected a row"),
        ("Function Stack,CPU Time:Self\nf\n", "x, line 2: expected a row"),
        ("Function Stack,CPU Time:Self\nf,-1\n", "x, line 2: expected a row"),
    ],
)
def test_malformed(text: str, message: str) -> None:
    with pytest.raises(StallscopeError, match=message):
        read(text)


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (b"Function Stack,CPU Time:Self\n", True),
        (b'\xef\xbb\xbf"Function Stack";"CPU Time"\n', True),
        (b"war: x\n\nfunction stack\tmodule\n", True),
        (b"Function Stack\n", False),
        (b"Function,Module\n", False),
        (b"", False),
    ],
)
def test_sniff(head: bytes, known: bool) -> None:
    assert vtune.sniff(head) is known


def test_trees_of_several_threads_are_added_up() -> None:
    tree = "Total,0,\n main,0,a\n  f,{},a\n   g,0.5,a\n  h,0,a\n   g,1,a\n"
    profile = read("Function Stack,CPU Time:Self,Module\n" + tree.format(1) + tree.format("0.25") + " f,4,a\n")
    assert paths(profile) == {
        "main;f": (1250 * MS,),
        "main;f;g": (1000 * MS,),
        "main;h;g": (2000 * MS,),
        "f": (4000 * MS,),
    }


def test_levels_of_several_spaces_and_a_root_with_some() -> None:
    rows = "  a,1,m\n     b,1,m\n    c,1,m\n   Total,1,\n  d,1,m\n Total,1,\n   e,1,m\n"
    assert set(paths(read("Function Stack,CPU Time:Self,Module\n" + rows))) == {
        "a",
        "a;b",
        "a;c",
        "a;Total",
        "d",
        "",
        "e",
    }


def test_bad_rows_are_counted_and_the_first_is_told() -> None:
    rows = "".join(f" f{i},1,m\n" for i in range(5000)) + "bad\n\nbad\n f1,x,m\n"
    profile = read("war: x\nFunction Stack,CPU Time:Self,Module\n" + rows)
    assert profile.lost == {"rows not understood": 3}
    assert worded(profile.comments)[0].startswith("x, line 5003: expected a row")
    assert profile.total("CPU Time") == 5000 * 10**9


def test_deep_stacks() -> None:
    text = "Function Stack,CPU Time:Self\n" + "".join(f"{' ' * i}f,1\n" for i in range(10_005))
    profile = read(text)
    assert max(len(sample.stack) for sample in profile.samples) == 10_000
    assert profile.lost == {"rows not understood": 5}


PARTS = ["Function Stack", "CPU Time:Self", "Function", ",", ";", '"', " ", "\n", "f", "1.5", "x\ny", "\udcff", "Total"]


@given(
    st.lists(st.sampled_from(PARTS)),
    st.sampled_from(["Function Stack,CPU Time:Self\n", "Function,Function Stack,CPU Time\n"]),
)
def test_anything_is_read_or_refused(parts: list[str], header: str) -> None:
    try:
        profile = read((header + "".join(parts)).encode(errors="surrogateescape"))
    except StallscopeError:
        return
    assert all(frame.name for sample in profile.samples for frame in sample.stack)


@pytest.mark.parametrize("name", ["top_down.csv", "callstacks.csv"])
def test_reports_one_after_the_other_are_added_up(name: str) -> None:
    text = (DATA / name).read_bytes().removeprefix(b"war: Column filter is ON.\n").rstrip(b"\n") + b"\n"
    once, twice = read(text), read(text + text)
    assert paths(twice) == {path: tuple(2 * value for value in values) for path, values in paths(once).items()}
    assert twice.lost == {kind: 2 * count for kind, count in once.lost.items()}
