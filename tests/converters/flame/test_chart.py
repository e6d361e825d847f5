from __future__ import annotations

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.flame.chart import build, shows_states
from stallscope.converters.flame.tree import Tree
from stallscope.converters.model import Frame, Profile, ValueType
from stallscope.converters.model.timeline import CORES, Span, Timeline, Track, add_up
from stallscope.converters.writers.base.options import WriteOptions

A, B, C = Frame("a"), Frame("b", "kernel"), Frame("c")
MAIN = (("pid", 7), ("process", "job"), ("thread", "main"), ("tid", 8))

THREAD = (("pid", 7), ("process", "sh"), ("thread", "sh"), ("tid", 7))
CORE = (("pid", CORES), ("process", "cores"), ("thread", "core 1"), ("tid", CORES + 2))


def timed(*tracks: Track) -> Profile:
    timeline = Timeline(list(tracks))
    types = [ValueType("wall", "nanoseconds"), ValueType("count", "count")]
    return Profile(types, add_up(timeline), timeline=timeline)


def rows(tree: Tree) -> list[tuple[str, int, int, int, int]]:
    return [(node.key.name, node.depth, node.start, node.total, node.own) for node in tree.nodes]


def test_calls_stay_where_they_were_and_apart() -> None:
    spans = [Span(0, 60, A), Span(10, 30, B), Span(15, 20, C), Span(30, 50, B), Span(80, 100, A)]
    tree = build(timed(Track(MAIN, spans=spans)), WriteOptions())
    assert rows(tree) == [
        ("job-7 · main-8", 0, 0, 100, 0),
        ("a", 1, 0, 60, 20),
        ("b", 2, 10, 20, 15),
        ("c", 3, 15, 5, 5),
        ("b", 2, 30, 20, 20),
        ("a", 1, 80, 20, 20),
    ]
    assert (tree.total, tree.bands, tree.levels, tree.hidden, tree.timed) == (100, [4], 4, 0, True)
    assert tree.nodes[2].key.kind == "kernel"


def test_tracks_share_the_axis_and_lie_one_above_the_other() -> None:
    tracks = [Track(MAIN, spans=[Span(0, 10, A)]), Track(name="empty"), Track(name="late", spans=[Span(30, 40, B)])]
    tree = build(timed(*tracks), WriteOptions())
    assert rows(tree) == [
        ("job-7 · main-8", 0, 0, 40, 0), ("a", 1, 0, 10, 10), ("late", 0, 0, 40, 0), ("b", 1, 30, 10, 10)
    ]  # fmt: skip
    assert tree.bands == [2, 2]


@pytest.mark.parametrize(
    ("track", "roots", "name"),
    [
        (Track(MAIN, "named"), None, "named"),
        (Track(MAIN, "named"), ("process",), "job-7"),
        (Track(MAIN), ("thread",), "main-8"),
        (Track(MAIN), (), "all"),
        (Track((("pid", 7),)), None, "[unknown]-7"),
        (Track((("pid", 7), ("process", "sh"), ("thread", "sh"), ("tid", 7))), None, "sh-7"),
        (
            Track((("pid", 7), ("process", "sh"), ("thread", "sh (9 again)"), ("tid", CORES + 9))),
            None,
            "sh-7 · sh (9 again)",
        ),
        (Track((("pid", CORES), ("process", "cores"), ("thread", "core 1"), ("tid", CORES + 2))), None, "core 1"),
        (Track((("pid", CORES),)), None, "cores"),
        (Track(), None, "all"),
    ],
)
def test_names_of_tracks(track: Track, roots: tuple[str, ...] | None, name: str) -> None:
    track.spans = [Span(0, 5, A)]
    assert build(timed(track), WriteOptions(roots=roots)).nodes[0].key.name == name


def states_of(*tracks: Track) -> list[tuple[str, str]]:
    tree = build(timed(*tracks), WriteOptions(), label="state")
    return [(node.key.name, node.label) for node in tree.nodes]


