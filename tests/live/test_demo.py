"""``make demo``: what its summaries say first."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import demo
import pytest
from runner import FOLDER, WorkloadFailed

pytestmark = pytest.mark.usefixtures("live")

PICTURES = FOLDER.parent / "demo"


@pytest.fixture
def tun(require: Callable[[bool, str], None]) -> None:
    require(Path("/dev/net/tun").exists(), "no /dev/net/tun")


def said(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[str]:
    """Sentence after each command."""
    monkeypatch.setattr(sys, "argv", ["demo.py", *arguments])
    assert demo.main() == 0, capfd.readouterr()
    lines = capfd.readouterr().out.splitlines()
    return [lines[i + 1] for i, line in enumerate(lines) if line.startswith("$ ")]


def test_the_first_sentence_names_call_ioctl_lock_share_and_factor(
    tun: None, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, calls = said(capfd, monkeypatch, "--processes", "8", "--seconds", "3")
    assert "blocked in topk → cudaGetDeviceProperties → ioctl of /dev/net/tun, waiting in __mutex_lock" in waits
    found = re.fullmatch(
        r"(?P<share>[\d.]+) % of the time of 8 worker threads in 8 processes of demo is in cudaGetDeviceProperties "
        r"\([\d,]+ calls, mean .*, max .*\): (?P<blocked>[\d.]+) % of it blocked in the ioctl TUNSETQUEUE of "
        r"/dev/net/tun, in __mutex_lock(; that ioctl takes (?P<factor>[\d.]+) times as long as alone)?\.",
        calls,
    )
    assert found, calls
    assert float(found["share"]) > 50
    assert float(found["blocked"]) > 50
    # On a busy machine, the one that is alone waits, too: less than twice as long is not said.
    assert found["factor"] is None or float(found["factor"]) >= 2
    timeline = (PICTURES / "calls.pftrace").read_bytes()
    assert all(name in timeline for name in (b"cudaGetDeviceProperties", b"TUNSETQUEUE /dev/net/tun"))
    assert "TUNSETQUEUE" in (PICTURES / "calls.svg").read_text()


def test_without_the_device_the_stand_ins_are_used(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, require: Callable[[bool, str], None]
) -> None:
    require(Path("/dev/fuse").exists(), "no /dev/fuse")

    def fail(*_: object) -> None:
        raise WorkloadFailed("demo: load the kernel's tun module")

    monkeypatch.setattr(demo, "_start", fail)
    (calls,) = said(capfd, monkeypatch, "--processes", "2")
    assert "is in cudaGetDeviceProperties_v2 (" in calls
    assert "blocked in the ioctl" in calls
