"""The parts of a profile: each is known to what is done to all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from stallscope.converters.anonymous.fields import RULES
from stallscope.converters.model import Profile, ValueType, parts
from stallscope.converters.model.gil import GilThread, GilTimes
from stallscope.converters.model.locks import LockTimes
from stallscope.converters.readers.merging import merge
from stallscope.converters.transforms.names import simplify

OTHERS = {
    *("value_types", "samples", "title", "host", "start_ns", "duration_ns", "lost", "comments", "timeline", "details"),
    *("default_value", "scheduling", "critical", "display", "answered"),
}


def classes(kind: Any) -> Iterator[type]:
    """The dataclasses and named tuples that a type's objects consist of, but for tuples of numbers."""
    for each in get_args(kind):
        yield from classes(each)
    if get_origin(kind) is None and (is_dataclass(kind) or hasattr(kind, "_fields")):
        yield kind
        for hint in hints(kind).values():
            if kind not in get_args(hint):
                yield from classes(hint)


def hints(kind: type) -> dict[str, Any]:
    """Types of a part's fields; a profile's events of the scheduler are no part."""
    return get_type_hints(kind, localns={"Scheduling": Any})


def texts() -> set[tuple[str, str]]:
    """The fields of all parts in which texts are."""
    found = set()
    of_profile = hints(Profile)
    for name in parts.NAMES:
        for kind in classes(of_profile[name]):
            for field, hint in hints(kind).items():
                if hint is str or str in _inner(hint):
                    found.add((kind.__name__, field))
    return found


def _inner(hint: Any) -> set[Any]:
    arguments = set(get_args(hint))
    return arguments.union(*map(_inner, arguments)) if arguments else set()


def test_every_field_of_a_profile_is_known() -> None:
    assert {field.name for field in fields(Profile)} == {*parts.NAMES, *OTHERS}


def test_every_text_is_known() -> None:
    assert texts() == set(parts.TEXTS) == set(RULES)


@pytest.mark.parametrize("name", parts.NAMES)
def test_all_are_merged_and_dropped(name: str) -> None:
    one, two = (Profile([ValueType("off-cpu", "nanoseconds")], **{name: [i]}) for i in (1, 2))
    assert parts.merged([one, two])[name] == [1, 2]
    assert parts.without() == {each: [] for each in parts.NAMES}


def test_names_of_threads_and_processes_are_changed_everywhere() -> None:
    gil = GilTimes("rank-3", 7, waiters=[GilThread("loader-12", 8, frames=("rank-3",))])
    lock = LockTimes("m-1", "mutex", "process", process="rank-3")
    made = Profile([ValueType("off-cpu", "nanoseconds")], gil=[gil], locks=[lock])
    simple = simplify(made, ["numbers"])
    assert (simple.gil[0].process, simple.gil[0].waiters[0].thread) == ("rank-N", "loader-N")
    assert simple.gil[0].waiters[0].frames == ("rank-3",)
    assert (simple.locks[0].process, simple.locks[0].name) == ("rank-N", "m-1")
    assert made.gil == [gil]


def test_merged_profiles_have_all_parts() -> None:
    gil = GilTimes("rank-3", 7)
    one, two = (Profile([ValueType("off-cpu", "nanoseconds")], gil=[gil]) for _ in range(2))
    assert merge([one, two]).gil == [gil, gil]
