from stallscope.converters.model import Frame, Sample
from stallscope.converters.timeline import Span, Timeline, Track, add_up

A, B, C = Frame("a"), Frame("b"), Frame("c")


def test_self_time_is_what_the_callees_leave() -> None:
    spans = [Span(0, 100, A), Span(10, 40, B), Span(20, 30, C), Span(40, 50, B), Span(100, 105, B)]
    labels = (("process", "p"),)
    assert sorted(add_up(Timeline([Track(labels, spans=spans)]))) == sorted(
        [
            Sample((A,), (60, 1), labels),
            Sample((A, B), (30, 2), labels),
            Sample((A, B, C), (10, 1), labels),
            Sample((B,), (5, 1), labels),
        ]
    )


def test_tracks_do_not_nest_in_each_other_and_add_up_by_their_labels() -> None:
    tracks = [Track(spans=[Span(0, 10, A)]), Track(spans=[Span(2, 5, A)]), Track((("tid", 7),), spans=[Span(0, 4, A)])]
    assert add_up(Timeline(tracks)) == [Sample((A,), (13, 2)), Sample((A,), (4, 1), (("tid", 7),))]


def test_a_span_of_no_length_is_counted() -> None:
    assert add_up(Timeline([Track(spans=[Span(5, 5, A)])])) == [Sample((A,), (0, 1))]
