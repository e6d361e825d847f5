#!/usr/bin/env python3
"""A perf for tests: `record` speaks the protocol of --control and puts out $FAKE_PERF_TEXT, in which {N} is the time N
microseconds after `enable`; `script` passes on what it reads. $FAKE_PERF_FAILS makes `record` fail with these words,
$FAKE_PERF_DIES is the number of a signal that ends the program named in $FAKE_PERF_DYING after it has put out data,
$FAKE_PERF_HELP replaces its help, $FAKE_PERF_REFUSES is an option for which the kernel has no build-ids."""

from __future__ import annotations

import os
import re
import signal
import sys
import time

HELP = " Usage: perf record [<options>]\n  -k, --clockid\n  --control\n  --switch-events\n"


def record(words: list[str]) -> None:
    if failure := os.environ.get("FAKE_PERF_FAILS"):
        sys.exit(f"Error:\n{failure}")
    if log := os.environ.get("FAKE_PERF_LOG"):
        with open(log, "a") as file:
            print(os.getpid(), *words, file=file)
    if (refused := os.environ.get("FAKE_PERF_REFUSES")) and refused in words:
        sys.exit("Failed: no support to record build id in mmap events, update your kernel.")
    numbers = words[words.index("--control") + 1].removeprefix("fd:")
    commands, answers = map(int, numbers.split(","))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    while command := os.read(commands, 64):
        began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # what was recorded is put out before the end
        os.write(answers, b"ack\n")
        if command == b"enable\n":
            put(os.environ.get("FAKE_PERF_TEXT", ""), began)
            die("record")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def put(text: str, began: int) -> None:
    def at(match: re.Match[str]) -> str:
        ns = began + int(match[1]) * 1000
        return f"{ns // 10**9}.{ns % 10**9:09}"

    os.write(1, re.sub(r"\{(\d+)\}", at, text).encode())


def die(which: str) -> None:
    if os.environ.get("FAKE_PERF_DYING") == which:
        os.kill(os.getpid(), int(os.environ["FAKE_PERF_DIES"]))


def main() -> None:
    if sys.argv[1:] == ["record", "-h"]:
        print(os.environ.get("FAKE_PERF_HELP", HELP), file=sys.stderr)
        sys.exit(129)
    if sys.argv[1] == "record":
        record(sys.argv[2:])
    else:
        if log := os.environ.get("FAKE_PERF_LOG"):
            with open(log, "a") as file:
                print(os.getpid(), *sys.argv[1:], file=file)
        while data := os.read(0, 1 << 16):
            os.write(1, data)
            die("script")


main()
