#!/usr/bin/env python3
"""A perf for tests: `record` speaks the protocol of --control and puts out $FAKE_PERF_TEXT, in which {N} is the time N
microseconds after `enable`, with the records that its lines are of; `script` prints the text. $FAKE_PERF_UNTOLD is an
expression for lines that are of no record. With $FAKE_PERF_HANGS that does not end. $FAKE_PERF_FAILS
makes `record` fail with these words, $FAKE_PERF_DIES
is the number of a signal that ends the program named in $FAKE_PERF_DYING after it has put out data, $FAKE_PERF_HELP
replaces its help."""

from __future__ import annotations

import os
import re
import signal
import struct
import sys
import time

MAGIC = b"PERFILE2" + struct.pack("=Q", 16)
ATTR, TEXT = 64, 200
"""Types of records; the second is our own."""
KINDS = {"SWITCH": 14, "COMM": 3, "FORK": 7, "EXIT": 4, "LOST": 2}
IP, TID, TIME = 1, 2, 4
FIRST = re.compile(r"(?m)^.{1,16} (\d+)/(\d+)\s+(\d+)\.(\d{9}):(?: PERF_RECORD_([A-Z]+))?")
HELP = " Usage: perf record [<options>]\n  -k, --clockid\n  --control\n  --switch-events\n"


def record(words: list[str]) -> None:
    if failure := os.environ.get("FAKE_PERF_FAILS"):
        sys.exit(f"Error:\n{failure}")
    if log := os.environ.get("FAKE_PERF_LOG"):
        with open(log, "a") as file:
            print(os.getpid(), *words, file=file)
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


def packed(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHH", kind, 0, 8 + len(body)) + body


def put(text: str, began: int) -> None:
    def at(match: re.Match[str]) -> str:
        ns = began + int(match[1]) * 1000
        return f"{ns // 10**9}.{ns % 10**9:09}"

    text = re.sub(r"\{(\d+)\}", at, text)
    data = MAGIC + packed(ATTR, struct.pack("=IIQQQ32x", 1, 64, 0, 0, IP | TID | TIME))
    untold = os.environ.get("FAKE_PERF_UNTOLD")
    for match in FIRST.finditer(text):
        if not (untold and re.search(untold, text[match.start() :].partition("\n")[0])):
            ids = struct.pack("=iiQ", int(match[1]), int(match[2]), int(match[3] + match[4]))
            data += packed(KINDS[match[5]], ids) if match[5] else packed(9, bytes(8) + ids)
    raw = text.encode()
    put_all(data + b"".join(packed(TEXT, raw[i : i + 60_000]) for i in range(0, len(raw), 60_000)))


def put_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def script() -> None:
    """All that comes, as it comes: the text."""
    data = b""
    while more := os.read(0, 1 << 16):
        data += more
        at = len(MAGIC)
        while at + 8 <= len(data):
            kind, _, size = struct.unpack_from("=IHH", data, at)
            if at + size > len(data):
                break
            if kind == TEXT:
                put_all(data[at + 8 : at + size])
            at += size
        data = MAGIC + data[at:]
        die("script")
    if os.environ.get("FAKE_PERF_HANGS"):
        time.sleep(60)


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
        script()


main()
