from __future__ import annotations

import io
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Labels, Profile, Sample, ValueType
from stallscope.converters.model.wakers import SEPARATOR, WAKER
from stallscope.converters.writers import folded
from stallscope.converters.writers.base.options import WriteOptions

OFF_CPU = ValueType("off-cpu", "nanoseconds")
COUNT = ValueType("count", "count")
MAX = ValueType("max", "nanoseconds", "max")
DEMO: Labels = (("pid", 42), ("process", "demo"), ("thread", "worker 1"), ("tid", 43))
OTHER: Labels = (("pid", 42), ("process", "demo"), ("thread", "main"), ("tid", 42))
FLAMEGRAPH_LINE = re.compile(r"^(.*)\s+?(\d+(?:\.\d*)?)$")
"""The pattern by which flamegraph.pl takes a line apart, twice where two weights seem to be there."""


def lines(profile: Profile, **options: object) -> list[str]:
    file = io.BytesIO()
    folded.write(profile, file, WriteOptions(**options))  # type: ignore[arg-type]
    text = file.getvalue().decode()
    assert not text or text.endswith("\n")
    return text.split("\n")[:-1]


def one(*names: str, value: int = 1_000_000, labels: Labels = DEMO) -> Profile:
    return Profile([OFF_CPU], [Sample(tuple(map(Frame, names)), (value,), labels)])


def test_outermost_first_kernel_and_jit_marked_microseconds() -> None:
    stack = (
        Frame("start_thread"),
        Frame("train", "python"),
        Frame("lambda", "jit"),
        Frame("ioctl"),
        Frame("rwsem_down_read", "kernel"),
    )
    profile = Profile([OFF_CPU, COUNT], [Sample(stack, (1_500_000, 3), DEMO)])
    assert lines(profile) == ["demo-42;start_thread;train;lambda_[j];ioctl;rwsem_down_read_[k] 1500"]
    assert lines(profile, value="count") == ["demo-42;start_thread;train;lambda_[j];ioctl;rwsem_down_read_[k] 3"]


def test_a_waker_follows_a_separator_innermost_first() -> None:
    waker = [Frame(name, WAKER) for name in ("wake", "--", "w-7")]
    stack = (Frame("main"), Frame("read", "kernel"), SEPARATOR, *waker)
    assert lines(Profile([OFF_CPU], [Sample(stack, (2000,), DEMO)])) == [
        r"demo-42;main;read_[k];--;wake;\x2d\x2d;w-7 2"
    ]


def test_equal_stacks_are_merged_whatever_their_addresses_and_sorted() -> None:
    samples = [
        Sample((Frame("b", address=1),), (1000,), DEMO),
        Sample((Frame("a"),), (2000,), DEMO),
        Sample((Frame("b", address=2),), (4000,), OTHER),
    ]
    assert lines(Profile([OFF_CPU], samples)) == ["demo-42;a 2", "demo-42;b 5"]


def test_per_thread_roots() -> None:
    samples = [Sample((Frame("f"),), (1000,), labels) for labels in (DEMO, OTHER, (("pid", 7), ("tid", 7)))]
    assert lines(Profile([OFF_CPU], samples), per_thread=True) == [
        "[unknown]-7/7;f 1",
        "main-42/42;f 1",
        "worker_1-42/43;f 1",
    ]


@pytest.mark.parametrize(
    ("labels", "root"),
    [
        ((("pid", 0), ("process", "swapper/0")), "swapper/0-0"),
        ((("process", "Web Content"),), "Web_Content"),
        ((("pid", 5), ("process", "")), "[unknown]-5"),
        ((("pid", 5), ("process", "<script>alert(1)</script>;x")), "<script>alert(1)</script>:x-5"),
        ((("pid", 5), ("process", "a\nb\udcff\x1b")), "a\\x0ab\\xff\\x1b-5"),
    ],
)
def test_process_roots(labels: Labels, root: str) -> None:
    assert lines(one("f", labels=labels)) == [f"{root};f 1000"]


def test_samples_that_name_no_process() -> None:
    assert lines(one("f", "g", labels=())) == ["f;g 1000"]
    assert lines(one(labels=())) == ["[unknown] 1000"]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("a;b", "a:b"),
        ("a\nb", "a\\x0ab"),
        ("operator new(unsigned long)", "operator new(unsigned long)"),
        ("end ", "end\\x20"),
        ("  both  ", "\\x20\\x20both\\x20\\x20"),
        (" ", " "),
        ("  ", "\\x20\\x20"),
        ("\u3000", "\\u3000"),
        ("step 12", "step\\x2012"),
        ("step 1.5", "step\\x201.5"),
        ("", "[unknown]"),
        ("-", "\\x2d"),
        ("--", "\\x2d\\x2d"),
        ("---", "---"),
        ("\udcff", "\\xff"),
        ("größe", "größe"),
    ],
)
def test_names_that_could_break_a_line(name: str, field: str) -> None:
    assert lines(one(name)) == [f"demo-42;{field} 1000"]


def test_roots_of_other_labels_are_one_field_each() -> None:
    waiting: Labels = (("pid", 7), ("process", "Web Content"), ("state", "D; x"))
    samples = [Sample((Frame("f"),), (1000,), labels) for labels in (waiting, DEMO)]
    profile = Profile([OFF_CPU], samples)
    assert lines(profile, roots=("process", "state")) == ["Web_Content-7;D:_x;f 1", "demo-42;[unknown_state];f 1"]
    assert lines(profile, roots=("nowhere", "thread")) == ["[unknown_thread];f 1", "worker_1-43;f 1"]
    assert lines(profile, roots=()) == ["f 2"]
    assert lines(Profile([OFF_CPU], [Sample((), (1000,), waiting)]), roots=("state",)) == ["D:_x 1"]


