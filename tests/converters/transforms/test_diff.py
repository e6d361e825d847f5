from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.scheduling import Scheduling
from stallscope.converters.model.timeline import Timeline
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.transforms.diff import AFTER, BEFORE, differential, is_differential

NS, COUNT = ValueType("off-cpu", "nanoseconds"), ValueType("count", "count")


def profile(stacks: dict[str, int], **more: object) -> Profile:
    samples = [Sample(tuple(map(Frame, text)), (value, 1)) for text, value in stacks.items()]
    return Profile([NS, COUNT], samples, **more)  # type: ignore[arg-type]


def shown(changed: Profile) -> dict[str, tuple[int, ...]]:
    return {"".join(frame.name for frame in sample.stack): sample.values for sample in changed.samples}


def test_both_weights_side_by_side() -> None:
    before, after = profile({"ab": 10, "ac": 5}), profile({"ab": 4, "ad": 7})
    changed = differential(before, after)
    assert shown(changed) == {"ab": (4, 10), "ad": (7, 0), "ac": (0, 5)}
    assert changed.value_types == [ValueType("after", "nanoseconds"), ValueType("before", "nanoseconds")]
    assert (changed.total(AFTER), changed.total(BEFORE)) == (11, 15)
    assert is_differential(changed) and not is_differential(after)


def test_normalised_are_shares_of_each_side() -> None:
    changed = differential(profile({"a": 1, "b": 2, "c": 0}), profile({"a": 99, "d": 1}), normalise=True)
    assert shown(changed) == {"a": (990_000_000, 333_333_333), "d": (10_000_000, 0), "b": (0, 666_666_667)}
    assert [value.unit for value in changed.value_types] == ["ppb", "ppb"]
    (comment,) = worded(changed.comments)
    assert comment.startswith("shares of all ")


def test_nothing_cannot_be_scaled() -> None:
    with pytest.raises(StallscopeError, match="nothing before"):
        differential(profile({}), profile({"a": 1}), normalise=True)
    assert shown(differential(profile({}), profile({"a": 1}))) == {"a": (1, 0)}


def test_functions_are_compared_across_builds_and_runs() -> None:
    old = Frame("topk", "native", Module("/old/lib/libtorch.so.2.1", "aa", 9), 0x10, "/old/src/topk.cc", 3)
    new = Frame("topk", "native", Module("/new/libtorch.so.2.2", "bb", 8), 0x20, "/new/src/topk.cc", 4)
    other = new._replace(module=Module("/new/libother.so"))
    before = Profile([NS], [Sample((old,), (5,), (("host", "x"), ("pid", 1), ("process", "p"), ("tid", 2)))])
    after = Profile([NS], [Sample((new,), (3,), (("pid", 9), ("process", "p"))), Sample((other,), (1,))])
    function = Frame("topk", "native", Module("/new/libtorch.so.2.2"), 0, "/new/src/topk.cc", 0)
    assert differential(before, after).samples == [
        Sample((function,), (3, 5), (("process", "p"),)),
        Sample((function._replace(module=Module("/new/libother.so")),), (1, 0)),
    ]


def test_what_is_known_of_both_sides_is_told_apart() -> None:
    thread = ThreadTimes(1, "p", 1, "p", 1, 1, 0, {})
    sides = [
        profile({"a": 1}, title=t, host=h, lost={"events": n}, comments=[f"kept {n}", "same"], threads=[thread])
        for t, h, n in (("old", "h1", 1), ("new", "h2", 0))
    ]
    sides[1].timeline, sides[1].scheduling = Timeline(), Scheduling(5)
    changed = differential(*sides)
    assert changed.lost == {"events (before)": 1, "events (after)": 0}
    assert worded(changed.comments) == ["same", "before: kept 1", "after: kept 0"]
    assert (changed.title, changed.host) == ("new, compared with old", "h1 → h2")
    assert (changed.threads, changed.timeline, changed.scheduling) == ([], None, None)
    assert differential(profile({}, title="t"), profile({}, title="t")).title == "t: before and after"


def test_the_value_is_chosen_by_name_unit_or_meaning() -> None:
    before = Profile([COUNT, ValueType("wait", "nanoseconds")], [Sample((Frame("a"),), (2, 30))])
    after = profile({"a": 50})
    assert shown(differential(before, after)) == {"a": (50, 30)}
    assert shown(differential(before, after, "time")) == {"a": (50, 30)}
    assert shown(differential(before, after, "count")) == {"a": (1, 2)}
    for value in ("off-cpu", "nonsense"):
        with pytest.raises(StallscopeError) as caught:
            differential(before, after, value)
        assert caught.value.exit_code == 2
    with pytest.raises(StallscopeError, match=r"cannot be compared: off-cpu \(nanoseconds\) after, bytes \(bytes\)"):
        differential(Profile([ValueType("bytes", "bytes")]), after)


STACKS = st.dictionaries(st.text("abc", max_size=4), st.integers(0, 10**12), max_size=8)


@settings(deadline=None)
@given(STACKS, st.integers(1, 9))
def test_a_profile_does_not_differ_from_itself_nor_normalised_from_its_multiple(
    stacks: dict[str, int], factor: int
) -> None:
    same = differential(profile(stacks), profile(stacks))
    assert all(after == before for after, before in shown(same).values())
    assert same.total(AFTER) == sum(stacks.values())
    if any(stacks.values()):
        larger = profile({text: value * factor for text, value in stacks.items()})
        for before, after in ((profile(stacks), larger), (larger, profile(stacks))):
            assert all(a == b for a, b in shown(differential(before, after, normalise=True)).values())


@settings(deadline=None)
@given(STACKS, STACKS)
def test_totals_of_both_sides_stay(first: dict[str, int], second: dict[str, int]) -> None:
    changed = differential(profile(first), profile(second))
    assert (changed.total(AFTER), changed.total(BEFORE)) == (sum(second.values()), sum(first.values()))
    turned = differential(profile(second), profile(first))
    assert shown(turned) == {text: (before, after) for text, (after, before) in shown(changed).items()}
    if any(first.values()):
        scaled = differential(profile(first), profile(second), normalise=True)
        assert scaled.total(BEFORE) == scaled.total(AFTER) or not any(second.values())
