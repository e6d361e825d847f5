from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from pprof_wire import loaded, saved
from stallscope.converters.model.group_limits import MEMORY, MOST_DEVICES, MOST_PIDS, GroupLimit
from stallscope.converters.pprof.group_limits import decoded
from summary_profiles import READ, waiting

MADE = GroupLimit("/a\udc80", MEMORY, "memory.high", 1 << 20, 3, 10**9, ["8:0"], [12])


def test_what_was_written_is_read() -> None:
    assert decoded(json.loads(json.dumps(asdict(MADE)))) == MADE


def test_a_capture_has_them() -> None:
    profile = waiting(READ)
    profile.group_limits = [MADE]
    assert loaded(saved(profile)).group_limits == [MADE]


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "new"},
        {"kind": None},
        {"cgroup": 1},
        {"limit": -1},
        {"used": True},
        {"time": 1 << 64},
        {"devices": None},
        {"devices": [1]},
        {"devices": ["8:0"] * (MOST_DEVICES + 1)},
        {"pids": ["1"]},
        {"pids": [1 << 32]},
        {"pids": [1] * (MOST_PIDS + 1)},
        {"new": 1},
    ],
)
def test_anything_else_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        decoded(asdict(MADE) | changes)


@pytest.mark.parametrize("entry", [None, [], {}, 3, {"kind": "memory"}])
def test_no_limit_is_refused(entry: object) -> None:
    with pytest.raises(ValueError):
        decoded(entry)
