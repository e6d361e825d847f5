"""Sums by origin, packed in arrays: what was taken out of the kernel's tables, added up."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernel.records import ORIGIN, OTHER_STACKS, Origin

Words = NDArray[np.uint64]
_KEY = ORIGIN.size // 8
"""Words of an origin: user stack, kernel stack, object, tid | tgid << 32, life | state << 32."""
_STACKS, _PLACE = 2, 3
"""Stacks, and with them what says where something happened."""
_OBJECT, _WHO, _WHERE = 2, 3, 4
_LOW = np.uint64(0xFFFFFFFF)
_PATIENCE = 1 << 14
"""Number of rows, at least, that wait to be added up."""
_MULTIPLIERS = np.array(
    [
        0x9E3779B97F4A7C15,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0xFF51AFD7ED558CCD,
        0xD6E8FEB86659FD93,
        0x27D4EB2F165667C5,
    ],
    np.uint64,
)


class Moved(NamedTuple):
    """Lives whose rows get other ids. Sorted by life."""

    lives: Words
    ids: Words
    """tid | tgid << 32"""
    to: Words
    """The life that they get."""
    bare: NDArray[np.bool_]
    """Whether they lose their stacks."""

    @classmethod
    def of(cls, moves: Mapping[int, tuple[int, int, bool]]) -> Moved:
        """``moves``: for each life its `ids`, `to` and `bare`."""
        lives = sorted(moves)
        ids, to, bare = zip(*(moves[life] for life in lives), strict=True) if moves else ((), (), ())
        return cls(np.array(lives, np.uint64), np.array(ids, np.uint64), np.array(to, np.uint64), np.array(bare, bool))


class Totals:
    """Rows of an origin and its sums."""

    def __init__(self, ways: Sequence[np.ufunc], weights: Sequence[int], more: int = 0) -> None:
        """``ways``: how each value of two rows of an origin becomes one: np.add, np.minimum or np.maximum.

        ``weights``: the values whose sum says how important a row is. ``more``: words of a key behind the origin, at
        most one.
        """
        self._ways, self._weights = tuple(ways), list(weights)
        self._key = _KEY + more
        self._width = self._key + len(self._ways)
        self._rows: Words = np.zeros((0, self._width), np.uint64)
        self._fresh: list[Words] = []

    def add(self, keys: bytes, values: bytes) -> None:
        """Adds what was taken out of a table: an `ORIGIN` and the values of each row."""
        self._add(np.hstack([_words(keys, self._key), _words(values, len(self._ways))]))

    def _add(self, rows: Words) -> None:
        self._fresh.append(rows)
        if sum(map(len, self._fresh)) >= max(len(self._rows), _PATIENCE):
            self._settle()

    def _settle(self) -> None:
        if self._fresh:
            self._rows = self._added_up(np.concatenate([self._rows, *self._fresh]))
            self._fresh = []

    def _added_up(self, rows: Words) -> Words:
        """Rows added up to one per origin."""
        if not len(rows):
            return rows
        key = self._key
        hashes = rows[:, :key] @ _MULTIPLIERS[:key]
        order = np.argsort(hashes)
        rows, hashes = rows[order], hashes[order]
        starts = _starts(rows[:, :key])
        # The rows of two origins with the same hash may lie mixed.
        if (hashes[starts[1:]] == hashes[starts[:-1]]).any():
            rows = rows[np.lexsort(rows[:, :key].T)]
            starts = _starts(rows[:, :key])
        made = rows[starts]
        for i, way in enumerate(self._ways, start=key):
            made[:, i] = way.reduceat(rows[:, i], starts)
        return made

    def __len__(self) -> int:
        """Rows, some of which may be of the same origin."""
        return len(self._rows) + sum(map(len, self._fresh))

    @property
    def bytes(self) -> int:
        return len(self) * self._width * 8

    def folded(self) -> int:
        """Number of rows if all were folded."""
        self._settle()
        rest = self._rows[:, _PLACE : self._key]
        return len(np.unique(rest @ _MULTIPLIERS[_PLACE : self._key]))

    def fold(self, keep: int) -> None:
        """Puts all rows but the ``keep`` heaviest together: one row per thread, address space and state."""
        self._settle()
        rows = self._rows
        if len(rows) <= keep:
            return
        weights = rows[:, [self._key + i for i in self._weights]].sum(axis=1, dtype=np.uint64)
        rare = rows[:, 0] == OTHER_STACKS
        rare[np.argpartition(weights, len(rows) - keep)[: len(rows) - keep] if keep else slice(None)] = True
        folded = rows[rare]
        folded[:, 0] = OTHER_STACKS
        folded[:, 1:_PLACE] = 0
        folded[:, _KEY : self._key] = 0
        self._rows = np.concatenate([rows[~rare], self._added_up(folded)])

    def move(self, moved: Moved) -> None:
        """Gives rows other ids, and adds up what is equal then."""
        self._settle()
        rows = self._rows
        if not len(rows) or not len(moved.lives):
            return
        lives = rows[:, _WHERE] & _LOW
        places = np.minimum(np.searchsorted(moved.lives, lives), len(moved.lives) - 1)
        hit = moved.lives[places] == lives
        places = places[hit]
        rows[hit, _WHO] = moved.ids[places]
        rows[hit, _WHERE] = rows[hit, _WHERE] & ~_LOW | moved.to[places]
        bare = np.flatnonzero(hit)[moved.bare[places]]
        rows[bare, 0] = OTHER_STACKS
        rows[bare, 1:_PLACE] = 0
        self._rows = self._added_up(rows)

    def stacks(self) -> Words:
        """The ids of all stacks; one may occur several times."""
        self._settle()
        found: Words = self._rows[:, :_STACKS].ravel()
        return found

    def more(self) -> Words:
        """Words behind the origins; one may occur several times."""
        self._settle()
        found: Words = self._rows[:, _KEY : self._key].ravel()
        return found

    def by_thread(self) -> Words:
        """The thread, the object, the word behind the origin, and the first value of each row."""
        self._settle()
        columns = self._rows[:, _WHO] & _LOW, self._rows[:, _OBJECT], self._rows[:, _KEY], self._rows[:, self._key]
        return np.stack(columns, axis=1)

    def clear(self) -> None:
        """Forgets all rows."""
        self._rows, self._fresh = self._rows[:0].copy(), []

    def take(self) -> Iterator[tuple[Origin, list[int]]]:
        """The origins with what is behind them in the key, and their values; they are forgotten."""
        self._settle()
        rows, self._rows = self._rows, self._rows[:0]
        parts = (rows[i : i + _PATIENCE].tolist() for i in range(0, len(rows), _PATIENCE))
        for row in itertools.chain.from_iterable(parts):
            ustack, kstack, on, who, where = row[:_KEY]
            low = 0xFFFFFFFF
            yield Origin(ustack, kstack, on, who & low, who >> 32, where & low, where >> 32), row[_KEY:]


def _words(data: bytes, width: int) -> Words:
    return np.frombuffer(data, np.uint64).reshape(-1, width)


def _starts(keys: Words) -> NDArray[np.intp]:
    """Indices where another key begins."""
    new = np.ones(len(keys), bool)
    new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return np.flatnonzero(new)


def fold_all(totals: Sequence[Totals], keep: int) -> None:
    """Folds the rarest rows, so that about ``keep`` are left in all."""
    count = sum(map(len, totals))
    shares = [keep * len(each) // max(count, 1) for each in totals]
    if count > keep:
        for each, share in zip(totals, shares, strict=True):
            each.fold(share)
