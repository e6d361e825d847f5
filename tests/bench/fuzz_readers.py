"""Every reader on damaged input: only StallscopeError may come out, soon, and without much memory.

    fuzz_readers.py [--count 10000] [--seed 1] [--jobs 2] [READER...]

`make bench` takes 10,000 inputs for each reader, some 30 s. --count 100000 is what a change of a reader has to stand:
about 20 s for each on one core.

Inputs are the files of tests/data, cut, spliced, repeated and overwritten, and random bytes: 16 KiB at most, most of
them under 2 KiB. One that takes more than 5 s of CPU, or more than 128 MiB, has failed. The same seed gives the same
inputs.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.readers import detect
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source

DATA = Path(__file__).resolve().parents[1] / "data"
MAX_INPUT = 16 << 10
MAX_SECONDS = 5
MAX_MEMORY = 128 << 20
"""For an input of MAX_INPUT: what Python takes at a time is coarse."""
_BATCH = 5_000
_SIZES, _SHARES = (150, 600, 2_000, MAX_INPUT), (40, 40, 18, 2)
"""Most are small: what matters in a large one is in a small one too."""
_WHOLE = 0.05
"""Share of the inputs that are a file as it is."""
_DETECTED = 0.1
"""Share of the inputs whose format is looked for as well."""
_PIECES = (
    *(
        b"\n",
        b"\n\n",
        b"\r\n",
        b"\0",
        b" ",
        b"\t",
        b";",
        b":",
        b"(",
        b")",
        b"[",
        b"{",
        b'"',
        b"\\",
        b"->",
        b"+0x",
        b"#",
    ),
    *(b"0", b"-1", b"99999999999999999999", b"1e999", b"NaN", b"-", b"--", b"0x", b"1_0", "\u0663".encode()),
    *(b"\xff\xfe", b"\x80", b"\xf0\x9f\x98\x80", "\u202e".encode(), b"\x1f\x8b", b"\x28\xb5\x2f\xfd"),
    *(b"[unknown]", b"/tmp/perf-1.map", b"@[", b"]: 1"),
)


class Hang(BaseException):
    """An input took too long."""


class Outcome(NamedTuple):
    """What became of the inputs of one batch; ``failures`` are (what was raised, the input)."""

    name: str
    counts: Counter[str]
    failures: list[tuple[str, bytes]]
    slowest: float


def corpus(name: str) -> list[bytes]:
    """The files of one reader, and of the others' a little."""
    own = [path for path in sorted((DATA / name).iterdir()) if path.suffix != ".golden"]
    return [path.read_bytes()[: 4 * MAX_INPUT] for path in own]


def inputs(name: str, seed: str) -> Iterator[bytes]:
    """Without end."""
    choice = random.Random(seed)
    seeds = corpus(name)
    others = [text for other in detect.formats() for text in corpus(other)]
    while True:
        if choice.random() < _WHOLE:
            yield choice.choice(seeds)[:MAX_INPUT]
            continue
        text = choice.choice(seeds if choice.random() < 0.9 else others)
        if choice.random() < 0.02:
            text = choice.randbytes(choice.randrange(300))
        start = choice.randrange(len(text) + 1) if choice.random() < 0.3 else 0
        text = text[start : start + choice.choices(_SIZES, _SHARES)[0]]
        for _ in range(choice.randrange(6)):
            text = choice.choice(_MUTATIONS)(text, choice, seeds)
        yield text[:MAX_INPUT]


def _overwrite(text: bytes, choice: random.Random, _: list[bytes]) -> bytes:
    at = choice.randrange(len(text) + 1)
    return text[:at] + choice.randbytes(choice.randrange(1, 5)) + text[at + choice.randrange(9) :]


def _insert(text: bytes, choice: random.Random, _: list[bytes]) -> bytes:
    at = choice.randrange(len(text) + 1)
    return text[:at] + choice.choice(_PIECES) * choice.choice((1, 1, 1, 1, 1, 2, 2, 50, 300)) + text[at:]


def _cut(text: bytes, choice: random.Random, _: list[bytes]) -> bytes:
    at = choice.randrange(len(text) + 1)
    return text[:at] + text[at + choice.randrange(200) :]


def _truncate(text: bytes, choice: random.Random, _: list[bytes]) -> bytes:
    return text[: choice.randrange(len(text) + 1)]


def _splice(text: bytes, choice: random.Random, seeds: list[bytes]) -> bytes:
    other = choice.choice(seeds)
    return text[: choice.randrange(len(text) + 1)] + other[choice.randrange(len(other) + 1) :][:4_000]


