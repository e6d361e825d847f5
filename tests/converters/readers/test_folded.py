from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.options import WriteOptions
from stallscope.converters.readers import folded
from stallscope.converters.readers.options import ReadOptions
from stallscope.converters.readers.source import Source
from stallscope.converters.writers import folded as writer

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=8)
FRAMES = st.builds(Frame, NAMES, st.sampled_from(["native", "kernel", "jit"]))
LABELS = st.sampled_from([(), (("pid", 7), ("process", "a b")), (("pid", 8), ("process", "worker-3"))])
SAMPLES = st.builds(
    Sample, st.lists(FRAMES, min_size=1, max_size=5).map(tuple), st.tuples(st.integers(1, 10**12)), LABELS
)


def read(text: bytes) -> Profile:
    return folded.read(Source(io.BytesIO(text), "x"), ReadOptions())


def write(profile: Profile, *, per_thread: bool = False) -> bytes:
    file = io.BytesIO()
    writer.write(profile, file, WriteOptions(per_thread=per_thread))
    return file.getvalue()


def test_kinds_labels_and_sums() -> None:
    profile = read(b"x y-12;main;read_[k] 7\nx y-12;main;read_[k] 2\nw-1/2;run_[j] 1\na 1 3\n")
    assert profile.samples == [
        Sample((Frame("main"), Frame("read", "kernel")), (9,), (("pid", 12), ("process", "x y"))),
        Sample((Frame("run", "jit"),), (1,), (("pid", 1), ("process", "w"), ("thread", "w"), ("tid", 2))),
        Sample((Frame("a 1"),), (3,)),
    ]


def test_fractions_keep_the_total() -> None:
    profile = read(b"".join(b"f%d 0.25\n" % i for i in range(8)) + b"g 2.\nh .5\n")
    assert profile.total("samples") == round(8 * 0.25 + 2.5)
    assert profile.lost == {"weights with a fraction, rounded": 10}


def test_bad_lines_are_counted() -> None:
    profile = read(b"a 1\nb\n\n# c\na;b -3\na nan\na " + b"9" * 30 + b"\n 5\r\n")
    assert profile.total("samples") == 1
    assert profile.lost == {"lines without a count": 3, "lines not understood": 2}
    assert profile.comments == ["x, line 2: expected a folded stack: frame;frame;frame WEIGHT"]
    with pytest.raises(StallscopeError, match="x, line 2: expected a folded stack"):
        read(b"# comment\nnothing\n")


@given(st.lists(SAMPLES, max_size=12))
def test_round_trip_of_text(samples: list[Sample]) -> None:
    text = write(Profile([ValueType("n", "count")], samples))
    assert write(read(text)) == text


def test_bytes_that_are_no_text_survive() -> None:
    assert read(b"a\xff 1\n").samples == [Sample((Frame("a\udcff"),), (1,))]