def test_states_of_threads_and_cores_have_labels() -> None:
    names = ["running", "runnable-woken", "wait4: do_wait", "uninterruptible", "ended"]
    spans = [Span(i * 10, i * 10 + 10, Frame(name)) for i, name in enumerate(names)]
    spans.insert(1, Span(2, 5, Frame("inner")))
    cores = [Span(0, 10, Frame("sh 7")), Span(10, 20, Frame("[not traced]"))]
    tracks = Track(THREAD, spans=spans), Track(CORE, spans=cores), Track(MAIN, spans=[Span(0, 5, A)])
    assert shows_states(Timeline(list(tracks)))
    assert states_of(*tracks) == [
        ("sh-7", ""),
        ("running", "running"),
        ("inner", "running"),
        ("runnable-woken", "runnable-woken"),
        ("wait4: do_wait", "interruptible"),
        ("uninterruptible", "uninterruptible"),
        ("ended", "ended"),
        ("core 1", ""),
        ("sh 7", "running"),
        ("[not traced]", "other"),
        ("job-7 · main-8", ""),
        ("a", ""),
    ]


def test_calls_are_no_states() -> None:
    assert not shows_states(None)
    assert not shows_states(timed(Track(MAIN, spans=[Span(0, 9, A), Span(1, 3, Frame("running"))])).timeline)


def test_short_calls_go_with_all_that_they_call() -> None:
    spans = [Span(0, 1000, A), Span(10, 14, B), Span(11, 13, C), Span(14, 16, C), Span(20, 420, C), Span(500, 500, B)]
    tree = build(timed(Track(spans=spans)), WriteOptions(), minimum=0.01)
    assert [row[0] for row in rows(tree)] == ["all", "a", "c"]
    assert tree.hidden == 3, "b with its c, c, and the b without a length"
    assert tree.nodes[1].own == 1000 - 4 - 2 - 400, "its own time is what it is, whether its callees are drawn or not"


def test_a_call_without_a_length_is_counted_where_a_short_one_ends() -> None:
    spans = [Span(0, 1000, A), Span(10, 14, B), Span(11, 12, C), Span(14, 14, C), Span(500, 500, B), Span(500, 500, C)]
    tree = build(timed(Track(spans=spans)), WriteOptions(), minimum=0.01)
    assert [row[0] for row in rows(tree)] == ["all", "a"]
    assert tree.hidden == 4, "b with its c, and all that have no length"


def test_the_axis_may_end_later_but_not_earlier() -> None:
    profile = timed(Track(spans=[Span(0, 60, A)]))
    later = build(profile, WriteOptions(), whole=100)
    assert (later.total, later.measured) == (100, 60)
    assert build(profile, WriteOptions()).measured == 60
    with pytest.raises(StallscopeError, match="there is 60"):
        build(profile, WriteOptions(), whole=59)


def test_the_state_of_a_track_is_that_of_its_calls() -> None:
    tree = build(timed(Track((("state", "idle"),), spans=[Span(0, 60, A)])), WriteOptions(), label="state")
    assert [node.label for node in tree.nodes] == ["idle", "idle"]


@pytest.mark.parametrize(
    ("profile", "options", "cause"),
    [
        (Profile([ValueType("wall", "nanoseconds")]), WriteOptions(), "needs to know when"),
        (timed(Track(spans=[Span(0, 60, A)])), WriteOptions(value="count"), "timeline is in nanoseconds"),
        (timed(Track(spans=[Span(0, 60, A)])), WriteOptions(reverse=True), "--reverse"),
    ],
)
def test_what_is_no_chart(profile: Profile, options: WriteOptions, cause: str) -> None:
    with pytest.raises(StallscopeError, match=cause) as error:
        build(profile, options)
    assert error.value.exit_code == 2
    assert error.value.remedy


def test_nothing_to_show() -> None:
    assert build(timed(Track()), WriteOptions()).nodes == []
    assert build(timed(Track(spans=[Span(0, 0, A)])), WriteOptions()).nodes == []
