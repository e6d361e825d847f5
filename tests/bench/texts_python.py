"""Large inputs for the bench of the readers: what profilers of Python programs, VTune and perf sched would write.

Each function yields blocks of bytes of about ``size`` bytes in all, the same ones every time. `TEXTS` has them by the
reader's name.
"""

from __future__ import annotations

import marshal
import random
from collections.abc import Callable, Iterator
from typing import Any

_FUNCTIONS, _STACKS, _DEPTH = 5_000, 20_000, (8, 28)
_BLOCK = 1 << 18


def _paths(choice: random.Random) -> list[list[int]]:
    """Call paths that share their beginnings, as those of a program do."""
    paths = [[choice.randrange(20)]]
    while len(paths) < _STACKS:
        path = choice.choice(paths)
        more = [choice.randrange(_FUNCTIONS) for _ in range(choice.randint(1, 6))]
        paths.append((path[: choice.randint(1, len(path))] + more)[: _DEPTH[1]])
    return [path for path in paths if len(path) >= _DEPTH[0]]


def _blocks(pieces: Iterator[str], size: int) -> Iterator[bytes]:
    """The pieces in blocks, until there are ``size`` bytes; the last piece is whole."""
    block: list[str] = []
    length = total = 0
    for piece in pieces:
        block.append(piece)
        length += len(piece)
        if length >= _BLOCK or total + length >= size:
            yield "".join(block).encode()
            total += length
            block, length = [], 0
            if total >= size:
                return


def _file(function: int) -> str:
    return f"/srv/app/package_{function % 40}/module_{function % 400}.py"


def pyspy(size: int) -> Iterator[bytes]:
    """``raw`` with processes and threads: several recordings put together."""

    def lines() -> Iterator[str]:
        choice = random.Random(1)
        stacks = [
            ";".join(f"function_{i} (module_{i % 400}.py:{i % 900 + 1})" for i in path) for path in _paths(choice)
        ]
        roots = [
            f'process {4000 + i % 8}:"python3 train.py --rank {i % 8}";thread ({4100 + i}): io-{i}' for i in range(32)
        ]
        while True:
            yield f"{choice.choice(roots[:4])};{choice.choice(stacks)} {choice.randrange(1, 500)}\n"

    return _blocks(lines(), size)


def austin(size: int) -> Iterator[bytes]:
    """Mode wall: one line per thread and sampling interval."""

    def lines() -> Iterator[str]:
        choice = random.Random(1)
        stacks = [";".join(f"{_file(i)}:function_{i}:{i % 900 + 1}" for i in path) for path in _paths(choice)]
        threads = [f"P{4000 + i % 8};T0:{4100 + i}" for i in range(32)]
        hot = [f"{choice.choice(threads)};{stack}" for stack in stacks]
        yield "# austin: 3.7.0\n# interval: 100\n# mode: wall\n\n"
        while True:
            yield f"{choice.choice(hot)} {choice.randrange(95, 130)}\n"

    return _blocks(lines(), size)


def austin_full(size: int) -> Iterator[bytes]:
    """Mode full: three numbers a line."""

    def lines() -> Iterator[str]:
        choice = random.Random(2)
        stacks = [";".join(f"{_file(i)}:function_{i}:{i % 900 + 1}" for i in path) for path in _paths(choice)]
        yield "# mode: full\n\n"
        while True:
            memory = choice.choice((0, 0, 0, 4096, -4096))
            yield f"P4000;T0:4100;{choice.choice(stacks)} {choice.randrange(95, 130)},{choice.randrange(2)},{memory}\n"

    return _blocks(lines(), size)


def faulthandler(size: int) -> Iterator[bytes]:
    """``dump_traceback_later(repeat=True)`` in a program with 16 threads."""

    def dumps() -> Iterator[str]:
        choice = random.Random(1)
        bodies = [
            "".join(f'  File "{_file(i)}", line {i % 900 + 1} in function_{i}\n' for i in reversed(path))
            for path in _paths(choice)
        ]
        while True:
            threads = [
                f"Thread 0x{0x7F0000000000 + 4096 * i:016x} (most recent call first):\n{choice.choice(bodies[i::16])}"
                for i in range(16)
            ]
            yield "Timeout (0:00:00.100000)!\n" + "\n".join(threads)

    return _blocks(dumps(), size)


