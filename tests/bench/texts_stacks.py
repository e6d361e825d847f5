"""Texts of other tools, made for measuring: blocks until ``size`` bytes are there. As in recordings, stacks come
again and again, from call sites that stay, with leaves at any instruction."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

FUNCTIONS, DEPTH, STACKS = 5_000, (8, 28), 20_000
BASE = 0x55D0_0000_0000
_KERNEL = ("schedule", "__schedule", "do_nanosleep", "hrtimer_nanosleep", "__x64_sys_nanosleep", "do_syscall_64")


def paths(choice: random.Random) -> list[list[int]]:
    """Call paths that share their beginnings, outermost function first."""
    found = [[choice.randrange(20)]]
    whole: list[list[int]] = []
    while len(whole) < STACKS:
        path = choice.choice(found)
        longer = path[: choice.randint(1, len(path))] + [
            choice.randrange(FUNCTIONS) for _ in range(choice.randint(1, 6))
        ]
        found.append(longer[: DEPTH[1]])
        if len(found[-1]) >= DEPTH[0]:
            whole.append(found[-1])
    return whole


def _name(function: int) -> str:
    return f"module_{function % 40}::function_number_{function}"


def _blocks(size: int, make: Callable[[random.Random, list[int], bool], str], again: float = 0.8) -> list[str]:
    """Texts of stacks, each path several times: ``again`` of them as the same text, the rest with another leaf."""
    choice = random.Random(1)
    texts: list[str] = []
    made = 0
    for path in paths(choice):
        text = make(choice, path, True)
        for _ in range(4):
            texts.append(text if choice.random() < again else make(choice, path, False))
            made += len(texts[-1])
        if made >= size:
            break
    choice.shuffle(texts)
    return texts


def _repeated(size: int, texts: list[str], finish: Callable[[random.Random, str], str]) -> Iterator[bytes]:
    choice = random.Random(2)
    done = 0
    while done < size:
        block = "".join([finish(choice, choice.choice(texts)) for _ in range(1000)]).encode()
        done += len(block)
        yield block


def _offset(function: int, leaf: bool, choice: random.Random) -> int:
    return 16 * choice.randrange(12) if leaf else 16 * (function % 7) + 5


def stap(size: int) -> Iterator[bytes]:
    """``print_ustack`` and a count."""

    def make(choice: random.Random, path: list[int], _: bool) -> str:
        lines = []
        for depth, i in enumerate(reversed(path)):
            offset = _offset(i, depth == 0, choice)
            lines.append(f" {BASE + 4096 * i + offset:#x} : {_name(i)}+{offset:#x}/0x200 [/usr/lib/lib{i % 40}.so]\n")
        return "".join(lines)

    yield from _repeated(size, _blocks(size, make), lambda choice, text: f"{text}\t{choice.randrange(1, 5000)}\n")


def dtrace(size: int) -> Iterator[bytes]:
    """``@[ustack()] = count()``, with the three lines that the command prints first."""

    def make(choice: random.Random, path: list[int], _: bool) -> str:
        frames = [
            f"              lib{i % 40}.so.1`function_number_{i}+{_offset(i, depth == 0, choice):#x}\n"
            for depth, i in enumerate(reversed(path))
        ]
        return "".join(frames)

    yield b"dtrace: description 'profile-997 ' matched 1 probe\nCPU     ID                    FUNCTION:NAME\n"
    yield b"  0  64091                        :tick-60s \n\n"
    yield from _repeated(size, _blocks(size, make), lambda choice, text: f"\n{text}{choice.randrange(1, 5000):17}\n")


def eu_stack(size: int) -> Iterator[bytes]:
    """``eu-stack -p PID`` of a process with 16 threads, again and again."""

    def make(choice: random.Random, path: list[int], _: bool) -> str:
        lines = []
        for depth, i in enumerate(reversed(path)):
            lines.append(f"#{depth:<2} 0x{BASE + 4096 * i + _offset(i, depth == 0, choice):016x} {_name(i)}\n")
        return "".join(lines)

    def finish(choice: random.Random, text: str) -> str:
        head = "PID 4100 - process\n" if choice.randrange(16) == 0 else ""
        return f"{head}TID {4100 + choice.randrange(16)}:\n{text}"

    yield from _repeated(size, _blocks(size, make), finish)


def gdb(size: int) -> Iterator[bytes]:
    """``thread apply all bt`` of a process with 16 threads, again and again."""

    def make(choice: random.Random, path: list[int], _: bool) -> str:
        lines = []
        for depth, i in enumerate(reversed(path)):
            address = BASE + 4096 * i + _offset(i, depth == 0, choice)
            lines.append(
                f"#{depth:<2} 0x{address:016x} in {_name(i)} (this=0x{BASE + i:x}, n={i}) at m{i % 40}.cc:{i}\n"
            )
        return "".join(lines)

    def finish(choice: random.Random, text: str) -> str:
        thread = choice.randrange(16)
        end = "[Inferior 1 (process 4100) detached]\n" if thread == 0 else ""
        return f'\nThread {thread + 1} (Thread 0x7fa1326ea6c0 (LWP {4100 + thread}) "worker {thread}"):\n{text}{end}'

    yield from _repeated(size, _blocks(size, make), finish)


def bpftrace(size: int) -> Iterator[bytes]:
    """``@[ustack] = count()``, printed at intervals."""

    def make(choice: random.Random, path: list[int], _: bool) -> str:
        frames = [f"    {_name(i)}+{_offset(i, depth == 0, choice)}\n" for depth, i in enumerate(reversed(path))]
        return "@[\n" + "".join(frames)

    yield b"Attaching 2 probes...\n\n"
    yield from _repeated(size, _blocks(size, make), lambda choice, text: f"{text}]: {choice.randrange(1, 5000)}\n")


def bcc(size: int) -> Iterator[bytes]:
    """``offcputime -f -d``."""

    def make(_: random.Random, path: list[int], __: bool) -> str:
        return ";".join([f"worker {path[-1] % 8}", *map(_name, path), "-", *reversed(_KERNEL)])

    yield from _repeated(size, _blocks(size, make), lambda choice, text: f"{text} {choice.randrange(1, 5000)}\n")


def stap_lines(size: int) -> Iterator[bytes]:
    """Lines as stap/offcpu.stp prints them: 64 threads that wait, with 2,000 stacks, each told before its first
    wait."""
    choice = random.Random(1)
    now, made, lines = 1_000_000_000_000, 0, 0
    piece = f"stallscope 1 {now} 1795406984254747258\n"
    whole = paths(choice)[:2_000]
    told: set[int] = set()
    while made < size:
        stack = choice.randrange(len(whole))
        if stack not in told:
            told.add(stack)
            for depth, i in enumerate(reversed(whole[stack])):
                place = f"{_name(i)}+{_offset(i, depth == 0, choice):#x}/0x200 [/usr/lib/lib{i % 40}.so]"
                piece += f"f {stack + 1} {depth} {place}\n"
                lines += 1
        ran, blocked, woken = choice.randrange(90_000), choice.randrange(5_000_000), choice.randrange(50_000)
        now += 20_000
        tid = 4100 + choice.randrange(64)
        piece += f"w 4100 {tid} {choice.choice('SSSDR')} 0 {stack + 1} {now} {ran} {blocked} {woken}\n"
        lines += 1
        made += len(piece)
        yield piece.encode()
        piece = ""
    yield f"lost scope 0\nlost stacks 0\nlost threads 0\nend {now + 5_000_000} {lines}\n".encode()


TEXTS: dict[str, tuple[str, Callable[[int], Iterator[bytes]], str]] = {
    "stap": ("stap", stap, "stackcollapse-stap.pl"),
    "stap_lines": ("stap_lines", stap_lines, ""),
    "dtrace": ("dtrace", dtrace, "stackcollapse.pl"),
    "eu-stack": ("gdb", eu_stack, "stackcollapse-elfutils.pl"),
    "gdb": ("gdb", gdb, "stackcollapse-gdb.pl"),
    "bpftrace": ("bpftrace", bpftrace, "stackcollapse-bpftrace.pl"),
    "bcc": ("bcc", bcc, ""),
}
"""Name → reader, generator, and FlameGraph's script for the same text ("" without one)."""
