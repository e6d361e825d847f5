"""The fuzzing itself: what is wrong is found, and inputs that reach new code are kept."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import fuzz_limits
import fuzz_mutators
import fuzz_seeds
import pytest
from fuzz_elf import Layout
from fuzz_limits import fails, minimised
from fuzz_target import Target
from fuzz_targets import TARGETS
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.readers import detect
from test_corpus import replayed


def target(run: Callable[[bytes], object], *allowed: type[Exception]) -> Target:
    return Target("made", run, lambda: [b"x"], allowed=allowed)


def _raise(error: BaseException) -> None:
    raise error


def _loop(_: bytes) -> None:
    while True:
        pass


def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz_limits, "CPU_SECONDS", 0.5)
    monkeypatch.setattr(fuzz_limits, "WALL_SECONDS", 3)
    assert fails(target(len), b"x") == ""
    assert fails(target(lambda data: _raise(StallscopeError("no")), StallscopeError), b"x") == ""
    assert fails(target(lambda data: _raise(KeyError(1))), b"x").startswith("KeyError at ")
    assert fails(target(lambda data: _raise(SystemExit(3))), b"x").startswith("SystemExit at ")
    assert fails(target(lambda data: bytearray(600 << 20)), b"x").startswith("MemoryError at ")
    assert "of a core" in fails(target(_loop), b"x")
    assert fails(target(lambda data: time.sleep(60)), b"x").startswith("more than")
    assert fails(target(lambda data: __import__("ctypes").string_at(0)), b"x") == "SIGSEGV"


def test_inputs_become_small() -> None:
    picky = target(lambda data: _raise(KeyError(1)) if b"<" in data and b">" in data else None)
    assert minimised(picky, b"a" * 100 + b"<" + b"b" * 300 + b">" + b"c" * 99) == b"<>"


def test_replaying_goes_on_and_names_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    crash = target(lambda data: __import__("ctypes").string_at(0) if data == b"crash" else _raise(KeyError(1)))
    monkeypatch.setitem(TARGETS, "made", crash)
    assert replayed("made", [("one", b"x"), ("two", b"crash"), ("three", b"x")]) == [
        "one: KeyError at fuzz/test_fuzzing.py:_raise",
        "two: SIGSEGV",
    ]


@pytest.mark.parametrize("name", detect.formats())
def test_readers_read_and_refuse(name: str) -> None:
    """Damage leaves some inputs whole, and not all."""
    made, chance = TARGETS[f"read-{name}"], random.Random(1)
    seeds = made.seeds()
    assert {_outcome(made, data) for data in seeds} >= {"read"}
    changed = (made.mutate(chance.choice(seeds)[:2000], chance, seeds)[: 16 << 10] for _ in range(2000))
    outcomes: set[str] = set()
    while len(outcomes) < 2:
        outcomes.add(_outcome(made, next(changed)))


def _outcome(made: Target, data: bytes) -> str:
    try:
        made.run(data)
    except StallscopeError:
        return "refused"
    return "read"


@pytest.mark.parametrize("name", TARGETS)
def test_parsers_understand_the_inputs_to_begin_with(name: str) -> None:
    """Parsers read their first inputs; else only their first check is fuzzed."""
    outcomes = []
    for data in TARGETS[name].seeds():
        try:
            TARGETS[name].run(data)
            outcomes.append("read")
        except TARGETS[name].allowed:
            outcomes.append("refused")
    assert "read" in outcomes


def test_elf_files_are_changed_in_their_fields() -> None:
    chance, data = random.Random(1), fuzz_seeds.with_symbols()[0]
    layout = Layout.of(data)
    assert layout is not None
    assert len(layout.segments) == 5
    assert len(layout.sections) == 14
    assert layout.symbols
    changed = [fuzz_mutators.elf(data, chance, [data]) for _ in range(400)]
    assert sum(len(each) == len(data) for each in changed) > 300
    places = [at for each in changed for at in range(min(len(each), len(data))) if each[at] != data[at]]
    for begin in (layout.segments[0], layout.sections[2], layout.symbols[1]):
        assert any(begin <= at < begin + 24 for at in places)


def test_the_same_seed_changes_the_same() -> None:
    for made in TARGETS.values():
        seeds = list(made.seeds())[:2]
        first, again = (
            [made.mutate(seeds[0], chance, seeds) for _ in range(5)] for chance in map(random.Random, (1, 1))
        )
        assert first == again
        assert any(data != seeds[0] for data in first)


def test_branches_are_seen(tmp_path: Path) -> None:
    """A byte is guessed after the other only if each right one counts."""
    made = tmp_path / "stallscope"
    made.mkdir()
    (made / "__init__.py").write_text("")
    (made / "parser.py").write_text(
        "def parse(data):\n    'Text.'\n    if data[:1] == b'a':\n"
        "        if data[1:2] == b'b':\n            raise ValueError\n"
        "    else:\n        for _ in data:\n            pass\n"
    )
    code = (
        "import fuzz_coverage; fuzz_coverage.install(); from stallscope.parser import parse\n"
        "def taken(data):\n    fuzz_coverage.clear(); parse(data); return fuzz_coverage.taken().bit_count()\n"
        "print(taken(b''), taken(b'x'), taken(b'a'))"
    )
    path = f"{tmp_path}:{Path(__file__).parent}"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert done.stdout.split() == ["2", "3", "2"], done.stderr


def test_a_run_finds_what_is_wrong_and_says_so(tmp_path: Path) -> None:
    """A whole run of one target, by the command."""
    script = Path(__file__).with_name("run_fuzz.py")
    command = [sys.executable, script, "--seconds", "4", "--jobs", "1", "--work", tmp_path, "perf-map", "names"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {row[0] for row in rows} >= {"perf-map", "names", "all"}
    assert all(int(row[2].replace(",", "")) > 0 for row in rows if row[0] in ("perf-map", "names", "all"))
