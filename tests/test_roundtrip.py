"""Files that a writer writes, read back by a reader: one line in PAIRS for each pair that keeps information."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ValueType
from stallscope.converters.model.timeline import Span, Timeline, Track, add_up
from stallscope.converters.readers import detect
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.writers import output
from stallscope.converters.writers.base.options import WriteOptions

View = Callable[[Profile], object]
"""Gives the part of a profile that a format keeps."""


class Pair(NamedTuple):
    """A format that is written and read."""

    suffix: str
    reader: str
    view: View
    options: WriteOptions = WriteOptions()


def _who(labels: Labels, keys: tuple[str, ...]) -> Labels:
    return tuple(pair for pair in labels if pair[0] in keys)


def _stacks(profile: Profile, of: Callable[[Sample], object]) -> Counter[object]:
    sums: Counter[object] = Counter()
    for sample in profile.samples:
        sums[of(sample)] += sample.values[0]
    return +sums


def _everything(profile: Profile) -> object:
    return replace(profile, timeline=None)


def _marked(sample: Sample, keys: tuple[str, ...]) -> object:
    marks = {"kernel": "k", "jit": "j"}
    return _who(sample.labels, keys), tuple((frame.name, marks.get(frame.kind, "")) for frame in sample.stack)


def _folded(profile: Profile) -> object:
    return _stacks(profile, lambda sample: _marked(sample, ("pid", "process")))


def _folded_threads(profile: Profile) -> object:
    return _stacks(profile, lambda sample: _marked(sample, ("pid", "thread", "tid")))


def _functions(sample: Sample, keys: tuple[str, ...]) -> object:
    return _who(sample.labels, keys), tuple((frame.name, frame.kind == "kernel") for frame in sample.stack)


def _speedscope(profile: Profile) -> object:
    return _stacks(profile, lambda sample: _functions(sample, ("pid", "process"))), profile.title, profile.lost


def _speedscope_threads(profile: Profile) -> object:
    return _stacks(profile, lambda sample: _functions(sample, ("pid", "process", "thread", "tid")))


PER_THREAD = WriteOptions(per_thread=True)
PAIRS = [
    Pair(".pb.gz", "pprof", _everything),
    Pair(".folded", "folded", _folded),
    Pair(".folded", "folded", _folded_threads, PER_THREAD),
    Pair(".speedscope.json", "speedscope", _speedscope),
    Pair(".speedscope.json", "speedscope", _speedscope_threads, PER_THREAD),
]
PAIR = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.view.__name__.strip("_"))


def through(profile: Profile, pair: Pair) -> Profile:
    """Written and read back, the format detected."""
    with TemporaryDirectory() as folder:
        path = Path(folder, f"x{pair.suffix}")
        output.write(profile, path, pair.options)
        name, again = detect.read(str(path), ReadOptions())
    assert name == pair.reader
    return again


PLAIN = st.from_regex(re.compile(r"[a-z~][a-z0-9_:<>, ()é]{0,10}[a-z)é]", re.ASCII), fullmatch=True)
"""Names that every format can say as they are."""
HOSTILE = st.text(st.one_of(st.characters(), st.sampled_from(" ;\n\t\\19.-/_[k]\udcff\u202e")), max_size=9)
NUMBERS = st.integers(1, 9999)


def labels_of(names: st.SearchStrategy[str]) -> st.SearchStrategy[Labels]:
    fields = st.fixed_dictionaries({"pid": NUMBERS, "process": names, "thread": names, "tid": NUMBERS})
    return fields.map(lambda given: tuple(sorted(given.items())))


def profiles(names: st.SearchStrategy[str], unit: str = "count") -> st.SearchStrategy[Profile]:
    """One value, so that every format can hold it; equal samples may be there."""
    frames = st.builds(
        Frame,
        names.map(lambda name: name or "x"),
        st.sampled_from(["native", "kernel", "native"]),
        st.just(None),
        st.just(0),
        st.just(""),
        st.just(0),
    )
    samples = st.builds(
        Sample,
        st.lists(frames, min_size=1, max_size=5).map(tuple),
        st.tuples(st.integers(1, 10**6).map(lambda n: n * 1000)),
        labels_of(names),
    )
    return st.lists(samples, min_size=1, max_size=6).map(
        lambda found: Profile([ValueType("wait", unit)], found, title="a title", lost={"events": 3, "stacks": 0})
    )


@PAIR
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_what_a_format_keeps_comes_back(pair: Pair, data: st.DataObject) -> None:
    profile = data.draw(profiles(PLAIN))
    profile.samples = [s._replace(labels=_spaceless(s.labels, pair)) for s in profile.samples]
    assert pair.view(through(profile, pair)) == pair.view(profile)


def _spaceless(labels: Labels, pair: Pair) -> Labels:
    """Folded text has _ for the spaces of a process's name, as stackcollapse-perf.pl has."""
    if pair.reader != "folded":
        return labels
    return tuple((key, value.replace(" ", "_") if isinstance(value, str) else value) for key, value in labels)


