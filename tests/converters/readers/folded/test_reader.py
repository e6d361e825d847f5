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
from stallscope.converters.readers.source import HEAD, Source
from stallscope.converters.writers import folded as writer

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=8)
FRAMES = st.builds(Frame, NAMES, st.sampled_from(["native", "kernel", "jit"]))
LABELS = st.sampled_from([(), (("pid", 7), ("process", "a b")), (("pid", 8), ("process", "worker-3"))])
SAMPLES = st.builds(
    Sample, st.lists(FRAMES, min_size=1, max_size=5).map(tuple), st.tuples(st.integers(1, 10**12)), LABELS
)


def read(text: bytes, *, in_order: bool = False) -> Profile:
    return folded.read(Source(io.BytesIO(text), "x"), ReadOptions(in_order=in_order))


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


def test_two_weights_a_line_are_a_comparison() -> None:
    more = b"".join(b"main;f%d 0 0\n" % i for i in range(6000))
    text = b"# difffolded.pl\nw-7;main 3 5\nw-7;main;f_[k] 0 2\ng 4\t0\r\n\n" + more
    assert len(text) > HEAD
    profile = read(text + b"h 1\ng 1 0\ni 2.5 3\nj x 3\n")
    assert profile.value_types == [ValueType("after", "count"), ValueType("before", "count")]
    labels = (("pid", 7), ("process", "w"))
    assert profile.samples[:3] == [
        Sample((Frame("main"),), (5, 3), labels),
        Sample((Frame("main"), Frame("f", "kernel")), (2, 0), labels),
        Sample((Frame("g"),), (0, 5)),
    ]
    assert profile.lost == {"lines without two weights": 3}
    assert profile.comments == [
        "x, line 6006: expected a stack with two weights, as the others: frame;frame BEFORE AFTER"
    ]


@pytest.mark.parametrize(
    "text",
    [
        b"a 1 3\nb 2\n",
        b"thread 1 3\nthread 1 4\n",
        b"a 1\nb 2 3\n",
        b"1 2\n",
        b"a 1.5 2\n",
        b"a 1 2.5\n",
        b"a " + b"9" * 19 + b" 3\n",
    ],
)
def test_names_that_end_in_a_number_are_no_weights(text: bytes) -> None:
    assert [each.name for each in read(text).value_types] == ["samples"]


def test_a_comparison_that_is_cut_anywhere_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [b"main;f%d %d %d\n" % (i % 3000, i, i + 1) for i in range(3000)]
    whole = read(b"".join(lines))
    assert (whole.total("before"), whole.total("after")) == (sum(range(3000)), sum(range(3001)))
    monkeypatch.setattr("stallscope.converters.readers.source._CHUNK", 11)
    assert read(b"".join(lines)) == whole


def test_a_comparison_comes_back_from_our_writer() -> None:
    types = [ValueType("after", "count"), ValueType("before", "count")]
    samples = [Sample((Frame("a"), Frame("b 1")), (3, 9)), Sample((Frame("a"),), (0, 2))]
    assert sorted(read(write(Profile(types, samples))).samples) == [
        Sample((Frame("a"),), (0, 2)),
        Sample((Frame("a"), Frame("b\\x201")), (3, 9)),
    ]


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


def test_lines_in_their_order_make_a_timeline_when_asked() -> None:
    text = b"a;b 2\n#x\n  a;c 1.5 \nbad\na;b\t1.5\na;b 3\n"
    profile = read(text, in_order=True)
    assert profile.timeline is not None
    [track] = profile.timeline.tracks
    spans = [(span.start, span.end, span.frame.name) for span in track.spans]
    assert spans == [(0, 8, "a"), (0, 2, "b"), (2, 4, "c"), (4, 8, "b")]
    assert profile.total("samples") == 8
    assert read(text).timeline is None
    assert read(text).samples == profile.samples


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (b"#-1;x 1000\n", True),
        (b"# a comment\n#-1;x 1000\n", True),
        (b"# a comment 5\n", False),
        (b"# one; two 5\nno count\n", False),
        (b"#-1;x\0 5\n", False),
    ],
)
def test_names_that_begin_as_comments_do(head: bytes, known: bool) -> None:
    assert folded.sniff(head) is known
    if known:
        assert folded.read(Source(io.BytesIO(head), "x"), ReadOptions()).total("samples") == 1000
