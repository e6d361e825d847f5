"""The check of the scripts of stap/ as they are used by themselves, in a guest: staprun loads what their own command
compiled on the host, and trace-convert reads what they print."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from commands import load
from runner import Workload
from stallscope.converters.model import Profile
from stap_calls_check import move_to_memory
from stap_modules import PLAIN, PRODUCER, ROOT, Plain, plain_module

CONVERT = str(ROOT / ".venv/bin/trace-convert")
CONTROL = Path("/proc/systemtap")
TIMES = 0.05
"""Share by which a time may differ from the workload's own clock."""
POINTS = 0.06
_PATIENCE = 60.0


def run() -> str:
    """Each script on its workload."""
    return "; ".join(f"{script}: {_CHECKS[script](*_profile(script, plain))}" for script, plain in PLAIN.items())


def _profile(script: str, plain: Plain) -> tuple[Profile, dict[str, Any]]:
    """Profile of a script's workload, and the workload's truth. It is ended as stap/README.md says."""
    module, text = plain_module(os.environ["STALLSCOPE_VM"], script), Path(f"/run/{script}.stap.txt")
    if script == "cuda":
        move_to_memory(Path(PRODUCER))  # hides the other workloads: it is the last script
    with Workload(str(plain.workload[0]), *plain.workload[1:], linger=True) as workload:
        targets = (f"pids={','.join(map(str, workload.pids))}",)
        words = ["staprun", "-o", str(text), str(module), *targets]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as staprun:
            _wait_for(lambda: text.exists() and b"stallscope 1 " in text.read_bytes(), f"{script}: it does not begin")
            time.sleep(1)
            workload.release()
            truth = workload.truth()
            (CONTROL / module.stem / "stop").write_text("1\n")
            _wait_for(lambda: re.search(rb"^stop \d+$", text.read_bytes(), re.MULTILINE), f"{script}: it does not stop")
            staprun.send_signal(signal.SIGINT)
            said = staprun.communicate(timeout=_PATIENCE)[1]
    assert staprun.returncode == 0, said
    assert not CONTROL.exists() or not (CONTROL / module.stem).exists(), "the module stays loaded"
    output = text.with_suffix(".pb.gz")
    subprocess.run([CONVERT, str(text), "-o", str(output), "--force"], check=True)
    profile = load(output)
    print(script, said, profile.lost, profile.comments)
    return profile, truth


def _waits(profile: Profile, truth: Mapping[str, Any]) -> str:
    """Differences of functions' waits from the workload's own clock."""
    worst = 0.0
    for wait in truth["waits"]:
        own = [sample for sample in profile.samples if any(frame.name == wait["function"] for frame in sample.stack)]
        time = sum(sample.values[0] for sample in own)
        print(wait, time)
        worst = max(worst, abs(time - wait["ns"]) / wait["ns"])
    assert worst <= TIMES, worst
    return f"times within {worst:.1%}"


def _ioctls(profile: Profile, truth: Mapping[str, Any]) -> str:
    """All of them, by the workload's own clock."""
    own = [sample.values for sample in profile.samples if sample.stack[-1].name.startswith("ioctl 0x")]
    time, number = (sum(values[i] for values in own) for i in (0, 1))
    clock, calls = (sum(wait[what] for wait in truth["waits"]) for what in ("ns", "calls"))
    print(time, number, clock, calls)
    assert number == calls, (number, calls)
    assert abs(time - clock) <= TIMES * clock, (time, clock)
    return f"{number} calls, their time within {abs(time - clock) / clock:.1%}"


def _shares(profile: Profile, truth: Mapping[str, Any]) -> str:
    """Differences of each function's share of the samples."""
    number = sum(sample.values[0] for sample in profile.samples)
    clock = {wait["function"]: wait["ns"] for wait in truth["waits"]}
    found = dict.fromkeys(clock, 0)
    for sample in profile.samples:
        for name in {frame.name for frame in sample.stack} & clock.keys():
            found[name] += sample.values[0]
    print(number, found, clock)
    mine, own = sum(found.values()), sum(clock.values())
    worst = max(abs(found[name] / mine - clock[name] / own) for name in clock)
    assert worst <= POINTS, (found, clock)
    return f"shares within {worst:.1%} by {number:,} samples"


_CHECKS: Mapping[str, Callable[[Profile, Mapping[str, Any]], str]] = {
    "offcpu": _waits,
    "oncpu": _shares,
    "ioctl": _ioctls,
    "wakeup": _waits,
    "cuda": _waits,
}


def _wait_for(condition: Callable[[], object], otherwise: str) -> None:
    until = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < until, otherwise
        time.sleep(0.1)