def chrome(size: int) -> Iterator[bytes]:
    """An object form with complete events, nested three deep, as PyTorch's profiler writes them."""

    def events() -> Iterator[str]:
        choice = random.Random(1)
        time, number = 1_716_212_345_678_901_000, 0
        yield '{"schemaVersion": 1, "traceEvents": [\n'
        yield '{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p"}}'
        while True:
            lengths = sorted((choice.randrange(1_000, 900_000) for _ in range(3)), reverse=True)
            tid = 1000 + choice.randrange(8)
            for depth, length in enumerate(lengths):
                name = f"aten::operator_{number % 40 * 100 + depth * 10 + choice.randrange(1 + 2 * depth)}"
                number += 1
                yield (
                    f',\n  {{\n    "ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 1, "tid": {tid},\n'
                    f'    "ts": {_micros(time + depth)}, "dur": {_micros(length)},\n    "args": {{\n'
                    f'      "External id": {number}, "Record function id": 0, "Ev Idx": {number}\n    }}\n  }}'
                )
            time += 1_000_000

    yield from _blocks(events(), size)
    yield b"\n]}\n"


def _micros(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03}"


def perf_sched(size: int) -> Iterator[bytes]:
    """Switches and wakeups of 64 threads on one core, with stacks."""

    def samples() -> Iterator[str]:
        choice = random.Random(1)
        stacks = [
            "".join(
                f"\t    {0x55D000000000 + 4096 * i:x} function_{i} (/usr/lib/lib{i % 40}.so)\n" for i in reversed(path)
            )
            for path in _paths(choice)[:2000]
        ]
        kernel = "\tffffffff821f8b58 __schedule ([kernel.kallsyms])\n\tffffffff821f94c3 schedule ([kernel.kallsyms])\n"
        time, last = 50.0, 4100
        while True:
            time += 0.0001
            thread = 4100 + choice.randrange(64)
            if thread == last:
                continue
            head = f"python3 {4000 + last % 8}/{last} [001]"
            state = choice.choice("SSSDR")
            fields = f"comm=python3 pid={thread} prio=120 target_cpu=001"
            yield f"swapper 0/0 [001] {time - 0.00005:.6f}: sched:sched_wakeup: {fields}\n\n"
            switch = f"prev_comm=python3 prev_pid={last} prev_prio=120 prev_state={state} ==> next_comm=python3"
            where = choice.choice(stacks[last % 64 :: 64])
            yield f"{head} {time:.6f}: sched:sched_switch: {switch} next_pid={thread} next_prio=120\n{kernel}{where}\n"
            last = thread

    return _blocks(samples(), size)


def vtune(size: int) -> Iterator[bytes]:
    """Top-down reports of the ranks of a job, one after the other, as ``-column="CPU Time:Self","Module"`` prints them.

    Like real ones: a row for each node of the call tree, most of them without a time of their own, the others with a
    time of six decimals that does not come again; 88 bytes a row. A rank has four fifths of the job's stacks, its
    branches in an order of its own; there is one header, at the beginning.
    """

    def rows() -> Iterator[str]:
        choice = random.Random(1)
        tree: dict[int, Any] = {}
        sampled = set()
        for path in _paths(choice):
            node = tree
            for i in path:
                node = node.setdefault(i, {})
            sampled.add(id(node))
        plain = [f"package_{i % 40}::Class_{i % 400}::function_number_{i}" for i in range(_FUNCTIONS)]
        names = [f'"void {name}<float, {i % 7}>(int)"' if i % 3 else name for i, name in enumerate(plain)]

        def below(node: dict[int, Any], depth: int) -> list[str]:
            """The rows of a rank, none for a branch that it was not sampled in."""
            lines = []
            for i, child in choice.sample(list(node.items()), len(node)):
                more = below(child, depth + 1)
                is_sampled = id(child) in sampled and choice.random() < 0.8
                if more or is_sampled:
                    time = f"{choice.expovariate(20):.6f}" if is_sampled else "0.0"
                    lines.append(f"{' ' * depth}{names[i]},{time},libpackage_{i % 40}.so\n")
                    lines += more
            return lines

        yield "Function Stack,CPU Time:Self,Module\n"
        while True:
            yield "Total,0.0,[Unknown]\n"
            yield from below(tree, 1)

    return _blocks(rows(), size)


