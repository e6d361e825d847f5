#!/usr/bin/env python3
"""A staprun for tests: prints $FAKE_STAPRUN_TEXT, in which {N} is the time N microseconds after its begin, waits for
SIGINT, prints $FAKE_STAPRUN_REST. $FAKE_STAPRUN_SAYS goes to standard error, with status 1 if there is no text."""

from __future__ import annotations

import os
import re
import signal
import sys
import time

BEGAN = time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def put(name: str) -> bool:
    text = re.sub(r"\{(\d+)\}", lambda match: str(BEGAN + int(match[1]) * 1000), os.environ.get(name, ""))
    os.write(1, text.encode("latin-1"))
    return bool(text)


def end(*_: object) -> None:
    put("FAKE_STAPRUN_REST")
    os._exit(0)


signal.signal(signal.SIGINT, end)
with open(os.environ["FAKE_STAP_LOG"], "a") as log:
    print(os.getpid(), *sys.argv[1:], file=log)
sys.stderr.write(os.environ.get("FAKE_STAPRUN_SAYS", ""))
sys.stderr.flush()
if not put("FAKE_STAPRUN_TEXT"):
    sys.exit(1)
while True:
    signal.pause()
