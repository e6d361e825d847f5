"""A few damaged inputs for every reader; tests/bench/fuzz_readers.py is the same with many."""

from __future__ import annotations

import pytest
from bench import fuzz_readers
from stallscope.converters.readers import detect


@pytest.mark.parametrize("name", detect.formats())
def test_only_our_error_comes_out(name: str) -> None:
    outcome = fuzz_readers.run(name, 150, "test")
    assert [what for what, _ in outcome.failures] == []
    assert outcome.counts["read"] > 0
    assert outcome.counts["refused"] > 0
    assert outcome.counts.total() == 150


def test_a_reader_that_fails_or_hangs_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz_readers, "MAX_SECONDS", 0.05)

    def broken(*_: object) -> None:
        raise ValueError("not ours")

    def endless(*_: object) -> None:
        while True:
            pass

    for replacement, told in ((broken, "ValueError: not ours"), (endless, "Hang: more than 0.05 s")):
        monkeypatch.setattr(detect, "read_source", replacement)
        assert {what for what, _ in fuzz_readers.run("folded", 2, "test").failures} == {told}


def test_the_seed_decides() -> None:
    first, again, other = (
        [text for text, _ in zip(fuzz_readers.inputs("perf", seed), range(50), strict=False)] for seed in "112"
    )
    assert first == again
    assert first != other
    assert max(map(len, first)) <= fuzz_readers.MAX_INPUT
