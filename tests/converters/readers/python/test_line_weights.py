from __future__ import annotations

import random

from stallscope.converters.readers.python.line_weights import LineWeights

TEXT = b"a;b 1\na;b 2\n\n c 3\nd\n# x\na;b 9999999999999999999\ne  4\nf +5\n 6\nf 7"


def tally(*chunks: bytes) -> tuple[dict[bytes, int], list[tuple[bytes, int]]]:
    unusual: list[tuple[bytes, int]] = []
    weights = LineWeights(lambda line, number: unusual.append((line, number)))
    for chunk in chunks:
        weights.add(chunk)
    return dict(weights.weights), unusual


def test_sums_and_places() -> None:
    weights, unusual = tally(TEXT)
    assert weights == {b"a;b": 3, b" c": 3, b"e ": 4, b"f": 7}
    assert unusual == [(b"d", 5), (b"# x", 6), (b"a;b 9999999999999999999", 7), (b"f +5", 9), (b" 6", 10)]


def test_chunks_of_whole_lines_give_the_same() -> None:
    lines = TEXT.splitlines(keepends=True)
    choice = random.Random(1)
    for _ in range(20):
        cut = choice.randrange(len(lines))
        assert tally(b"".join(lines[:cut]), b"".join(lines[cut:])) == tally(TEXT)
