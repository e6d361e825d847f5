from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import HEAD, Source
from stallscope.converters.readers.folded import reader as folded
from stallscope.converters.writers import folded as writer
from stallscope.converters.writers.base.options import WriteOptions

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=8).filter(str.strip)
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
    assert worded(profile.comments) == [
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
    monkeypatch.setattr("stallscope.converters.readers.base.source._CHUNK", 11)
    assert read(b"".join(lines)) == whole


def test_a_comparison_comes_back_from_our_writer() -> None:
    types = [ValueType("after", "count"), ValueType("before", "count")]
    samples = [Sample((Frame("a"), Frame("b 1")), (3, 9)), Sample((Frame("a"),), (0, 2))]
    assert sorted(read(write(Profile(types, samples))).samples) == [
        Sample((Frame("a"),), (0, 2)),
        Sample((Frame("a"), Frame("b\\x201")), (3, 9)),
    ]


def test_a_weight_beyond_64_bits_is_told_as_such() -> None:
    most = 2**63 - 1
    text = b"a;b 3\na;c %d\na;d %d\na;e -%d\na;f %d.5\n" % (most, most + 1, 10**19, 10**19)
    profile = read(text)
    assert [each.values for each in profile.samples] == [(3,), (most,)]
    assert profile.lost == {"weights beyond 64 bits": 3}
    reason = "x, line 3: expected a weight of at most 9223372036854775807, which is what 64 bits hold"
    assert worded(profile.comments) == [reason]
    for wrong in (b"a;c %d\n" % (most + 1), text + text.splitlines()[2] * 9):
        with pytest.raises(StallscopeError, match="at most 9223372036854775807"):
            read(wrong + b"\na 9999999999999999999" * 9)
    pairs = read(b"a 1 2\nb 3 %d\nc %d 5\n" % (most + 1, most))
    assert [each.values for each in pairs.samples] == [(2, 1), (5, most)]
    assert worded(pairs.comments) == [reason.replace("line 3", "line 2")]


def test_a_line_with_a_nul_byte_is_skipped_and_the_rest_read() -> None:
    for text in (b"a;b 3\na;\0c 4\na;d 5\n", b"\0\0\0\0a;c 1\na;b 3\na;d 5\n"):
        assert folded.sniff(text)
        profile = read(text)
        assert [each.values for each in profile.samples] == [(3,), (5,)]
        assert profile.lost == {"lines with a NUL byte": 1}
        assert worded(profile.comments) == [f"x, line {1 + text.startswith(b'a')}: expected text without NUL bytes"]
    pairs = read(b"a 1 2\n\0\0 7\nb 3 4\n")
    assert (pairs.total("after"), pairs.lost) == (6, {"lines with a NUL byte": 1})
    assert not folded.sniff(b"a;b 1\n\0;c 2\nd\0;e 3\n")


def test_bad_lines_are_counted() -> None:
    profile = read(b"a 1\nb\n\n# c\na;b -3x2\na nan\na " + b"9" * 30 + b"\n 5\r\na 1\na 1\na 1\na 0\n")
    assert profile.total("samples") == 4
    assert profile.lost == {"lines without a count": 3, "lines not understood": 1, "weights beyond 64 bits": 1}
    assert worded(profile.comments) == ["x, line 2: expected a folded stack: frame;frame;frame WEIGHT"]
    with pytest.raises(StallscopeError, match="x, line 2: expected a folded stack"):
        read(b"# comment\nnothing\n")


def test_weights_of_a_difference_may_be_negative() -> None:
    profile = read(b"# difference\na;b -3\na;b 1\na;c -0.75\na;d 2\n")
    found = {";".join(frame.name for frame in sample.stack): sample.values[0] for sample in profile.samples}
    assert found == {"a;b": -2, "a;c": -1, "a;d": 2}


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("# comment\n// another\na;b 1\na;c 2\n", True),
        ("# comment\n\n", False),
        ("a;b -4\n", True),
        ("one\ntwo\nthree 3\n", False),
        ("a;b 1\nnot this\n", True),
        ("a 1\0\n", False),
    ],
)
def test_most_lines_tell_the_format(text: str, known: bool) -> None:
    assert folded.sniff(text.encode()) is known


def test_a_text_that_is_something_else_is_refused() -> None:
    text = "".join(f"name{i} {i}\nno number at all\nneither here\n" for i in range(10))
    with pytest.raises(StallscopeError, match="x looks like this format, but 20 of its 30 lines are not understood"):
        read(text.encode())


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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"main 3\nother 4\n", True),
        (b"main 3\npackage runtime\nother 4\n", False),
        (b"// made; do not edit\n//  8  8192  0\n// 16  8192  5\n\npackage runtime\n", False),
        (b"a;b 3\npackage runtime\nother 4\n", True),
    ],
)
def test_a_list_with_numbers_is_no_profile(text: bytes, found: bool) -> None:
    assert folded.sniff(text) is found


def test_a_semicolon_at_the_end_is_no_frame() -> None:
    def stacks(profile: Profile) -> dict[str, tuple[int, ...]]:
        return {";".join(frame.name for frame in sample.stack): tuple(sample.values) for sample in profile.samples}

    assert stacks(read(b"a;b; 3\na;b 4\na;; 2\na;;b 1\n")) == {"a;b": (7,), "a": (2,), "a;[unknown];b": (1,)}
    assert stacks(read(b"a;b; 3 4\na; 1 2\n")) == {"a;b": (4, 3), "a": (2, 1)}
    timeline = folded.read(Source(io.BytesIO(b"a;b; 3\n"), "x"), ReadOptions(in_order=True)).timeline
    assert timeline is not None
    assert [span.frame.name for span in timeline.tracks[0].spans] == ["a", "b"]
