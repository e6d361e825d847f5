from __future__ import annotations

from stallscope.tracers.measures.span_options import SpanOptions


def test_it_says_what_is_left_out() -> None:
    assert list(SpanOptions(1, over=10_000).remarks("ioctl", 1)) == [
        "the timeline has no span for 1 ioctl of at most 10.0 µs (--span-over)"
    ]


def test_defaults_leave_nothing_out() -> None:
    options = SpanOptions(1)
    assert (options.kept, options.over) == ("newest", 0)
    assert options.buffer_bytes & (options.buffer_bytes - 1) == 0
