from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slice_profiles import slices, two_phases
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.model.scheduling import Scheduling
from stallscope.converters.model.timeline import Span, Timeline, Track
from stallscope.converters.transforms import select

NS = [ValueType("off-cpu", "nanoseconds")]
MAIN: Labels = (("pid", 7), ("process", "python3"), ("state", "D"), ("thread", "main"), ("tid", 7))
WORKER: Labels = (("pid", 7), ("process", "python3"), ("state", "S"), ("thread", "worker-1"), ("tid", 8))
SSHD: Labels = (("pid", 9), ("process", "sshd"), ("state", "S"))
IOCTL, TOPK, POLL = Frame("ioctl"), Frame("topk", module=Module("/lib/libtorch.so")), Frame("poll")


def patterns(*texts: str) -> list[re.Pattern[str]]:
    return [re.compile(text) for text in texts]


def profile() -> Profile:
    samples = [
        Sample((TOPK, IOCTL), (1,), MAIN),
        Sample((POLL,), (2,), WORKER),
        Sample((POLL,), (4,), SSHD),
        Sample((), (8,)),
    ]
    threads = [
        ThreadTimes(7, "python3", 7, "main", 1, 1, 0, {}),
        ThreadTimes(7, "python3", 8, "worker-1", 1, 1, 0, {}),
        ThreadTimes(9, "sshd", 9, "sshd", 1, 1, 0, {}),
    ]
    return Profile(NS, samples, "t", "h", threads=threads, lost={"events": 2}, comments=["c"])


@pytest.mark.parametrize(
    ("key", "texts", "kept"),
    [
        ("process", ["python"], 3),
        ("process", ["^python$"], 0),
        ("process", ["^py", "ssh"], 7),
        ("state", ["D"], 1),
        ("pid", ["^9$"], 4),
        ("thread", ["worker-\\d"], 2),
        ("frame", ["ioctl"], 1),
        ("frame", ["libtorch"], 0),
        ("frame", ["^(poll|topk)$"], 7),
    ],
)
def test_keep_and_drop_share_out_the_samples(key: str, texts: list[str], kept: int) -> None:
    given_profile = profile()
    first = select.keep(given_profile, key, patterns(*texts))
    second = select.drop(given_profile, key, patterns(*texts))
    assert first.total("off-cpu") == kept
    assert second.total("off-cpu") == 15 - kept
    assert [s for s in given_profile.samples if s in first.samples or s in second.samples] == given_profile.samples
    assert (first.lost, first.comments, first.host) == ({"events": 2}, ["c"], "h")
    assert given_profile == profile()


def test_accounts_of_threads_go_with_the_thread_but_not_with_a_state_or_a_frame() -> None:
    assert [t.tid for t in select.keep(profile(), "process", patterns("python")).threads] == [7, 8]
    assert [t.tid for t in select.drop(profile(), "thread", patterns("worker")).threads] == [7, 9]
    assert [t.tid for t in select.keep(profile(), "tid", patterns("^8$")).threads] == [8]
    assert len(select.keep(profile(), "state", patterns("D")).threads) == 3
    assert len(select.focus(profile(), re.compile("topk")).threads) == 3


def test_processes_go_with_their_threads() -> None:
    given_profile = profile()
    given_profile.processes = [ProcessTimes(7, "python3", (1,) * 24, "0"), ProcessTimes(9, "sshd", (2,) * 24, "1")]
    seven, nine = given_profile.processes
    assert select.keep(given_profile, "process", patterns("python")).processes == [seven]
    assert select.drop(given_profile, "pid", patterns("7")).processes == [nine]
    # How long threads waited for a core is known of all of them together only.
    part = ProcessTimes(7, "python3", (), "0")
    assert select.keep(given_profile, "tid", patterns("^8$")).processes == [part]
    assert select.drop(given_profile, "thread", patterns("worker")).processes == [part, nine]
    assert select.keep(given_profile, "state", patterns("D")).processes == [seven, nine]


