"""Inputs that once failed, inputs that reach much code, and large ones: of none may anything but a refusal come."""

from __future__ import annotations

import os

import fuzz_limits
import pytest
from fuzz_large import LARGE
from fuzz_limits import Child, Current
from fuzz_session import CORPUS, corpus_files
from fuzz_targets import TARGETS


def replayed(target: str, inputs: list[tuple[str, bytes]]) -> list[str]:
    """Runs inputs one after the other in a process; returns what was wrong."""
    read_end, write_end = os.pipe()
    name = ""

    def act(current: Current) -> None:
        for name, data in inputs:
            os.write(write_end, f"{name}\n".encode())
            found = fuzz_limits.run(TARGETS[target], data, current)
            if found.is_wrong:
                os.write(write_end, f"! {name}: {found.outcome}\n".encode())

    child = Child(act)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        told = pipe.read().decode(errors="replace").splitlines()
    wrong = [line[2:] for line in told if line.startswith("! ")]
    if died := child.wait():
        name = next((line for line in reversed(told) if not line.startswith("! ")), "?")
        wrong.append(f"{name}: {died}")
    return wrong


@pytest.mark.parametrize("target", TARGETS)
def test_kept_inputs(target: str) -> None:
    seeds = [(f"seed {i}", data) for i, data in enumerate(TARGETS[target].seeds())]
    assert seeds
    assert replayed(target, [*seeds, *corpus_files(target)]) == []


@pytest.mark.parametrize("large", LARGE, ids=lambda large: f"{large.target}: {large.what}")
def test_large_inputs(large: object) -> None:
    target, what, make = large  # type: ignore[misc]
    assert replayed(target, [(what, make())]) == []


def test_the_corpus_has_only_what_is_replayed() -> None:
    found = {path.name.removesuffix(".zip") for path in CORPUS.iterdir()}
    assert found - TARGETS.keys() == set()
    assert all(path.stat().st_size < 100_000 for path in CORPUS.rglob("*"))
