"""trace-scan --live in a pseudo-terminal, beside a process that waits for a lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import OTHER_SCREEN, Terminal

pytestmark = pytest.mark.usefixtures("live")

TRACE_SCAN = str(Path(sys.executable).with_name("trace-scan"))
CODE = """
import threading, time
lock = threading.Lock()
def hold():
    while True:
        with lock:
            time.sleep(0.2)
threading.Thread(target=hold, daemon=True).start()
while True:
    with lock:
        pass
"""


@pytest.mark.parametrize("end", ["q", "\x03", "TERM"])
def test_a_process_is_found_and_opened(end: str, tmp_path: Path) -> None:
    path = tmp_path / "waits.py"
    path.write_text(CODE)
    with subprocess.Popen([sys.executable, path]) as process, Terminal([TRACE_SCAN, "--live", "--watch", "1s"]) as seen:
        try:
            seen.shows("Verdict")
            seen.press("/waits.py\r")
            seen.shows("> lock")
            assert str(process.pid) in seen.text
            seen.press("\r")
            seen.shows("rule held-up")
            seen.shows(f"{process.pid}")
            seen.press("\x1b")
            seen.shows("> lock")
            os.kill(seen.pid, signal.SIGTERM) if end == "TERM" else seen.press(end)
            assert seen.ended() == 0
        finally:
            process.kill()
    seen.check_restored()
    assert "waits.py" in seen.text, "the last interval stays on the terminal"


def test_a_command_with_its_output(tmp_path: Path) -> None:
    code = "import time\nfor i in range(60): print('step', i, flush=True); time.sleep(0.1)"
    with Terminal([TRACE_SCAN, "--live", "--watch", "1s", "--", sys.executable, "-c", code]) as seen:
        seen.shows("polling")
        seen.wait_until(lambda: "| step " in seen.text or seen.lines[-2].startswith("step "), "what it prints")
        assert seen.ended() == 0
        seen.check_restored()
        assert "step 59" in seen.text


def test_a_trace_that_cannot_begin_says_so() -> None:
    with Terminal([TRACE_SCAN, "--live", "-p", "4194304"]) as seen:
        assert seen.ended() == 1
        assert "there is no process 4194304" in seen.text
        assert OTHER_SCREEN not in seen.raw


def test_without_a_terminal() -> None:
    done = subprocess.run([TRACE_SCAN, "--live"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("trace-scan: --live needs a terminal")
