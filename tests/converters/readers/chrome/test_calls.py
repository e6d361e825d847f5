from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.model import Frame
from stallscope.converters.model.timeline import Span, Timeline, Track, add_up
from stallscope.converters.readers.chrome import calls as chrome_calls
from stallscope.converters.readers.chrome.calls import ANY, END, HIDDEN, OPEN, Calls, LateCall

FRAMES = [Frame("a"), Frame("b"), Frame("c")]
A, B, C = range(3)
Record = tuple[int, int, int]


def made(*records: Record) -> Calls:
    calls = Calls([A, B, C], keep_args=False)
    for record in records:
        add(calls, record)
    return calls


def add(calls: Calls, record: Record) -> None:
    for column, value in zip((calls.starts, calls.ends, calls.frames), record, strict=True):
        column.append(value)


def spans(*records: Record) -> tuple[list[tuple[int, int, str]], dict[str, int]]:
    lost: Counter[str] = Counter()
    found = made(*records).spans(0, FRAMES, lambda kind, count: lost.update({kind: count}))
    return [(span.start, span.end, span.frame.name) for span in found], dict(+lost)


def sums(calls: Calls) -> dict[str, tuple[int, int]]:
    return {"".join(frame.name for frame in stack): (time, count) for stack, time, count in calls.sums(FRAMES)}


def test_callers_come_first_in_whatever_order_the_file_has_them() -> None:
    assert spans((5, 8, C), (0, 10, A), (5, 10, B)) == ([(0, 10, "a"), (5, 10, "b"), (5, 8, "c")], {})


def test_pairs_that_begin_together_keep_their_order() -> None:
    assert spans((3, OPEN, A), (3, OPEN, B), (7, END, B), (7, END, ANY)) == ([(3, 7, "a"), (3, 7, "b")], {})


def test_an_end_with_a_name_ends_what_is_inside_too() -> None:
    assert spans((0, OPEN, A), (1, OPEN, B), (2, OPEN, C), (5, END, A), (6, END, A)) == (
        [(0, 5, "a"), (1, 5, "b"), (2, 5, "c")],
        {"calls without an end": 2, "ends of calls without a begin": 1},
    )


def test_an_end_may_come_before_its_begin_of_the_same_time() -> None:
    records = (0, OPEN, A), (2, END, B), (2, OPEN, B), (3, OPEN, B), (4, END, B), (4, END, C), (9, END, A)
    assert spans(*records) == ([(0, 9, "a"), (2, 2, "b"), (3, 4, "b")], {"ends of calls without a begin": 1})
    assert spans((0, OPEN, A), (2, END, B), (3, OPEN, B), (9, END, A))[1] == {
        "ends of calls without a begin": 1,
        "calls without an end": 1,
    }


def test_a_begin_without_an_end_lasts_until_the_last_event() -> None:
    assert spans((1, OPEN, A), (2, 9, B)) == ([(1, 9, "a"), (2, 9, "b")], {"calls without an end": 1})


def test_rounding_is_not_told_as_a_loss() -> None:
    assert spans((0, 10_000, A), (5_000, 11_000, B), (0, 99_000, C))[1] == {}
    assert spans((0, 10_000, A), (5_000, 11_001, B)) == (
        [(0, 5_000, "a"), (5_000, 11_001, "b")],
        {"calls that overlapped others, shortened": 1},
    )


