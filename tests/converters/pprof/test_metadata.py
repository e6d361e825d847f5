"""Data of our own in a profile: which are possible."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from file_lock_profiles import SEEN
from pprof_wire import loaded, with_comment
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import ThreadTimes
from stallscope.converters.model.pressure import Interrupts

SECOND = 10**9
APART = {"pid_life", "tid_life", "count", "made_in"}
"""Fields of threads that are elsewhere."""


def with_thread(**changes: Any) -> bytes:
    """Profile with a thread of two seconds."""
    times = ThreadTimes(1, "x", 1, "x", wall=2 * SECOND, on_cpu=0, runnable=0, blocked={}, switches=0, exited=False)
    thread = {name: value for name, value in asdict(times).items() if name not in APART}
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


def with_part(part: str, **entry: Any) -> bytes:
    return with_comment(json.dumps({"version": 1, "value_types": [["cpu", "nanoseconds", "sum", ""]], part: [entry]}))


INTERRUPTS = {"kind": "hard", "name": "", "time": 5, "count": 6, "capacity": 10}


def test_captures_from_before_there_were_cores_and_numbers_of_waits() -> None:
    assert loaded(with_part("interrupts", **INTERRUPTS)).interrupts == [Interrupts("hard", "", 5, 6, 10)]
    assert loaded(with_part("interrupts", **INTERRUPTS, core=3)).interrupts[0].core == 3
    old = {name: value for name, value in asdict(SEEN).items() if name not in ("busy", "waiting", "requests", "askers")}
    assert loaded(with_part("file_locks", **old)).file_locks == [SEEN]


@pytest.mark.parametrize("core", [-2, 1 << 64, True, "3", 0.5, None])
def test_a_core_that_cannot_be_is_refused(core: object) -> None:
    with pytest.raises(StallscopeError):
        loaded(with_part("interrupts", **INTERRUPTS, core=core))


@pytest.mark.parametrize("changed", [{"kind": "x"}, {"time": -1}, {"more": 1}])
def test_interrupts_that_cannot_be_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(StallscopeError):
        loaded(with_part("interrupts", **{**INTERRUPTS, **changed}))


def test_a_newer_version_is_not_called_damaged() -> None:
    with pytest.raises(StallscopeError, match=r"a newer version .* version 2, not 1") as raised:
        loaded(with_comment('{"version":2}'))
    assert "damaged" not in str(raised.value)
    assert raised.value.remedy == "read it with the version that recorded it"