@PAIR
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_hostile_names_keep_the_total_and_the_second_time_nothing_changes(pair: Pair, data: st.DataObject) -> None:
    profile = data.draw(profiles(HOSTILE))
    once = through(profile, pair)
    assert sum(sample.values[0] for sample in once.samples) == profile.total("wait")
    assert pair.view(through(once, pair)) == pair.view(once)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_pprof_keeps_everything(data: st.DataObject) -> None:
    profile = data.draw(profiles(HOSTILE, "nanoseconds"))
    module = Module(data.draw(HOSTILE), "ab", 4096)
    profile.samples += [Sample((Frame("x", "jit", module, 16, "f.c", 9),), (-5,), ())]
    assert through(profile, PAIRS[0]) == profile


@pytest.mark.parametrize(("suffix", "exact"), [(".folded", 1000), (".speedscope.json", 1), (".pb.gz", 1)])
def test_times_come_back_as_exact_as_the_format_has_them(suffix: str, exact: int, tmp_path: Path) -> None:
    stacks = [(Frame(name),) for name in "abc"]
    samples = [Sample(stack, (1_234_567 * (i + 1),)) for i, stack in enumerate(stacks)]
    path = tmp_path / f"x{suffix}"
    output.write(Profile([ValueType("off-cpu", "nanoseconds")], samples), path)
    _, again = detect.read(str(path), ReadOptions())
    scale = 1000 if again.value_types[0].unit == "count" else 1
    assert abs(sum(s.values[0] for s in again.samples) * scale - 1_234_567 * 6) <= exact


# Timed formats: when things happened stays, from the first call on.


def _timed(profile: Profile) -> object:
    assert profile.timeline is not None
    tracks = [track for track in profile.timeline.tracks if track.spans]
    zero = min(track.spans[0].start for track in tracks)
    calls = {track.labels: [(s.start - zero, s.end - zero, s.frame.name) for s in track.spans] for track in tracks}
    values = [value_type.unit for value_type in profile.value_types]
    return calls, values, _stacks(profile, lambda sample: (sample.labels, tuple(frame.name for frame in sample.stack)))


TIMED_PAIRS = [Pair(".trace.json", "chrome", _timed), Pair(".speedscope.json", "speedscope", _timed)]
TIMED = pytest.mark.parametrize("pair", TIMED_PAIRS, ids=lambda pair: pair.reader)


@st.composite
def timed_profiles(draw: st.DrawFn, names: st.SearchStrategy[str]) -> Profile:
    """Calls of one or two threads that nest, with gaps; a caller may begin and end with what it calls."""
    tracks = []
    for i in range(draw(st.integers(1, 2))):
        labels = {"pid": 7 + i, "process": draw(names), "thread": draw(names), "tid": 70 + i}
        now, spans, open_ = draw(st.integers(0, 10**15)), [], []
        for steps, name in draw(st.lists(st.tuples(st.integers(-3, 5), names), min_size=1, max_size=9)):
            step = steps
            while open_ and step < 0:
                at = open_.pop()
                spans[at] = spans[at]._replace(end=max(now, spans[at].start + 1))
                now = spans[at].end
                step += 1
            now += max(step, 0)
            open_.append(len(spans))
            spans.append(Span(now, now, Frame(name or "x")))
        for at in reversed(open_):
            now = max(now, spans[at].start + 1)
            spans[at] = spans[at]._replace(end=now)
        tracks.append(Track(tuple(sorted(labels.items())), spans=spans))
    timeline = Timeline(tracks)
    types = [ValueType("wall", "nanoseconds"), ValueType("count", "count")]
    return Profile(types, add_up(timeline), title="a title", timeline=timeline)


@TIMED
@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_a_timeline_comes_back(pair: Pair, data: st.DataObject) -> None:
    profile = data.draw(timed_profiles(PLAIN))
    again = through(profile, pair)
    assert pair.view(again) == pair.view(profile)
    assert not any(again.lost.values())


@TIMED
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_hostile_names_keep_the_times(pair: Pair, data: st.DataObject) -> None:
    profile = data.draw(timed_profiles(HOSTILE))
    once = through(profile, pair)
    assert once.total("time" if pair.reader == "speedscope" else "wall") == profile.total("wall")
    assert pair.view(through(once, pair)) == pair.view(once)
