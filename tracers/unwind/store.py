"""The kernel's memory of unwind tables: shards, tables and mappings, within a budget. Layout: bpf/include/unwind.h."""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, NamedTuple

from ..kernel.bpfmap import MappedArray
from ..kernel.libbpf import BpfError
from ..kernel.shared_memory import unmap
from .chunks import MAPPING_WORDS, SHARD_WORDS, TABLE_FIRST, Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..kernel.bpfobject import Object

_WORD = 8
_SHARD_BYTES = SHARD_WORDS * _WORD
_TABLE = [("index", "<u4"), ("pages", "<u4"), ("used", "<u4"), ("empty", "<u4")]
_SPACE = struct.Struct("<IIII")
_WANTED_TABLE = 1 << 32
_WORTH_IT = SHARD_WORDS // 4
"""Dropped words that are worth waiting for, rather than adding another shard."""
MAX_MAPPINGS = SHARD_WORDS // MAPPING_WORDS


class Wanted(NamedTuple):
    """Wants of walks: processes with unknown mappings, and tables that were not in memory."""

    pids: set[int]
    tables: set[int]


class _Block(NamedTuple):
    first: int
    words: int


class Store:
    """Written by one thread at a time. Memory that was replaced or dropped is reused once no walk can be reading it."""

    def __init__(self, loaded: Object, budget: int) -> None:
        """``budget`` is in bytes, rounded down to whole shards, but at least one."""
        import numpy as np

        self._shards_map = loaded.find_map("unwind_shards")
        self._spaces_map = loaded.find_map("unwind_spaces")
        self._wanted_map = loaded.find_map("unwind_wanted")
        tables = loaded.find_map("unwind_tables")
        self._memory = mmap.mmap(tables.fd, -(-tables.max_entries * 16 // mmap.PAGESIZE) * mmap.PAGESIZE)
        self._tables: NDArray[np.void] = np.frombuffer(self._memory, _TABLE)[: tables.max_entries]
        self._max_shards = min(max(budget // _SHARD_BYTES, 1), self._shards_map.max_entries)
        self._shards: list[NDArray[np.uint64]] = []
        self._arrays: list[MappedArray] = []
        self._holes: list[list[_Block]] = []
        self._dropped: list[_Block] = []
        self._blocks: dict[int, list[_Block]] = {}
        """Table number to its blocks."""
        self._free_tables = list(range(len(self._tables) - 1, TABLE_FIRST - 1, -1))
        self._spaces: dict[int, _Block] = {}
        self._versions = 0
        self.problem = ""
        """Reason why the rest of the budget is not available; "" if it is."""
        self._add_shard()  # takes milliseconds, too long for when the first program begins

    @property
    def bytes(self) -> int:
        """Kernel memory of the shards."""
        return len(self._shards) * _SHARD_BYTES

    @property
    def tables_in_memory(self) -> int:
        """Number of chunks whose rows are in memory."""
        return len(self._blocks)

    def new_table(self) -> int:
        """The number of a new table without rows; 0 when all numbers are used."""
        return self._free_tables.pop() if self._free_tables else 0

    def mark_empty(self, table: int) -> None:
        """Marks a table as having no rows, so that walks do not report it as missed."""
        self._tables[table]["empty"] = 1

    def fill(self, table: int, chunk: Chunk, used: int = 0) -> bool:
        """Loads a chunk's rows; ``used``: the epoch. False when there is no room."""
        import numpy as np

        blocks: list[_Block] = []
        index = chunk.first + (chunk.counts << np.uint64(32))
        for piece in chunk.pieces:
            block = self._allocate(len(piece.rows))
            if block is None:
                self._return(blocks)
                return False
            blocks.append(block)
            self._write(block, piece.rows)
            index[piece.first_page : piece.first_page + piece.pages] += np.uint64(block.first)
        block = self._allocate(len(index))
        if block is None:
            self._return(blocks)
            return False
        self._write(block, index)
        self._blocks[table] = [*blocks, block]
        self._tables[table]["index"] = block.first
        self._tables[table]["used"] = used
        self._tables[table]["pages"] = len(index)
        return True

    def is_filled(self, table: int) -> bool:
        """Whether its rows are in memory."""
        return table in self._blocks

    def empty(self, table: int) -> None:
        """Removes the table's rows from memory."""
        self._tables[table]["pages"] = 0
        self._dropped += self._blocks.pop(table, [])

    def oldest(self, count: int, epoch: int) -> list[int]:
        """Tables, up to ``count``, in the order of their last use, without those used in ``epoch``."""
        import numpy as np

        numbers = np.fromiter(self._blocks, np.int64, len(self._blocks))
        used = self._tables["used"][numbers]
        order = np.argsort(used, kind="stable")
        return [int(numbers[i]) for i in order[:count] if used[i] < epoch]

    def set_space(self, pid: int, entries: NDArray[np.uint64]) -> bool:
        """Sets the mappings of a process: rows of (start, bias, table), sorted. False when there is no room.

        Processes that do not fit into the kernel's map are not stored; `problem` says so.
        """
        entries = entries[:MAX_MAPPINGS]
        block = self._allocate(entries.size) if entries.size else _Block(0, 0)
        if block is None:
            return False
        if entries.size:
            self._write(block, entries.reshape(-1))
        self._versions += 1
        value = _SPACE.pack(block.first, len(entries), self._versions & 0xFFFFFFFF, 0)
        try:
            self._spaces_map.update(pid.to_bytes(4, "little"), value)
        except BpfError as error:
            self.problem = str(error)
            self._return([block] if block.words else [])
            return True
        self._retire(pid)
        self._spaces[pid] = block
        return True

    def drop_space(self, pid: int) -> None:
        """The process has exited."""
        self._spaces_map.delete(pid.to_bytes(4, "little"))
        self._retire(pid)

    def take_wanted(self) -> Wanted:
        """Returns what was missed since the last call."""
        wanted = Wanted(set(), set())
        for key, _ in self._wanted_map.items(1024):
            self._wanted_map.delete(key)
            number = int.from_bytes(key, "little")
            if number & _WANTED_TABLE:
                wanted.tables.add(number & 0xFFFFFFFF)
            else:
                wanted.pids.add(number)
        return wanted

    def settle(self) -> bool:
        """Makes dropped memory reusable; returns whether there was any.

        Takes milliseconds: a change of a map of maps waits until all programs that may have seen the old
        contents have ended.
        """
        if not self._dropped or not self._arrays:
            return False
        dropped, self._dropped = self._dropped, []
        self._put_shard(0)
        # A child uses the mappings that its parent had at the fork until the child's own are read.
        inherited = {_SPACE.unpack(value)[0] for _, value in self._spaces_map.items(1024)}
        free = [block for block in dropped if block.first not in inherited]
        self._dropped += [block for block in dropped if block.first in inherited]
        self._return(free)
        return bool(free)

    def close(self) -> None:
        """Releases the memory. The kernel's maps live as long as the object that they belong to."""
        self._shards.clear()
        for array in self._arrays:
            array.close()
        self._arrays.clear()
        self._holes.clear()
        self._max_shards = 0
        del self._tables
        unmap(self._memory)

    def _retire(self, pid: int) -> None:
        block = self._spaces.pop(pid, None)
        if block is not None and block.words:
            self._dropped.append(block)

    def _write(self, block: _Block, words: NDArray[np.uint64]) -> None:
        at = block.first % SHARD_WORDS
        self._shards[block.first // SHARD_WORDS][at : at + block.words] = words

    def _allocate(self, words: int) -> _Block | None:
        """First fit; a block never spans shards."""
        for holes in self._holes:
            for i, hole in enumerate(holes):
                if hole.words >= words:
                    rest = _Block(hole.first + words, hole.words - words)
                    holes[i : i + 1] = [rest] if rest.words else []
                    return _Block(hole.first, words)
        if words > SHARD_WORDS:
            return None
        full = len(self._shards) >= self._max_shards
        if sum(block.words for block in self._dropped) >= (1 if full else _WORTH_IT) and self.settle():
            return self._allocate(words)
        return self._allocate(words) if not full and self._add_shard() else None

    def _add_shard(self) -> bool:
        import numpy as np

        try:
            array = MappedArray("unwind_shard", _SHARD_BYTES)
        except (BpfError, OSError) as error:  # out of memory or descriptors
            self.problem = str(error)
            self._max_shards = len(self._shards)
            return False
        number = len(self._arrays)
        self._arrays.append(array)
        self._put_shard(number)
        if number:  # `settle` needs one
            array.release()
        self._shards.append(np.frombuffer(array.memory, np.uint64))
        self._holes.append([_Block(number * SHARD_WORDS, SHARD_WORDS)])
        return True

    def _put_shard(self, number: int) -> None:
        self._shards_map.update(number.to_bytes(4, "little"), self._arrays[number].fd.to_bytes(4, "little"))

    def _return(self, blocks: list[_Block]) -> None:
        for block in blocks:
            holes = self._holes[block.first // SHARD_WORDS]
            holes.append(block)
            holes.sort()
            merged: list[_Block] = []
            for hole in holes:
                if merged and merged[-1].first + merged[-1].words == hole.first:
                    merged[-1] = _Block(merged[-1].first, merged[-1].words + hole.words)
                else:
                    merged.append(hole)
            holes[:] = merged