@pytest.mark.parametrize(
    ("records", "shown"),
    [
        # alpha 0–10, beta 5–15 is 15, by cutting alpha
        ([(0, 10_000, A), (5_000, 15_000, B)], [(0, 5_000, "a"), (5_000, 15_000, "b")]),
        # even if that takes more of it than the end of the other one is
        (
            [(0, 10_000, A), (1_000, 15_000, B), (2_000, 3_000, C)],
            [(0, 1_000, "a"), (1_000, 15_000, "b"), (2_000, 3_000, "c")],
        ),
        # what is around the first one goes on
        (
            [(0, 20_000, C), (1_000, 10_000, A), (5_000, 15_000, B)],
            [(0, 20_000, "c"), (1_000, 5_000, "a"), (5_000, 15_000, "b")],
        ),
        # by what two clocks differ by, the callers last longer
        ([(0, 9_000, C), (0, 9_000, A), (5_000, 9_900, B)], [(0, 9_900, "c"), (0, 9_900, "a"), (5_000, 9_900, "b")]),
        ([(0, 9_000, A), (8_500, 30_000, B)], [(0, 8_500, "a"), (8_500, 30_000, "b")]),
    ],
)
def test_calls_that_overlap_keep_their_time(records: list[Record], shown: list[tuple[int, int, str]]) -> None:
    assert spans(*records)[0] == shown
    calls = made(*records)
    calls.fold(lambda kind, count: None, final=True)
    assert sum(time for time, _ in sums(calls).values()) == max(end for _, end, _ in records)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 12), st.sampled_from([A, B, C])), max_size=20))
def test_the_time_of_a_thread_is_the_union_of_its_calls(steps: list[Record]) -> None:
    records = [(700 * start, 700 * (start + length), frame) for start, length, frame in sorted(steps)]
    covered: set[int] = set()
    for start, end, _ in records:
        covered.update(range(start, end, 700))
    calls = made(*records)
    calls.fold(lambda kind, count: None, final=True)
    assert sum(time for time, _ in sums(calls).values()) == 700 * len(covered)
    assert sum(count for _, count in sums(calls).values()) == len(records)


@pytest.mark.parametrize("frame", [B, HIDDEN])
def test_what_begins_within_a_call_and_goes_on_behind_it(frame: int) -> None:
    """A function begins an annotation that goes on behind it."""
    records = (0, 90_000, A), (10_000, 15_000, frame), (11_000, 14_000, C), (13_000, 80_000, C), (20_000, 30_000, A)
    shown = [(10_000, 13_000, "b")] if frame == B else []
    assert spans(*records) == (
        [(0, 90_000, "a"), *shown, (11_000, 13_000, "c"), (13_000, 80_000, "c"), (20_000, 30_000, "a")],
        {"calls that overlapped others, shortened": 1},
    )
    calls = made(*records)
    calls.fold(lambda kind, count: None, final=True)
    assert sums(calls) == {
        "a": (90_000 - 67_000 - (3_000 if shown else 2_000), 1),
        **({"ab": (1_000, 1), "abc": (2_000, 1), "ac": (57_000, 1)} if shown else {"ac": (59_000, 2)}),
        "aca": (10_000, 1),
    }


def test_calls_without_a_frame_hold_but_are_not_shown() -> None:
    records = (0, OPEN, HIDDEN), (1, OPEN, A), (2, END, A), (3, END, B)
    assert spans(*records) == ([(1, 2, "a")], {})
    calls = made(*records)
    calls.fold(lambda kind, count: None, final=True)
    assert sums(calls) == {"a": (1, 1)}
    assert (calls.first, calls.last) == (0, 2)


def test_what_is_too_deep_is_told_with_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome_calls, "MAX_DEPTH", 2)
    records = (0, 9, A), (1, 8, B), (2, 7, C), (3, 6, A), (8, 9, C)
    assert spans(*records) == (
        [(0, 9, "a"), (1, 8, "b"), (8, 9, "c")],
        {"calls too deep, counted in their callers": 2},
    )
    lost: Counter[str] = Counter()
    calls = made(*records)
    calls.fold(lambda kind, count: lost.update({kind: count}), final=True)
    assert sums(calls) == {"a": (1, 1), "ab": (7, 1), "ac": (1, 1)}
    assert +lost == {"calls too deep, counted in their callers": 2}


