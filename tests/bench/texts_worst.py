"""Texts whose lines hardly come again: what is remembered of lines that were seen is of little use for them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import texts_stacks as stacks


def perf_offsets(size: int) -> Iterator[bytes]:
    """perf script: stacks that come again, each line with another offset."""
    choice = random.Random(1)
    names = [f"module_{i % 40}::function_number_{i}" for i in range(stacks.FUNCTIONS)]
    paths = stacks.paths(choice)
    number = written = 0
    while written < size:
        number += 1
        head = f"python3 {4000 + number % 8}/{4100 + number % 64} [{number % 32:03}] {5000 + number / 9973:.6f}:"
        lines = [f"{head} {choice.randrange(900000, 1100000)} cycles: \n"]
        for i in reversed(choice.choice(paths)):
            offset = choice.randrange(1 << 16)
            lines.append(
                f"\t    {stacks.BASE + (i << 16) + offset:x} {names[i]}+{offset:#x} (/usr/lib/lib{i % 40}.so)\n"
            )
        piece = "".join([*lines, "\n"]).encode()
        written += len(piece)
        yield piece


def chrome_distinct(size: int) -> Iterator[bytes]:
    """A Chrome trace in which each call has a name of its own, as with numbers in names."""
    choice = random.Random(1)
    head = b'{"traceEvents": [\n{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p"}}'
    yield head
    written, time, number = len(head), 1_716_212_345_678_901, 0
    while written < size:
        lines = []
        tid = 1000 + choice.randrange(8)
        for depth, length in enumerate(sorted((choice.randrange(1, 900) for _ in range(3)), reverse=True)):
            number += 1
            lines.append(
                f',\n{{"ph": "X", "cat": "cpu_op", "name": "step_{number}", "pid": 1, "tid": {tid},'
                f' "ts": {time + depth}, "dur": {length}, "args": {{"External id": {number}}}}}'
            )
        time += 1000
        piece = "".join(lines).encode()
        written += len(piece)
        yield piece
    yield b"\n]}\n"