def pstats(size: int) -> Iterator[bytes]:
    """A file of cProfile with as many functions as ``size`` needs, each with a few callers before it."""
    choice = random.Random(1)
    count = max(size // 250, 2)
    keys = [(_file(i), i % 900 + 1, f"function_{i}") for i in range(count)]
    document = {}
    for i, key in enumerate(keys):
        callers = {keys[choice.randrange(i // 2, i)] for _ in range(3)} if i else set()
        edges = dict.fromkeys(callers, (2, 2, 0.001, 0.01))
        document[key] = (
            2 * len(edges) or 1,
            2 * len(edges) or 1,
            0.001 * (len(edges) or 1),
            0.01 * (len(edges) or 1),
            edges,
        )
    yield marshal.dumps(document)


def _speedscope_head() -> str:
    frames = (f'{{"name": "function_{i}", "file": "{_file(i)}", "line": {i % 900 + 1}}}' for i in range(_FUNCTIONS))
    return f'{{"shared": {{"frames": [{", ".join(frames)}]}}, "profiles": ['


def _profile_head(kind: str, number: int) -> str:
    comma = ", " if number else ""
    return f'{comma}{{"type": "{kind}", "name": "thread {number}", "unit": "milliseconds", "startValue": 0'


def speedscope(size: int) -> Iterator[bytes]:
    """Eight threads that were sampled."""
    choice = random.Random(1)
    stacks = [f"[{', '.join(map(str, path))}]" for path in _paths(choice)]
    yield _speedscope_head().encode()
    for number in range(8):
        weights: list[str] = []

        def samples(weights: list[str] = weights) -> Iterator[str]:
            yield choice.choice(stacks)
            while True:
                weights.append(str(choice.randrange(1, 20)))
                yield f", {choice.choice(stacks)}"

        yield f'{_profile_head("sampled", number)}, "endValue": {size}, "samples": ['.encode()
        yield from _blocks(samples(), size // 9)
        weights.append("1")
        yield f'], "weights": [{", ".join(weights)}]}}'.encode()
    yield b"]}"


def speedscope_evented(size: int) -> Iterator[bytes]:
    """Eight threads whose calls were traced."""
    choice = random.Random(1)
    paths = _paths(choice)
    yield _speedscope_head().encode()
    for number in range(8):
        open_: list[int] = []
        times = [0]

        def event(kind: str, frame: int, times: list[int] = times) -> str:
            comma = ", " if len(times) > 1 else ""
            times.append(times[-1])
            return f'{comma}{{"type": "{kind}", "frame": {frame}, "at": {times[-1]}}}'

        def events(open_: list[int] = open_, times: list[int] = times) -> Iterator[str]:
            while True:
                path = choice.choice(paths)
                common = next((i for i, (a, b) in enumerate(zip(open_, path, strict=False)) if a != b), len(path))
                while len(open_) > common:
                    yield event("C", open_.pop())
                for frame in path[len(open_) :]:
                    open_.append(frame)
                    yield event("O", frame)
                times[-1] += choice.randrange(1, 9)

        yield f'{_profile_head("evented", number)}, "endValue": {size}, "events": ['.encode()
        yield from _blocks(events(), size // 8)
        yield "".join(event("C", open_.pop()) for _ in range(len(open_))).encode()
        yield b"]}"
    yield b"]}"


TEXTS: dict[str, Callable[[int], Iterator[bytes]]] = {
    "pyspy": pyspy,
    "austin": austin,
    "austin_full": austin_full,
    "faulthandler": faulthandler,
    "chrome": chrome,
    "perf_sched": perf_sched,
    "vtune": vtune,
    "pstats": pstats,
    "speedscope": speedscope,
    "speedscope_evented": speedscope_evented,
}
"""Makers of texts by the reader; "austin_full" is read by austin too."""
