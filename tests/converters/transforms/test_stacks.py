from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.model.scheduling import Scheduling
from stallscope.converters.model.timeline import Timeline
from stallscope.converters.transforms import stacks

NS = [ValueType("off-cpu", "nanoseconds"), ValueType("max", "nanoseconds", "max")]
Change = Callable[[Profile], Profile]


def profile(*texts: str) -> Profile:
    """One sample per text, worth 1, 10, 100, …; frames are letters."""
    samples = [Sample(tuple(map(Frame, text)), (10**i, 10**i)) for i, text in enumerate(texts)]
    return Profile(NS, samples, timeline=Timeline(), scheduling=Scheduling(5))


def shown(changed: Profile) -> dict[str, int]:
    assert changed.timeline is None
    assert changed.scheduling is None
    assert len({sample.stack for sample in changed.samples}) == len(changed.samples), "equal samples"
    return {"".join(frame.name for frame in sample.stack): sample.values[0] for sample in changed.samples}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda p: stacks.hide(p, re.compile("[bd]")), {"ac": 111, "acc": 1000}),
        (lambda p: stacks.show(p, re.compile("[bd]")), {"b": 101, "bd": 10}),
        (lambda p: stacks.begin_at(p, re.compile("[bc]")), {"bc": 101, "bcd": 10, "cc": 1000}),
        (lambda p: stacks.begin_at(p, re.compile("d")), {"abc": 101, "d": 10, "acc": 1000}),
        (lambda p: stacks.end_at(p, re.compile("[bc]")), {"ab": 111, "ac": 1000}),
        (lambda p: stacks.end_at(p, re.compile("a")), {"a": 1111}),
        (lambda p: stacks.limit_depth(p, 2), {"ab": 111, "ac": 1000}),
        (lambda p: stacks.limit_depth(p, 9), {"abc": 101, "abcd": 10, "acc": 1000}),
        (stacks.invert, {"cba": 101, "dcba": 10, "cca": 1000}),
        (stacks.collapse_recursion, {"abc": 101, "abcd": 10, "ac": 1000}),
    ],
)
def test_what_is_left(change: Change, expected: dict[str, int]) -> None:
    given_profile = profile("abc", "abcd")
    given_profile.samples += [Sample(tuple(map(Frame, "abc")), (100, 100), (("pid", 1),))]
    given_profile.samples += [Sample(tuple(map(Frame, "acc")), (1000, 1000))]
    before = list(given_profile.samples)
    changed = change(given_profile)
    assert given_profile.samples == before
    sums: dict[str, int] = {}
    for sample in changed.samples:
        text = "".join(frame.name for frame in sample.stack)
        sums[text] = sums.get(text, 0) + sample.values[0]
    assert sums == expected


def test_the_longest_wait_stays_the_longest() -> None:
    changed = stacks.limit_depth(profile("ab", "ac"), 1)
    assert changed.samples == [Sample((Frame("a"),), (11, 10))]


def test_a_sample_whose_frames_are_all_hidden_goes() -> None:
    assert shown(stacks.hide(profile("a", "ab", ""), re.compile("a"))) == {"b": 10, "": 100}
    assert shown(stacks.show(profile("a", "ab"), re.compile("z"))) == {}


@pytest.mark.parametrize(
    ("text", "direct", "cycles"),
    [
        ("aaab", "ab", "ab"),
        ("abab", "abab", "ab"),
        ("ababc", "ababc", "abc"),
        ("abcbd", "abcbd", "abd"),
        ("abac", "abac", "ac"),
        ("aabbaa", "aba", "a"),
        ("", "", ""),
        ("abc", "abc", "abc"),
    ],
)
def test_recursion(text: str, direct: str, cycles: str) -> None:
    assert shown(stacks.collapse_recursion(profile(text))) == {direct: 1}
    assert shown(stacks.collapse_recursion(profile(text), cycles=True)) == {cycles: 1}


def test_call_sites_are_one_function_but_equal_names_elsewhere_are_not() -> None:
    sites = Sample((Frame("f", address=1), Frame("f", address=2, line=3)), (1, 1))
    files = Sample((Frame("forward", "python", file="a.py"), Frame("forward", "python", file="b.py")), (1, 1))
    modules = Sample((Frame("main", module=Module("a")), Frame("main", module=Module("b"))), (1, 1))
    kinds = Sample((Frame("read"), Frame("read", "kernel")), (1, 1))
    for cycles in (False, True):
        changed = stacks.collapse_recursion(Profile(NS, [sites, files, modules, kinds]), cycles=cycles)
        assert [len(sample.stack) for sample in changed.samples] == [1, 2, 2, 2]


STACKS = st.text("abc", max_size=9)
PROFILES = st.lists(STACKS, max_size=6).map(lambda texts: profile(*texts))
PATTERNS = st.sampled_from(["a", "[bc]", "^c$", "", "z"]).map(re.compile)


@settings(deadline=None)
@given(PROFILES)
def test_twice_inverted_is_the_same(given_profile: Profile) -> None:
    assert stacks.invert(stacks.invert(given_profile)).samples == given_profile.samples


@settings(deadline=None)
@given(PROFILES, PATTERNS, st.integers(1, 5))
def test_totals_stay_and_once_is_enough(given_profile: Profile, pattern: re.Pattern[str], depth: int) -> None:
    changes: list[Change] = [
        lambda p: stacks.begin_at(p, pattern),
        lambda p: stacks.end_at(p, pattern),
        lambda p: stacks.limit_depth(p, depth),
        stacks.collapse_recursion,
        lambda p: stacks.collapse_recursion(p, cycles=True),
    ]
    for change in changes:
        changed = change(given_profile)
        assert changed.total("off-cpu") == given_profile.total("off-cpu")
        assert change(changed) == changed
    assert stacks.invert(given_profile).total("off-cpu") == given_profile.total("off-cpu")


@settings(deadline=None)
@given(PROFILES, PATTERNS)
def test_hide_and_show_are_idempotent_and_share_out_the_frames(
    given_profile: Profile, pattern: re.Pattern[str]
) -> None:
    hidden, seen = stacks.hide(given_profile, pattern), stacks.show(given_profile, pattern)
    assert stacks.hide(hidden, pattern) == hidden
    assert stacks.show(seen, pattern) == seen
    assert not any(pattern.search(frame.name) for sample in hidden.samples for frame in sample.stack)
    assert all(pattern.search(frame.name) for sample in seen.samples for frame in sample.stack)
    lost = sum(s.values[0] for s in given_profile.samples if s.stack and all(pattern.search(f.name) for f in s.stack))
    assert hidden.total("off-cpu") == given_profile.total("off-cpu") - lost


@settings(deadline=None)
@given(PROFILES)
def test_without_cycles_no_function_stands_twice(given_profile: Profile) -> None:
    for sample in stacks.collapse_recursion(given_profile, cycles=True).samples:
        assert len(set(sample.stack)) == len(sample.stack)


def test_deep_recursion_is_folded_without_recursion_of_our_own() -> None:
    deep = Profile(NS, [Sample(tuple(map(Frame, "ab" * 20_000)), (1, 1))])
    assert shown(stacks.collapse_recursion(deep, cycles=True)) == {"ab": 1}
    assert len(stacks.collapse_recursion(deep).samples[0].stack) == 40_000
