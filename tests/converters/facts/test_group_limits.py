from __future__ import annotations

import json
from dataclasses import replace

import pytest
from stallscope.converters.facts.group_limits import limit_json, limit_of
from stallscope.converters.model.group_limits import MEMORY, PROCESSES, READ_BYTES, GroupLimit
from stallscope.converters.model.wait_objects import FILE, LIMIT, PIPE, SWAP, WaitObject

SECOND = 10**9
OF_DISK = GroupLimit("/job", READ_BYTES, "io.max rbps", 1000, 9_500, 10 * SECOND, ["8:0", "8:1"], [1, 2])
OF_MEMORY = GroupLimit("/job", MEMORY, "memory.high", 64 << 20, 300, 10 * SECOND, [], [1, 2])
FILE_THERE = WaitObject(1, FILE, "/data/a", device="8:1")


@pytest.mark.parametrize(
    ("what", "limit", "expected"),
    [
        (FILE_THERE, OF_DISK, True),
        (FILE_THERE, replace(OF_DISK, used=7_900), False),  # it uses less than it may
        (FILE_THERE, replace(OF_DISK, devices=["8:16"]), False),
        (FILE_THERE, replace(OF_DISK, pids=[1]), False),  # one of them is not in the group
        (FILE_THERE, replace(OF_DISK, time=0), False),
        (FILE_THERE, replace(OF_DISK, limit=0), False),
        (FILE_THERE, replace(OF_DISK, kind=PROCESSES), False),
        (FILE_THERE, OF_MEMORY, False),
        (replace(FILE_THERE, device=""), replace(OF_DISK, devices=[""]), False),
        (replace(FILE_THERE, kind=PIPE), OF_DISK, False),
        (WaitObject(-2, LIMIT), OF_MEMORY, True),
        (WaitObject(-1, SWAP), OF_MEMORY, True),
        (WaitObject(-2, LIMIT), replace(OF_MEMORY, used=0), False),  # it was not reached
        (WaitObject(-2, LIMIT), replace(OF_MEMORY, pids=[]), False),
        (WaitObject(-2, LIMIT), OF_DISK, False),
    ],
)
def test_for_which_limit_is_waited(what: WaitObject, limit: GroupLimit, expected: bool) -> None:
    assert (limit_of(what, [limit], [1, 2]) is limit) == expected


def test_nobody_waits() -> None:
    assert limit_of(FILE_THERE, [OF_DISK], []) is None
    assert limit_of(FILE_THERE, [], [1]) is None


def test_the_one_that_was_reached_most() -> None:
    above = replace(OF_MEMORY, cgroup="/", used=3)
    assert limit_of(WaitObject(-2, LIMIT), [above, OF_MEMORY], [1]) is OF_MEMORY
    least = replace(OF_DISK, name="io.max riops", used=9_000)
    assert limit_of(FILE_THERE, [least, OF_DISK], [2]) is OF_DISK


def test_as_data() -> None:
    told = json.loads(json.dumps(limit_json(replace(OF_DISK, cgroup="/a\udc80"))))
    assert told == {
        "cgroup": "/a\\x80", "kind": "bytes read", "name": "io.max rbps", "limit": 1000, "used": 9500,
        "time_ns": 10 * SECOND, "devices": ["8:0", "8:1"], "pids": [1, 2],
    }  # fmt: skip
    assert "devices" not in limit_json(OF_MEMORY)