def _repeat(text: bytes, choice: random.Random, _: list[bytes]) -> bytes:
    at = choice.randrange(len(text) + 1)
    return text[:at] + text[at : at + choice.randrange(60)] * choice.choice((2, 2, 5, 20)) + text[at:]


def _flip(text: bytes, choice: random.Random, _: list[bytes]) -> bytes:
    if not text:
        return text
    at = choice.randrange(len(text))
    return text[:at] + bytes([text[at] ^ 1 << choice.randrange(8)]) + text[at + 1 :]


def _lines(text: bytes, choice: random.Random, _: list[bytes]) -> bytes:
    lines = text.splitlines(keepends=True)
    at, length = choice.randrange(len(lines) + 1), choice.randrange(1, 4)
    return b"".join(lines[:at] + choice.sample(lines, min(length, len(lines))) + lines[at + choice.randrange(3) :])


_MUTATIONS: tuple[Callable[[bytes, random.Random, list[bytes]], bytes], ...] = (
    _overwrite, _insert, _cut, _truncate, _splice, _repeat, _flip, _lines,
)  # fmt: skip


def run(name: str, count: int, seed: str) -> Outcome:
    """Reads ``count`` inputs, one after the other, in this process."""
    counts: Counter[str] = Counter()
    failures = []
    slowest = 0.0
    choice = random.Random(seed)
    for text, _ in zip(inputs(name, seed), range(count), strict=False):
        options = ReadOptions(
            choice.random() < 0.5, choice.random() < 0.5, choice.random() < 0.5, choice.choice(("", "cycles"))
        )
        begin = time.process_time()
        try:
            with limited_time():
                if choice.random() < _DETECTED:
                    _detect(text)
                counts[_read(text, name, options)] += 1
        except (Exception, Hang) as error:
            counts["failed"] += 1
            failures.append((f"{type(error).__name__}: {error}", text))
        slowest = max(slowest, time.process_time() - begin)
    return Outcome(name, counts, failures, slowest)


def _read(text: bytes, name: str, options: ReadOptions) -> str:
    try:
        source = Source(io.BytesIO(text), "input")
        profile = detect.read_source(source, options, name)
    except StallscopeError as error:
        if not error.cause or "\n" in error.cause:
            raise AssertionError(f"no cause in one line: {error.cause!r}") from error
        return "refused"
    for sample in profile.samples:
        if len(sample.values) != len(profile.value_types) or not all(frame.name for frame in sample.stack):
            raise AssertionError(f"not a sample: {sample!r}")
    return "read"


def _detect(text: bytes) -> None:
    try:
        detect.detect(Source(io.BytesIO(text), "input"))
    except StallscopeError:
        return


@contextmanager
def limited_time() -> Iterator[None]:
    """Raises Hang after MAX_SECONDS of CPU."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang(f"more than {MAX_SECONDS} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def limit_memory() -> None:
    """MemoryError where this process grows by more than MAX_MEMORY from now on."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MAX_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _batch(task: tuple[str, int, str]) -> Outcome:
    return run(*task)


def _start() -> None:
    for name in detect.formats():
        run(name, 20, "warm")  # what a reader imports is not the input's memory
    limit_memory()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("readers", nargs="*", metavar="READER")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    given = parser.parse_args()
    names = given.readers or detect.formats()
    print(f"seed {given.seed}, {given.count:,} inputs for each of {len(names)} readers")
    failed = 0
    with multiprocessing.Pool(given.jobs, _start) as pool:
        for name in names:
            sizes = [min(_BATCH, given.count - start) for start in range(0, given.count, _BATCH)]
            begin = time.monotonic()
            tasks = [(name, size, f"{given.seed}/{name}/{i}") for i, size in enumerate(sizes)]
            failed += _tell(name, list(pool.imap_unordered(_batch, tasks)), time.monotonic() - begin)
    return 1 if failed else 0


def _tell(name: str, outcomes: list[Outcome], took: float) -> int:
    counts = sum((outcome.counts for outcome in outcomes), Counter())
    failures = [failure for outcome in outcomes for failure in outcome.failures]
    print(
        f"{name:>14}: {counts['read']:>7,} read, {counts['refused']:>7,} refused, {counts['failed']:>3,} failed;"
        f" slowest {max(outcome.slowest for outcome in outcomes):.2f} s; {counts.total() / took:,.0f} a second",
        flush=True,
    )
    for what, text in failures[:5]:
        with tempfile.NamedTemporaryFile(prefix=f"fuzz-{name}-", delete=False) as file:
            file.write(text)
        print(f"    {what[:200]!a}: {file.name}")
    return len(failures)


if __name__ == "__main__":
    sys.exit(main())
