"""Seconds of each transform on 200,000 distinct stacks, and of folded text written from them; the best of three."""

from __future__ import annotations

import gc
import io
import random
import re
import time
from collections.abc import Callable

from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.transforms import diff, labels, names, select, stacks
from stallscope.converters.writers import folded
from stallscope.converters.writers.base.options import WriteOptions

STACKS, FUNCTIONS, DEPTH = 200_000, 8_000, (6, 20)
GOAL = 1.0


def profile(seed: int) -> Profile:
    """Eight processes of ten threads; four columns."""
    choice = random.Random(seed)
    modules = [Module(f"/usr/lib/lib{i}.so.1") for i in range(20)]
    frames = [
        Frame(f"space{i % 50}::Class{i % 300}<int, A<int> >::method{i}(int)", "native", modules[i % 20], 16 * i)
        for i in range(FUNCTIONS)
    ]
    whose = [
        (("pid", pid), ("process", "python3"), ("state", state), ("thread", f"worker-{i}"), ("tid", 10 * pid + i))
        for pid in range(8)
        for i in range(10)
        for state in ("D", "S")
    ]
    samples = [
        Sample(tuple(choice.choices(frames, k=choice.randint(*DEPTH))), (choice.randint(1, 10**9), 3, 5, 9), who)
        for who in choice.choices(whose, k=STACKS)
    ]
    ns = "nanoseconds"
    kinds = [ValueType("off-cpu", ns), ValueType("count", "count"), ValueType("min", ns, "min")]
    return Profile([*kinds, ValueType("max", ns, "max")], samples)


def seconds(action: Callable[[], object]) -> float:
    """CPU time, without the collector, as the command runs it."""
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        action()
        best = min(best, time.process_time() - begin)
    return best


def main() -> None:
    """Prints one line per transform."""
    one, other = profile(1), profile(2)
    some, few = re.compile("Class1"), re.compile("worker-1")
    actions: dict[str, Callable[[], object]] = {
        "--keep thread": lambda: select.keep(one, "thread", [few]),
        "--keep frame": lambda: select.keep(one, "frame", [some]),
        "--focus": lambda: select.focus(one, some),
        "--ignore": lambda: select.ignore(one, some),
        "--begin-at": lambda: stacks.begin_at(one, some),
        "--end-at": lambda: stacks.end_at(one, some),
        "--hide": lambda: stacks.hide(one, some),
        "--show": lambda: stacks.show(one, some),
        "--simplify all": lambda: names.simplify(one, names.KINDS),
        "--collapse direct": lambda: stacks.collapse_recursion(one),
        "--collapse cycles": lambda: stacks.collapse_recursion(one, cycles=True),
        "--callers": lambda: stacks.invert(one),
        "--max-depth 5": lambda: stacks.limit_depth(one, 5),
        "--merge": lambda: labels.merge_processes(one),
        "--diff (two of them)": lambda: diff.differential(one, other),
        "folded text": lambda: folded.write(one, io.BytesIO(), WriteOptions()),
    }
    gc.disable()
    for name, action in actions.items():
        print(f"{name:22} {seconds(action):5.2f} s   (goal {GOAL:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
