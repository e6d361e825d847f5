"""A program that gets SIGKILL takes what it has started with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = """\
import signal, subprocess, sys, time
from stallscope.tracers.base.parent import end_with_parent

child = subprocess.Popen(["sleep", "600"], preexec_fn=end_with_parent(signal.SIGTERM))
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_child_ends_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        status = Path(f"/proc/{child}/status")
        assert "sleep" in status.read_text()
        parent.send_signal(signal.SIGKILL)
        parent.wait(timeout=30)
        subprocess.run(["tail", f"--pid={child}", "-f", "/dev/null"], timeout=30, check=True)
    assert not status.exists() or "Z (zombie)" in status.read_text()
