"""Data of our own in a profile: which are possible."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from pprof_wire import loaded, with_comment
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import ThreadTimes

SECOND = 10**9


def with_thread(**changes: Any) -> bytes:
    """Profile with a thread of two seconds."""
    times = ThreadTimes(1, "x", 1, "x", wall=2 * SECOND, on_cpu=0, runnable=0, blocked={}, switches=0, exited=False)
    thread = {name: value for name, value in asdict(times).items() if name not in ("pid_life", "tid_life", "count")}
    types = [["cpu", "nanoseconds", "sum", ""]]
    return with_comment(json.dumps({"version": 1, "value_types": types, "threads": [thread | changes]}))


@pytest.mark.parametrize(
    "changes",
    [
        {"wall": -1},
        {"on_cpu": 1 << 64},
        {"runnable": -1},
        {"switches": -1},
        {"blocked": {"interruptible": -1}},
        {"on_cpu": 6 * SECOND},
        {"on_cpu": 3 * SECOND, "runnable": 2 * SECOND, "blocked": {"interruptible": SECOND}},
    ],
)
def test_a_thread_that_cannot_be_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(StallscopeError, match="figures of threads"):
        loaded(with_thread(**changes))


@pytest.mark.parametrize("changes", [{"on_cpu": 5 * SECOND}, {"wall": 0, "on_cpu": 9 * SECOND}])
def test_clocks_of_some_engines_differ(changes: dict[str, Any]) -> None:
    (thread,) = loaded(with_thread(**changes)).threads
    assert thread.on_cpu == changes["on_cpu"]


def test_a_newer_version_is_not_called_damaged() -> None:
    with pytest.raises(StallscopeError, match=r"a newer version .* version 2, not 1") as raised:
        loaded(with_comment('{"version":2}'))
    assert "damaged" not in str(raised.value)
    assert raised.value.remedy == "read it with the version that recorded it"
