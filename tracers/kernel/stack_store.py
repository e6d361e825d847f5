"""The frames of stacks by their ids, packed: there may be a million of them."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

_HEAD = 2
"""Words of a record before its frames: type, count and end in the first one, and the id."""
_BATCH = 1 << 22
"""Bytes of records, at least, that are indexed at a time."""
_PER_STACK = 16
"""Bytes for a stack in the index."""
_SOME = 1 << 14


class StackStore:
    """Holds records of stacks as they come from the ring buffer: struct stack_record of bpf/include/records.h."""

    def __init__(self) -> None:
        # numpy is loaded when there is something to index: the probes are attached before.
        self._fresh = bytearray()
        self._places = array("Q")
        """Begin of each record in ``_fresh``, in bytes."""
        self._sorting = False
        self._words: Words | None = None
        self._ids: Words | None = None
        """Ids of the indexed stacks, in ascending order; None before the first."""
        self._begins: NDArray[np.intp] | None = None
        """Begin of the record of each of ``_ids`` in ``_words``."""

    def add(self, record: bytes) -> None:
        """Takes a record; a stack that is there already stays as it is."""
        self._places.append(len(self._fresh))
        self._fresh += record
        if self._sorting:
            return
        if len(self._fresh) >= _BATCH and (self._words is None or 2 * len(self._fresh) >= self._words.nbytes):
            self._settle()

    @contextlib.contextmanager
    def sorting(self) -> Iterator[None]:
        """Stacks that come meanwhile are not subject to `keep`."""
        self._settle()
        self._sorting = True
        try:
            yield
        finally:
            self._sorting = False

    def _settle(self) -> None:
        """Indexes the new records."""
        import numpy as np

        words = np.frombuffer(bytes(self._fresh), np.uint64)
        places = np.frombuffer(self._places, np.uint64).astype(np.intp) // 8
        self._fresh, self._places = bytearray(), array("Q")
        ids = words[places + 1]
        order = np.argsort(ids, kind="stable")
        first = order[_first(ids[order])]
        ids = ids[first]
        if self._ids is None or self._words is None or self._begins is None:
            self._words, self._begins = _gathered(words, places[first])
            self._ids = ids
            return
        new = ~_among(ids, self._ids)
        words, begins = _gathered(words, places[first[new]])
        begins = np.concatenate([self._begins, begins + len(self._words)])
        self._words = np.concatenate([self._words, words])
        ids = np.concatenate([self._ids, ids[new]])
        order = np.argsort(ids)
        self._ids, self._begins = ids[order], begins[order]

    def __len__(self) -> int:
        """Stacks; of those that came lately, some may count twice."""
        return len(self._places) + (0 if self._ids is None else len(self._ids))

    @property
    def bytes(self) -> int:
        """Memory taken, about."""
        return len(self._fresh) + (0 if self._words is None else self._words.nbytes) + _PER_STACK * len(self)

    @property
    def frames(self) -> int:
        """Number of the frames of all stacks, about."""
        return (len(self._fresh) + (0 if self._words is None else self._words.nbytes)) // 8 - _HEAD * len(self)

    def words(self) -> Words:
        """Words of all records, one after the other."""
        self._settle()
        assert self._words is not None
        return self._words

    def keep(self, ids: Words) -> None:
        """Forgets all other stacks, but for those that have come since `sorting` began."""
        import numpy as np

        assert self._words is not None and self._ids is not None and self._begins is not None
        kept = _among(self._ids, np.sort(ids))
        self._words, self._begins = _gathered(self._words, self._begins[kept])
        self._ids = self._ids[kept]

    def find(self, ids: Iterable[int]) -> tuple[dict[int, tuple[int, ...]], dict[int, int]]:
        """The frames, leaf first, of those of these stacks that are there; and of incomplete ones the index into
        `records.ENDS`."""
        import numpy as np

        self._settle()
        assert self._words is not None and self._ids is not None and self._begins is not None
        places = self._begins[_among(self._ids, np.sort(np.fromiter(ids, np.uint64)))]
        frames: dict[int, tuple[int, ...]] = {}
        ends: dict[int, int] = {}
        for i in range(0, len(places), _SOME):
            words, begins = _gathered(self._words, places[i : i + _SOME])
            numbers = _shared(words)
            for begin, end in pairwise([*begins.tolist(), len(words)]):
                number, incomplete = numbers[begin + 1], numbers[begin] >> 48 & 0xFF
                frames[number] = tuple(numbers[begin + _HEAD : end])
                if incomplete:
                    ends[number] = incomplete
        return frames, ends

    def take(self, ids: Iterable[int]) -> tuple[dict[int, tuple[int, ...]], dict[int, int]]:
        """Finds stacks as `find` does; then all stacks are forgotten."""
        found = self.find(ids)
        self._words = self._ids = self._begins = None
        return found


def _shared(words: Words) -> list[int]:
    """Equal ones share an object, which takes four times as much as a reference to it: stacks have many frames, but
    not many different ones."""
    import numpy as np

    distinct, indices = np.unique(words, return_inverse=True)
    objects = np.array(distinct.tolist(), object)
    shared: list[int] = objects[indices].tolist()
    return shared


def _gathered(words: Words, places: NDArray[np.intp]) -> tuple[Words, NDArray[np.intp]]:
    """The records that begin at these places, one after the other, and where each begins now."""
    import numpy as np

    lengths = _HEAD + (words[places] >> np.uint64(32) & np.uint64(0xFFFF)).astype(np.intp)
    begins = np.cumsum(lengths) - lengths
    made = np.empty(int(lengths.sum()), np.uint64)
    for i in range(0, len(places), _SOME):  # piece by piece: the indices take as much as the words
        some = slice(i, i + _SOME)
        begin, count = int(begins[i]), int(lengths[some].sum())
        indices = np.repeat(places[some] - begins[some], lengths[some]) + np.arange(begin, begin + count)
        made[begin : begin + count] = words[indices]
    return made, begins


def _first(values: Words) -> NDArray[np.bool_]:
    """True for each of the ascending values that is not the one before."""
    import numpy as np

    first = np.ones(len(values), bool)
    first[1:] = values[1:] != values[:-1]
    return first


def _among(values: Words, others: Words) -> NDArray[np.bool_]:
    """True for each of the values that is among others, which ascend."""
    import numpy as np

    if not len(others):
        return np.zeros(len(values), bool)
    places = np.minimum(np.searchsorted(others, values), len(others) - 1)
    found: NDArray[np.bool_] = others[places] == values
    return found