def test_what_is_over_is_forgotten_and_what_is_open_is_not() -> None:
    lost: Counter[str] = Counter()
    calls = made((0, 100, A), (1, 4, B), (2, 3, C), (5, 120, B), (6, 7, C))
    calls.fold(lambda kind, count: lost.update({kind: count}))
    # The call that began last may yet turn out to be within one that begins with it.
    assert list(zip(calls.starts, calls.ends, calls.frames, strict=True)) == [(0, 120, A), (5, 120, B), (6, 7, C)]
    assert sums(calls) == {"ab": (2, 1), "abc": (1, 1)}
    add(calls, (6, 8, A))
    add(calls, (200, 201, A))
    calls.fold(lambda kind, count: lost.update({kind: count}), final=True)
    assert sums(calls) == {"a": (3, 2), "ab": (115, 2), "abc": (1, 1), "aba": (1, 1), "abac": (1, 1)}
    assert not +lost
    assert (calls.first, calls.last) == (0, 201)


@pytest.mark.parametrize(
    ("records", "late"),
    [
        ([(0, 50, A), (5, 20, B), (9, 10, C)], (8, 9, A)),
        ([(0, OPEN, A), (5, OPEN, B), (9, END, B)], (8, OPEN, A)),
        ([(0, OPEN, A), (5, 20, B), (9, END, B), (10, 11, C)], (8, END, A)),
    ],
)
def test_a_call_that_comes_too_late_is_noticed(records: list[Record], late: Record) -> None:
    calls = made(*records)
    calls.fold(lambda kind, count: None)
    add(calls, late)
    with pytest.raises(LateCall):
        calls.fold(lambda kind, count: None, final=True)


def test_calls_in_the_order_of_their_ends_are_kept_until_the_end() -> None:
    calls = made((2, 3, C), (1, 4, B), (0, 9, A))
    calls.fold(lambda kind, count: None)
    assert len(calls.starts) == 3
    calls.fold(lambda kind, count: None, final=True)
    assert sums(calls) == {"a": (6, 1), "ab": (2, 1), "abc": (1, 1)}


RECORDS = st.lists(
    st.tuples(
        st.integers(-1, 3), st.one_of(st.integers(0, 12), st.sampled_from([OPEN, END])), st.sampled_from([A, B, C])
    ),
    max_size=20,
)


@given(RECORDS, st.integers(1, 5), st.booleans(), st.integers(1, 6))
def test_added_up_while_they_come_or_at_the_end_is_the_same(
    steps: list[Record], every: int, hide: bool, depth: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chrome_calls, "MAX_DEPTH", depth)
        _added_up_is_the_same(steps, every, hide)


def _added_up_is_the_same(steps: list[Record], every: int, hide: bool) -> None:
    records, time = [], 0
    for step, length, frame in steps:
        time += 700 * step
        shown = HIDDEN if hide and length == OPEN and frame == C else frame
        records.append((time, length if length in (OPEN, END) else time + 700 * length, shown))
    lost, expected_lost = Counter[str](), Counter[str]()
    whole = made(*records).spans(0, FRAMES, lambda kind, count: expected_lost.update({kind: count}))
    expected = {
        "".join(frame.name for frame in sample.stack): sample.values
        for sample in add_up(Timeline([Track(spans=whole)]))
    }
    calls = made()
    try:
        for i, record in enumerate(records):
            add(calls, record)
            if i % every == 0:
                calls.fold(lambda kind, count: lost.update({kind: count}))
        calls.fold(lambda kind, count: lost.update({kind: count}), final=True)
    except LateCall:
        assert any(step < 0 for step, _, _ in steps)
        return
    assert sums(calls) == expected
    assert +lost == +expected_lost
    assert calls.last == max((span.end for span in whole), default=None)


def test_arguments_stand_with_their_call() -> None:
    calls = Calls([A, B, C], keep_args=True)
    for record in ((5, 6, B), (0, 9, A)):
        add(calls, record)
    assert calls.args is not None
    calls.args[1] = (("n", 1),)
    assert calls.spans(0, FRAMES, lambda kind, count: None) == [
        Span(0, 9, FRAMES[A], (("n", 1),)),
        Span(5, 6, FRAMES[B]),
    ]
