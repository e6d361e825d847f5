from __future__ import annotations

import errno
import os
from typing import Any

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.kernel import perf_events
from stallscope.tracers.kernel.sampled_events import EVENTS, check


@pytest.mark.parametrize(
    ("event", "number", "is_refused"),
    [
        ("cycles", errno.ENOENT, True),
        ("LLC-load-misses", errno.EOPNOTSUPP, True),
        ("cycles", errno.EACCES, False),
        ("cpu-clock", errno.ENOENT, False),
    ],
)
def test_whether_an_event_is_counted(
    event: str, number: int, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_event(*_: Any) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(perf_events, "open_event", open_event)
    if not is_refused:
        check(event, 49)
        return
    with pytest.raises(StallscopeError, match=f"this machine does not count {event}"):
        check(event, 49)


def test_events_are_those_of_the_kernel() -> None:
    """include/uapi/linux/perf_event.h"""
    assert EVENTS["cpu-clock"] == (1, 0)
    assert EVENTS["cache-misses"] == (0, 3)
    assert EVENTS["LLC-load-misses"] == (3, 2 | 1 << 16)
    assert EVENTS["dTLB-load-misses"] == (3, 3 | 1 << 16)
