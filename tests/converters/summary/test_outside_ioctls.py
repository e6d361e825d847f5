from __future__ import annotations

from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.model.calls import CallTimes
from stallscope.converters.summary.calls import Calls
from stallscope.converters.summary.outside_ioctls import line, outside_ioctls

MS = 1_000_000
INSIDE = Frame("cuInit", module=Module("/x/libcuda.so.1"), kind="api"), Frame("A /dev/x", kind="api")


def ioctls(*each: tuple[str, int, int]) -> list[Calls]:
    """Name, time of calls that returned, and of others."""
    calls = [CallTimes(name, "/dev/x", 1, "train", 1, ns, open_count=1, open_time=rest) for name, ns, rest in each]
    return [Calls(call, (call,)) for call in calls]


def profile(ns: int) -> Profile:
    return Profile([ValueType("calls", "nanoseconds")], [Sample(INSIDE, (ns,), (("state", "running"),))])


def test_what_is_not_in_samples_is_outside() -> None:
    found = outside_ioctls(profile(30 * MS), ioctls(("A", 40 * MS, 5 * MS), ("B", 20 * MS, 0), ("C", MS, 0)))
    assert found == (("B /dev/x", 20 * MS), ("A /dev/x", 15 * MS), ("C /dev/x", MS))
    assert line(found) == "Ioctls outside of these calls: 36.0 ms (B /dev/x 20.0 ms, A /dev/x 15.0 ms, 1 other)"


def test_all_inside() -> None:
    assert outside_ioctls(profile(45 * MS), ioctls(("A", 40 * MS, 5 * MS))) == ()
    assert outside_ioctls(profile(100 * MS), ioctls(("A", 100 * MS, 1000))) == ()


def test_names_are_hostile() -> None:
    assert "\x1b" not in line([("A /dev/\x1b[31m", MS)])
