import pytest
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType

OFF_CPU = ValueType("off-cpu", "nanoseconds")
COUNT = ValueType("count", "count")


def test_frame_is_native_unless_said_otherwise() -> None:
    assert Frame("main") == Frame("main", "native", None, 0, "", 0)


def test_frames_of_one_function_in_two_processes_are_equal() -> None:
    module = Module("/usr/lib/libc.so.6", "ab12", 0x1D5000)
    frames = {
        Frame("read", "native", module, 0x1000),
        Frame("read", "native", Module("/usr/lib/libc.so.6", "ab12", 0x1D5000), 0x1000),
    }
    assert len(frames) == 1


def test_label() -> None:
    sample = Sample((), (1,), (("pid", 0), ("process", "")))
    assert sample.label("pid") == 0
    assert sample.label("process") == ""
    assert sample.label("tid") is None


def test_total_adds_the_column_of_that_name() -> None:
    profile = Profile([OFF_CPU, COUNT], [Sample((), (100, 1)), Sample((Frame("f"),), (20, 3))])
    assert profile.index("count") == 1
    assert profile.total("off-cpu") == 120
    assert profile.total("count") == 4
    with pytest.raises(KeyError, match="max"):
        profile.total("max")


def test_profiles_do_not_share_their_lists() -> None:
    first, second = Profile([OFF_CPU]), Profile([OFF_CPU])
    first.samples.append(Sample((), (1,)))
    first.lost["lost events"] = 1
    assert (second.samples, second.lost) == ([], {})