def test_tracks_of_the_timeline_go_with_their_thread() -> None:
    given_profile = profile()
    tracks = [Track(labels, spans=[Span(0, 1, IOCTL)]) for labels in (MAIN, WORKER)]
    given_profile.timeline = Timeline(tracks)
    given_profile.scheduling = Scheduling(5)
    for one in (
        select.keep(given_profile, "thread", patterns("main")),
        select.focus(given_profile, re.compile("ioctl")),
    ):
        assert one.scheduling is None
    kept = select.keep(given_profile, "thread", patterns("main")).timeline
    assert kept is not None and [track.labels for track in kept.tracks] == [MAIN]
    assert len(given_profile.timeline.tracks) == 2
    assert select.focus(given_profile, re.compile("ioctl")).timeline is None
    assert select.keep(given_profile, "frame", patterns("ioctl")).timeline is None


def test_a_label_that_is_nowhere_is_an_error_that_says_which_are() -> None:
    for transform in (select.keep, select.drop):
        with pytest.raises(StallscopeError) as caught:
            transform(profile(), "proces", patterns("x"))
        assert "'proces'" in caught.value.cause
        assert caught.value.remedy.endswith("pid, process, state, thread, tid, frame")
        assert caught.value.exit_code == 2
    assert select.keep(Profile(NS), "process", patterns("x")).samples == []


def test_focus_and_ignore_look_at_modules_too() -> None:
    assert select.focus(profile(), re.compile("libtorch")).total("off-cpu") == 1
    assert select.ignore(profile(), re.compile("libtorch")).total("off-cpu") == 14


NAMES = st.sampled_from(["a", "b", "ab", "c;d", "\n", "é", "x" * 50])
PROFILES = st.builds(
    Profile,
    st.just(NS),
    st.lists(
        st.builds(
            Sample,
            st.lists(NAMES.map(Frame), max_size=5).map(tuple),
            st.tuples(st.integers(0, 9)),
            st.sampled_from([MAIN, WORKER, SSHD]),
        ),
        max_size=8,
    ),
)
EXPRESSIONS = st.sampled_from(["a", "^b$", ".", "", "[^a]", "zz"]).map(re.compile)


@settings(deadline=None)
@given(PROFILES, EXPRESSIONS)
def test_focus_and_ignore_are_a_partition_and_idempotent(given_profile: Profile, pattern: re.Pattern[str]) -> None:
    focused, rest = select.focus(given_profile, pattern), select.ignore(given_profile, pattern)
    assert len(focused.samples) + len(rest.samples) == len(given_profile.samples)
    assert focused.total("off-cpu") + rest.total("off-cpu") == given_profile.total("off-cpu")
    assert all(any(pattern.search(frame.name) for frame in sample.stack) for sample in focused.samples)
    assert not any(pattern.search(frame.name) for sample in rest.samples for frame in sample.stack)
    assert select.focus(focused, pattern) == focused
    assert select.ignore(rest, pattern) == rest
    assert select.ignore(focused, pattern).samples == []


@settings(deadline=None)
@given(PROFILES, EXPRESSIONS, st.sampled_from(["process", "state", "frame"]))
def test_keep_is_idempotent_and_shuts_out_drop(given_profile: Profile, pattern: re.Pattern[str], key: str) -> None:
    kept = select.keep(given_profile, key, [pattern])
    assert select.keep(kept, key, [pattern]) == kept
    assert select.drop(kept, key, [pattern]).samples == []


def test_slices_are_those_of_the_threads_that_are_kept() -> None:
    profile = two_phases()
    profile.slices.append(slices({"cpu": [1]}, pid=2, tid=2))
    assert [each.pid for each in select.keep(profile, "pid", [re.compile("^1$")]).slices] == [1]
    assert [each.pid for each in select.drop(profile, "pid", [re.compile("^1$")]).slices] == [2]
    assert len(select.keep(profile, "state", [re.compile("interruptible")]).slices) == 2
