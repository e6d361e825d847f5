from __future__ import annotations

import os
import subprocess
import sys

import pytest
from stallscope.tracers.base import interrupts
from stallscope.tracers.base.priority import urgent, while_the_user_waits

SHOWN = """
import os
from stallscope.tracers.base.priority import urgent
os.setpriority(os.PRIO_PROCESS, 0, {usual})
{limit}
try:
    with urgent():
        print(os.getpriority(os.PRIO_PROCESS, 0))
        raise KeyError
except KeyError:
    print(os.getpriority(os.PRIO_PROCESS, 0))
"""
NO_CAPABILITIES = "import ctypes; assert ctypes.CDLL(None).setresuid(65534, 65534, 65534) == 0"


@pytest.mark.parametrize(
    ("usual", "limit", "niceness"),
    [(0, "", [-10, 0]), (5, "", [5, 5]), (-3, "", [-3, -3]), (0, NO_CAPABILITIES, [0, 0])],
)
def test_niceness(usual: int, limit: str, niceness: list[int], root: None) -> None:
    code = SHOWN.format(usual=usual, limit=limit)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [int(line) for line in done.stdout.split()] == niceness


def test_it_ends(root: None) -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with urgent():
        pass
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


@pytest.mark.parametrize("waits", [True, False])
def test_only_a_user_who_waits_is_urgent(waits: bool, monkeypatch: pytest.MonkeyPatch, root: None) -> None:
    monkeypatch.setattr(interrupts, "ended_by_user", lambda: waits)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with while_the_user_waits():
        assert (os.getpriority(os.PRIO_PROCESS, 0) < before) is waits
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
