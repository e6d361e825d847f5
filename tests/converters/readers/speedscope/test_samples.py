from __future__ import annotations

import io
import json
from typing import Any

import pytest
from stallscope.converters.readers.base import json_stream
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.speedscope.json import JsonParts
from stallscope.converters.readers.speedscope.samples import Samples, Stacks


def read(text: str) -> tuple[Stacks, Samples]:
    """A profile of which the samples and weights are read."""
    stacks = Stacks()
    samples = Samples(stacks, "p")
    parts = JsonParts(Source(io.BytesIO(text.encode()), "x"))
    for key in parts.keys_here():
        samples.read(key, parts)
    parts.end()
    samples.settle()
    return stacks, samples


def sums(text: str) -> list[tuple[list[Any], float]]:
    stacks, samples = read(text)
    return [(stacks.indices(number, "p"), value) for number, value in samples.sums()]


@pytest.mark.parametrize("chunk", [1, 20, 1 << 18])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n", ":")])
@pytest.mark.parametrize("keys", [("samples", "weights"), ("weights", "samples")])
def test_weights_add_up(
    monkeypatch: pytest.MonkeyPatch, chunk: int, separators: tuple[str, str], keys: tuple[str, str]
) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", chunk)
    lists = {"samples": [[1, 2], [], [3], [1, 2], [3], [3]], "weights": [1, 2, 4, 8, 16.5, 32]}
    text = json.dumps({key: lists[key] for key in keys}, separators=separators)
    assert sums(text) == [([1, 2], 9), ([], 2), ([3], 52.5)]


def test_each_spelling_is_parsed_once() -> None:
    stacks, samples = read(json.dumps({"samples": [[i % 7, 300] for i in range(1000)], "weights": [1] * 1000}))
    assert len(stacks) == 7
    assert [value for _, value in samples.sums()] == [143] * 6 + [142]


def test_large_weights_stay_exact() -> None:
    assert sums('{"samples": [[1], [1], [1]], "weights": [9007199254740993, 1, 9223372036854775807]}') == [
        ([1], 9007199254740993 + 1 + 9223372036854775807)
    ]


@pytest.mark.parametrize(
    ("text", "before", "message"),
    [
        ("{}", 0, "the samples of p should be a JSON array"),
        ('{"samples": {}, "weights": []}', 0, "the samples of p should be"),
        ('{"samples": []}', 0, "the weights of p should be"),
        ('{"samples": [[1], [2]], "weights": [1]}', 0, "p has 2 samples and 1 weights"),
        ('{"samples": [[1], [2], [3]], "weights": [1, -1, 1]}', 2, "p has a weight below 0"),
        ('{"samples": [[1], [2], [3]], "weights": [1, 1, NaN]}', 3, "a time or weight of p is no number"),
        ('{"samples": [[1], [2], [3]], "weights": [true, 1, 2]}', 1, "a time or weight of p is no number"),
        ('{"samples": [[1], [2], [3]], "weights": [1.5, 1e999, 2.5]}', 2, "a time or weight of p is no number"),
        ('{"samples": [[1], [2], [3]], "weights": [1, "1.5", 2]}', 2, "a time or weight of p is no number"),
    ],
)
def test_what_is_wrong_comes_behind_the_samples_before_it(text: str, before: int, message: str) -> None:
    _, samples = read(text)
    found = []
    with pytest.raises(ValueError, match=message):
        for each in samples.sums():
            found.append(each)
    assert len(found) == before


def test_samples_that_are_none_are_kept_for_their_turn() -> None:
    stacks, samples = read('{"samples": [[1], ["a", 1], 5, [true], [1]], "weights": [1, 1, 1, 1, 1]}')
    numbers = [number for number, _ in samples.sums()]
    assert [stacks.indices(number, "p") for number in (numbers[0], numbers[1], numbers[3])] == [[1], ["a", 1], [True]]
    with pytest.raises(ValueError, match="a sample of p should be a JSON array"):
        stacks.indices(numbers[2], "p")
