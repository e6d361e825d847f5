from stallscope.converters.model import Frame, Sample
from stallscope.converters.model.timeline import Span, Timeline, Track, add_up, in_order

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


def test_samples_in_order_share_the_frames_of_their_neighbours() -> None:
    steps = [((A, B), (), 5), ((A, C), (), 3), ((A, B), (), 2), ((A, B, C), (), 4), ((B,), (), 0), ((B, B), (), 1)]
    timeline = in_order(steps, "count")
    [track] = timeline.tracks
    assert timeline.unit == "count"
    assert track.spans == [
        Span(0, 14, A), Span(0, 5, B), Span(5, 8, C), Span(8, 14, B), Span(10, 14, C), Span(14, 15, B), Span(14, 15, B)
    ]  # fmt: skip
    assert sum(sample.values[0] for sample in add_up(timeline)) == 15


def test_each_thread_is_a_track_on_the_same_clock() -> None:
    one, two = (("pid", 1),), (("pid", 2),)
    timeline = in_order([((A,), one, 5), ((A,), two, 3), ((A,), one, 2), ((Frame("a"), B), one, 1)], "count")
    assert [track.labels for track in timeline.tracks] == [one, two]
    assert timeline.tracks[0].spans == [Span(0, 5, A), Span(8, 11, A), Span(10, 11, B)]
    assert timeline.tracks[1].spans == [Span(5, 8, A)]
    assert in_order([], "count").tracks == []
