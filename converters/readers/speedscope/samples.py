"""Profiles of type "sampled": samples by their text, each distinct one parsed once, and their weights."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from math import isfinite
from typing import Any

from .json import JsonParts
from .values import MAX_VALUE, typed, weight

_BETWEEN = re.compile(r"\][ \t\r\n]*,[ \t\r\n]*\[")
_LOOK = 1 << 16
"""The first sample of a text must end within this many characters for the text to be read in bulk."""


class Stacks(dict[str, int]):
    """The number of each distinct sample, by the text between its brackets; ValueError if it is not an array of
    integers. The same stack in another spelling has another number."""

    def __init__(self) -> None:
        super().__init__()
        self._values: list[Any] = []

    def __missing__(self, text: str) -> int:
        if not _are_whole(json.loads(f"[{text}]")):
            raise ValueError("other values among the indices")
        self[text] = len(self._values)
        self._values.append(text)
        return len(self._values) - 1

    def number(self, value: Any) -> int:
        """The number of any value; `indices` detects invalid ones."""
        if isinstance(value, list) and _are_whole(value):
            return self[", ".join(map(str, value))]
        self._values.append((value,))
        return len(self._values) - 1

    def indices(self, number: int, where: str) -> list[Any]:
        """The sample, an array of indices of any type. ValueError if it is not an array."""
        value = self._values[number]
        values: list[Any] = (
            json.loads(f"[{value}]") if isinstance(value, str) else typed(value[0], list, f"a sample of {where}")
        )
        return values


class Samples:
    """The samples of the profile called ``where``. The samples and the weights are kept until both have been read,
    in 4 and 8 bytes each; then their sum per stack."""

    def __init__(self, stacks: Stacks, where: str) -> None:
        self._stacks = stacks
        self._where = where
        self._samples: array[int] | None = None
        self._weights: list[array[Any] | list[Any]] | None = None
        self._sums: dict[int, float] = {}
        self._wrong = f"the samples of {where} should be a JSON array"

    def read(self, key: str, parts: JsonParts) -> None:
        """Reads the value of ``key``, "samples" or "weights"."""
        if key == "samples":
            self._read_samples(parts)
        else:
            self._read_weights(parts)

    def settle(self) -> None:
        """Sums samples and weights; to be called when both have been read."""
        samples, weights, where = self._samples, self._weights, self._where
        self._samples = self._weights = None
        if samples is not None and weights is None:
            self._wrong = f"the weights of {where} should be a JSON array"
        if samples is None or weights is None:
            return
        self._wrong = ""
        if len(samples) != (count := sum(map(len, weights))):
            self._wrong = f"{where} has {len(samples)} samples and {count} weights"
        else:
            self._add_up(samples, weights)

    def sums(self) -> Iterator[tuple[int, float]]:
        """(number of a stack, weight), in the order of the first samples. ValueError after the last one before an
        error."""
        yield from self._sums.items()
        if self._wrong:
            raise ValueError(self._wrong)

    def _read_samples(self, parts: JsonParts) -> None:
        self._samples = None
        if parts.next() != "[":
            parts.value()
            return
        self._samples = array("I")
        for _ in parts.elements():
            self._take(parts, self._samples)
            self._samples.append(self._stacks.number(parts.value()))

    def _read_weights(self, parts: JsonParts) -> None:
        self._weights = None
        if parts.next() != "[":
            parts.value()
            return
        self._weights = []
        for _ in parts.elements():
            if run := parts.run(",", "]"):
                try:
                    self._weights.append(_packed(json.loads(f"[{run}]")))
                    parts.skip(len(run) + 1)
                except ValueError:
                    pass
            self._add(parts.value())

    def _take(self, parts: JsonParts, samples: array[int]) -> None:
        """Reads samples by their text, all but the last one available."""
        between = _BETWEEN.search(parts.ahead(_LOOK)) if parts.next() == "[" else None
        run = parts.run(between[0], '"') if between else ""
        if not between or not run:
            return
        count = len(samples)
        try:
            samples.extend(map(self._stacks.__getitem__, run[1:].split(between[0])))
            parts.skip(len(run) + len(between[0]) - 1)
        except ValueError:  # not an array of such samples, or separated differently
            del samples[count:]

    def _add(self, value: Any) -> None:
        """Adds a single weight."""
        assert self._weights is not None
        if not self._weights or not isinstance(self._weights[-1], list):
            self._weights.append([])
        self._weights[-1].append(value)

    def _add_up(self, samples: array[int], weights: list[array[Any] | list[Any]]) -> None:
        wrong = next(self._wrong_weights(weights), None)
        if wrong is not None:
            place, self._wrong = wrong
            del samples[place + 1 :]
            weights = [[0] * len(samples)]
        sums: dict[int, float] = dict.fromkeys(samples, 0)
        for number, value in zip(samples, chain.from_iterable(weights), strict=True):
            sums[number] += value
        self._sums = sums

    def _wrong_weights(self, weights: Iterable[array[Any] | list[Any]]) -> Iterator[tuple[int, str]]:
        """(place, what is wrong) for invalid weights."""
        place = 0
        for some in weights:
            if isinstance(some, list) or not (min(some) >= 0 and max(some) < MAX_VALUE):
                for i, value in enumerate(some, place):
                    try:
                        weight(value, self._where)
                    except ValueError as error:
                        yield i, str(error)
            place += len(some)


def _are_whole(values: list[Any]) -> bool:
    return set(map(type, values)) <= {int}


def _packed(values: list[Any]) -> array[Any] | list[Any]:
    """The values in 8 bytes each, if they are all of one type and finite; else as they are."""
    kinds = set(map(type, values))
    if kinds == {int} and min(values) >= -MAX_VALUE and max(values) < MAX_VALUE:
        return array("q", values)
    if kinds == {float} and isfinite(sum(values)):
        return array("d", values)
    return values
