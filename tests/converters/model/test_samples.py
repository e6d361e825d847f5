from __future__ import annotations

from stallscope.converters.model import Frame, Module, Sample


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
