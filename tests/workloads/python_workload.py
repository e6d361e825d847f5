"""Common code of the workloads in Python, as workload.c is for those in C. For any CPython from 3.8 on."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterable
from typing import Any

LIMIT_SECONDS = 120


def begin(default: int) -> int:
    """The number among the arguments. A process that nobody ends is ended after `LIMIT_SECONDS`."""
    signal.alarm(LIMIT_SECONDS)
    numbers = [argument for argument in sys.argv[1:] if argument.isdigit()]
    return int(numbers[0]) if numbers else default


def get_ready(tids: Iterable[int] = ()) -> int:
    """Tells of the main thread and of these, and waits until it may go on if ``--wait`` was given; the pid."""
    pid = os.getpid()
    print(json.dumps({"ready": True, "pid": pid, "pids": [pid], "tids": [pid, *tids]}), flush=True)
    if "--wait" in sys.argv and not os.read(0, 1):
        sys.exit(1)
    return pid


def wait_record(name: str) -> dict[str, Any]:
    """Record of the waits of this thread, none of which was yet; ``ns`` is by the thread's own clock."""
    return {"function": name, "pid": os.getpid(), "tid": threading.get_native_id(), "calls": 0, "ns": 0}


def tell(truth: dict[str, Any], waits: Iterable[dict[str, Any]]) -> None:
    """Prints the truth with these records, each call a wait, and lingers if ``--linger`` was given."""
    told = {"threads": [], "waits": [{**wait, "blocks": wait["calls"]} for wait in waits]}
    print(json.dumps({**truth, **told}), flush=True)
    while "--linger" in sys.argv and os.read(0, 1):
        pass
