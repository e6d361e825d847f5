from __future__ import annotations

from collections import Counter

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Sample
from stallscope.converters.readers.chrome import tracks as chrome_tracks
from stallscope.converters.readers.chrome.tracks import Tracks

A, B = Frame("a"), Frame("b")


def made(*, timeline: bool = False, fold: int = 4) -> tuple[Tracks, Counter[str]]:
    lost: Counter[str] = Counter()
    tracks = Tracks(lambda kind, count: lost.update({kind: count}), timeline=timeline, fold=fold)
    tracks.name_of += [0, 1]
    return tracks, lost


def add(tracks: Tracks, tid: int | str, start: int, end: int, frame: int = 0) -> None:
    track = tracks.of(1, tid)
    track.starts.append(start)
    track.ends.append(end)
    track.frames.append(frame)
    tracks.pending += 1


def test_names_and_ids() -> None:
    tracks, _ = made()
    tracks.name({"name": "process_name", "pid": 1, "args": {"name": "p"}})
    tracks.name({"name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "t"}})
    tracks.name({"name": "process_labels", "pid": 1})
    assert tracks.labels(1, 2) == (("pid", 1), ("process", "p"), ("thread", "t"), ("tid", 2))
    assert tracks.labels("7", "io") == (("pid", 7), ("thread", "io"))
    assert tracks.labels(-1, -2) == (("pid", -1), ("tid", -2))


@pytest.mark.parametrize("value", [True, 1.5, [], {}, -(1 << 63) - 1, 1 << 63])
def test_ids_that_are_none(value: object) -> None:
    tracks, _ = made()
    with pytest.raises((TypeError, ValueError)):
        tracks.of(1, value)


def test_calls_are_added_up_when_there_are_many() -> None:
    tracks, lost = made()
    for i in range(100):
        add(tracks, i % 2, 10 * i, 10 * i + 5, 0)
        tracks.settle("x")
        assert len(tracks.of(1, 0).starts) <= 4
    assert tracks.sums([A, B]) == (
        [Sample((A,), (250, 50), (("pid", 1), ("tid", tid))) for tid in (0, 1)],
        995,
    )
    assert not +lost


def test_threads_with_the_same_labels_are_one() -> None:
    tracks, _ = made()
    add(tracks, 3, 0, 5)
    add(tracks, "3", 1, 2)
    assert tracks.sums([A, B])[0] == [Sample((A,), (6, 2), (("pid", 1), ("tid", 3)))]


@pytest.mark.parametrize(("timeline", "fold"), [(True, 4), (False, 0)])
def test_what_cannot_be_added_up_has_a_bound(monkeypatch: pytest.MonkeyPatch, timeline: bool, fold: int) -> None:
    monkeypatch.setattr(chrome_tracks, "FOLD", 1)
    monkeypatch.setattr(chrome_tracks, "MAX_CALLS", 3)
    tracks, _ = made(timeline=timeline, fold=fold)
    for i in range(3):
        add(tracks, 1, i, i + 1)
        tracks.settle("x")
    add(tracks, 1, 9, 10)
    with pytest.raises(StallscopeError, match="x has more than 3 calls"):
        tracks.settle("x")


def test_nothing_has_no_length() -> None:
    tracks, _ = made()
    tracks.of(1, 1)
    assert tracks.sums([]) == ([], 0)
