from __future__ import annotations

from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.model.samples import Module
from stallscope.converters.summary.call_places import Place, Places, Times, is_joined, times_of

LIBRARY = Module("/x/libcuda.so.1")
STACK = (
    Frame("main"),
    Frame("cudaMalloc", "api", Module("/x/libcudart.so.12")),
    Frame("cuMemAlloc_v2", "api", LIBRARY),
    Frame("A /dev/x", "api"),
    *(Frame(name, "kernel") for name in ("__x64_sys_ioctl", "down_read", "schedule")),
)


def test_functions_are_of_files_and_ioctls_are_not() -> None:
    places = Places()
    assert places.of(STACK) == Place(("cudaMalloc", "cuMemAlloc_v2"), "A /dev/x", "down_read")
    assert places.of(STACK[:2]) == Place(("cudaMalloc",), "", "")
    assert places.of(STACK) is places.of(STACK)


def test_times_go_by_the_state() -> None:
    def sample(state: str) -> Sample:
        return Sample(STACK, (5, 0), (("state", state),))

    assert times_of(sample("running")) == Times(on_cpu=5)
    assert times_of(sample("uninterruptible")) == Times(blocked=5)
    assert times_of(sample("runnable-woken")) == times_of(sample("runnable-preempted")) == Times(runnable=5)
    assert Times(1, 2, 3).plus(Times(10, 20, 30)) == Times(11, 22, 33)
    assert Times(1, 2, 3).sum == 6


def test_profiles_of_ioctls_are_not_joined() -> None:
    count = ValueType("calls", "count")
    assert is_joined(Profile([ValueType("calls", "nanoseconds"), count]))
    assert not is_joined(Profile([ValueType("ioctl", "nanoseconds"), count]))