def test_only_the_marks_that_are_asked_for() -> None:
    stack = (Frame("f"), Frame("g", "jit"), Frame("read", "kernel"))
    profile = Profile([OFF_CPU], [Sample(stack, (1000,)), Sample((*stack[:2], Frame("read")), (1000,))])
    assert lines(profile) == ["f;g_[j];read 1", "f;g_[j];read_[k] 1"]
    assert lines(profile, marks=frozenset({"kernel"})) == ["f;g;read 1", "f;g;read_[k] 1"]
    assert lines(profile, marks=frozenset()) == ["f;g;read 2"]


def test_a_differential_profile_has_before_and_after() -> None:
    kinds = [ValueType("after", "nanoseconds"), ValueType("before", "nanoseconds")]
    samples = [
        Sample((Frame("both"),), (2_000_000, 1_000_000)),
        Sample((Frame("gone 7"),), (0, 5_000)),
        Sample((Frame("new"),), (7_000, 0)),
        Sample((Frame("small"),), (400, 400)),
    ]
    for value in ("", "before"):
        assert lines(Profile(kinds, samples), value=value) == ["both 1000 2000", "gone\\x207 5 0", "new 0 7"]


def test_rounding_keeps_the_total() -> None:
    samples = [Sample((Frame(f"f{i:04}"),), (400,), DEMO) for i in range(1000)]
    weights = [int(line.rsplit(" ", 1)[1]) for line in lines(Profile([OFF_CPU], samples))]
    assert sum(weights) == 400
    assert set(weights) == {1}


def test_whole_microseconds_are_exact_beside_fractions() -> None:
    samples = [Sample((Frame(name),), (value,), DEMO) for name, value in [("a", 1500), ("b", 7000), ("c", 2499)]]
    assert lines(Profile([OFF_CPU], samples)) == ["demo-42;a 2", "demo-42;b 7", "demo-42;c 2"]


@pytest.mark.parametrize("value", [0, 499, -499])
def test_a_line_that_would_say_0_is_left_out(value: int) -> None:
    assert lines(one("f", value=value)) == []


def test_negative_weights_are_told() -> None:
    profile = Profile([OFF_CPU], [Sample((Frame(name),), (value,)) for name, value in (("a", -5000), ("b", 7400))])
    assert lines(profile) == ["a -5", "b 7"]


def test_other_units_stay_as_they_are() -> None:
    profile = Profile([ValueType("size", "bytes")], [Sample((Frame("f"),), (499,))])
    assert lines(profile) == ["f 499"]


def test_a_maximum_is_refused() -> None:
    with pytest.raises(StallscopeError):
        lines(Profile([OFF_CPU, MAX], []), value="max")


NAMES = st.text(st.one_of(st.characters(), st.sampled_from(" ;\n\t19.\udcff\u3000")), max_size=8)
STACKS = st.lists(st.builds(Frame, NAMES, st.sampled_from(["native", "kernel", "jit"])), max_size=4).map(tuple)
SAMPLES = st.builds(
    Sample,
    STACKS,
    st.tuples(st.integers(0, 10**12)),
    st.one_of(st.just(()), st.builds(lambda name: (("pid", 1), ("process", name)), NAMES)),
)


@settings(deadline=None)
@given(st.lists(SAMPLES, max_size=8))
def test_every_line_parses_back(samples: list[Sample]) -> None:
    profile = Profile([ValueType("off-cpu", "count")], samples)
    found: Counter[tuple[int, int]] = Counter()
    for line in lines(profile):
        assert line.splitlines() == [line]
        assert line.strip() == line
        match = FLAMEGRAPH_LINE.match(line)
        assert match
        assert not FLAMEGRAPH_LINE.match(match[1]), "taken for two weights"
        assert (match[1], match[2]) == tuple(line.rsplit(" ", 1))
        fields = match[1].split(";")
        assert all(fields)
        kernel = sum(field.endswith("_[k]") for field in fields)
        found[len(fields), kernel] += int(match[2])
    expected: Counter[tuple[int, int]] = Counter()
    for sample in samples:
        depth = len(sample.stack) + bool(sample.labels) or 1
        expected[depth, sum(frame.kind == "kernel" for frame in sample.stack)] += sample.values[0]
    assert +found == +expected


@settings(deadline=None)
@given(st.lists(SAMPLES, max_size=8))
def test_the_total_is_true_to_half_a_microsecond(samples: list[Sample]) -> None:
    profile = Profile([OFF_CPU], samples)
    weights = [int(line.rsplit(" ", 1)[1]) for line in lines(profile)]
    assert abs(sum(weights) * 1000 - profile.total("off-cpu")) <= 500
    assert all(weights)


def test_the_id_always_stands_behind_the_process_so_that_it_is_read_again() -> None:
    labels = (("pid", 3), ("process", "python3.8 GPU 3"))
    profile = Profile([ValueType("samples", "count")], [Sample((Frame("f"),), (1,), labels)])
    file = io.BytesIO()
    folded.write(profile, file, WriteOptions())
    assert file.getvalue() == b"python3.8_GPU_3-3;f 1\n"
