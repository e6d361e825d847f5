"""Sums by origin in the kernel, which are taken out while programs go on adding to them."""

from __future__ import annotations

from .bpfmap import Hash
from .bpfobject import Object
from .records import ORIGIN

SLOTS = 2
"""SUM_TABLES of bpf/include/maps.bpf.h."""


class SumTable:
    """A map of maps whose inner maps are hashes, by `ORIGIN` or something else."""

    def __init__(
        self, loaded: Object, name: str, value_size: int, entries: int, *, key_size: int = ORIGIN.size
    ) -> None:
        """Gives the map ``name`` tables of so many ``entries``. BpfError when the kernel has no room."""
        self._outer = loaded.find_map(name)
        self._name, self._key_size, self._value_size, self._entries = name, key_size, value_size, entries
        self._tables: list[Hash] = []
        self._spare: Hash | None = None
        for slot in range(SLOTS):
            self._tables.append(self._new())
            self._put(slot)

    def _new(self) -> Hash:
        return Hash(self._name, self._key_size, self._value_size, self._entries)

    def _put(self, slot: int) -> None:
        """Puts the table into its slot. When it returns, no program uses another table of this slot (1ae80cf31938,
        4.20)."""
        self._outer.update(slot.to_bytes(4, "little"), self._tables[slot].fd.to_bytes(4, "little"))

    def drain(self, slot: int) -> tuple[bytes, bytes]:
        """Takes out the keys and the values of all sums; programs may be running."""
        old = self._tables[slot]
        self._tables[slot] = self._spare or self._new()
        self._spare = old
        self._put(slot)
        return old.take()

    def peek(self, slot: int) -> list[tuple[bytes, bytes]]:
        """Key and value of all sums, which stay; programs may be running."""
        return self._tables[slot].items()

    def close(self) -> None:
        """Closes the descriptors; the programs may go on."""
        for table in (*self._tables, *([self._spare] if self._spare else [])):
            table.close()
