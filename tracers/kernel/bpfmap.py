"""BPF maps and ring buffers; keys and values are bytes."""

from __future__ import annotations

import ctypes
import errno
import itertools
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from ctypes import byref, c_size_t, c_uint32
from typing import Protocol

from .libbpf import MapOptions, check, check_pointer, library
from .shared_memory import store_u64, unmap

_BUSY, _DISCARDED = 1 << 31, 1 << 30
"""BPF_RINGBUF_BUSY_BIT and BPF_RINGBUF_DISCARD_BIT, of the length with which a record begins."""
_HEAD, _POSITION = struct.Struct("I"), struct.Struct("Q")
"""Native, so that each is read as a whole."""
_STEP = 1 << 16
"""Bytes after which the kernel is told that they were read."""
_BATCH = 1 << 14
"""More entries than the kernel has in one bucket of a hash."""
_HASH, _ARRAY, _MMAPABLE = 1, 2, 1 << 10
"""BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_ARRAY and BPF_F_MMAPABLE of include/uapi/linux/bpf.h."""


class Map:
    """One BPF map; keys and values are bytes."""

    def __init__(self, pointer: int, name: str) -> None:
        self._pointer = pointer
        self.name = name
        self.key_size: int = library().bpf_map__key_size(pointer)
        self.value_size: int = library().bpf_map__value_size(pointer)

    @property
    def fd(self) -> int:
        return int(library().bpf_map__fd(self._pointer))

    @property
    def max_entries(self) -> int:
        return int(library().bpf_map__max_entries(self._pointer))

    def set_max_entries(self, count: int) -> None:
        check(library().bpf_map__set_max_entries(self._pointer, count), f"map {self.name}")

    def set_autocreate(self, wanted: bool) -> None:
        check(library().bpf_map__set_autocreate(self._pointer, wanted), f"map {self.name}")

    def memory(self) -> ctypes.Array[ctypes.c_char]:
        """The initial value of a global-data map (.rodata, .bss)."""
        size = c_size_t()
        address = library().bpf_map__initial_value(self._pointer, byref(size))
        return (ctypes.c_char * size.value).from_address(check_pointer(address, f"memory of {self.name}"))

    def update(self, key: bytes, value: bytes) -> None:
        check(library().bpf_map_update_elem(self.fd, key, value, 0), f"map {self.name}")

    def delete(self, key: bytes) -> None:
        """Deletes an entry; no error when there is none."""
        error = library().bpf_map_delete_elem(self.fd, key)
        if error != -errno.ENOENT:
            check(error, f"map {self.name}")

    def lookup(self, key: bytes) -> bytes | None:
        """The value, or None. Not for per-CPU maps."""
        value = ctypes.create_string_buffer(self.value_size)
        return value.raw if library().bpf_map_lookup_elem(self.fd, key, value) == 0 else None

    def lookup_percpu_u64(self, index: int) -> int:
        """Sum over the CPUs of entry ``index`` of a per-CPU array of u64."""
        cpus = check(library().libbpf_num_possible_cpus(), "number of cores")
        values = ctypes.create_string_buffer(8 * cpus)
        check(library().bpf_map_lookup_elem(self.fd, index.to_bytes(4, "little"), values), f"map {self.name}")
        return sum(memoryview(values.raw).cast("Q"))

    def take_percpu(self, index: int) -> list[bytes]:
        """The values of entry ``index`` of a per-CPU array, one for each CPU; they are set to 0. No program may use the
        entry meanwhile."""
        found = self.percpu(index)
        if any(map(any, found)):
            self.update(index.to_bytes(4, "little"), bytes(-(-self.value_size // 8) * 8 * len(found)))
        return found

    def percpu(self, index: int) -> list[bytes]:
        """The values of entry ``index`` of a per-CPU array, one for each CPU."""
        cpus = check(library().libbpf_num_possible_cpus(), "number of cores")
        size = -(-self.value_size // 8) * 8
        values = ctypes.create_string_buffer(size * cpus)
        check(library().bpf_map_lookup_elem(self.fd, index.to_bytes(4, "little"), values), f"map {self.name}")
        return [part[: self.value_size] for part in _cut(values.raw, size)]

    def clear(self) -> None:
        """Deletes the entries of a hash. Those that programs add meanwhile may stay."""
        for _ in _batches(self.fd, self.name, self.key_size, self.value_size, _BATCH):
            pass

    def take(self) -> list[tuple[bytes, bytes]]:
        """Deletes the entries of a hash, and returns (key, value) of each. What programs add meanwhile may stay."""
        batches = list(_batches(self.fd, self.name, self.key_size, self.value_size, _BATCH))
        return [
            pair
            for keys, values in batches
            for pair in zip(_cut(keys, self.key_size), _cut(values, self.value_size), strict=True)
        ]

    def items(self, batch: int = 4096) -> Iterator[tuple[bytes, bytes]]:
        """All (key, value) of a hash that is not modified meanwhile."""
        batch = min(batch, self.max_entries)
        while (found := _read_batches(self.fd, self.name, (self.key_size, self.value_size), batch)) is None:
            batch *= 2
        yield from found


class Hash:
    """A preallocated hash that is not part of an object; used as an inner map of a map of maps."""

    def __init__(self, name: str, key_size: int, value_size: int, entries: int) -> None:
        """BpfError when the kernel has no room."""
        created = library().bpf_map_create(_HASH, name.encode(), key_size, value_size, entries, None)
        self.fd: int = check(created, f"map {name}")
        self._name, self._key_size, self._value_size, self._entries = name, key_size, value_size, entries

    def take(self) -> tuple[bytes, bytes]:
        """Deletes all entries, and returns their keys and their values. No program may use it meanwhile."""
        batches = list(_batches(self.fd, self._name, self._key_size, self._value_size, _BATCH))
        return b"".join(keys for keys, _ in batches), b"".join(values for _, values in batches)

    def items(self) -> list[tuple[bytes, bytes]]:
        """All (key, value). Of those that programs add meanwhile, some may be missing."""
        sizes, batch = (self._key_size, self._value_size), min(_BATCH, self._entries)
        while (found := _read_batches(self.fd, self._name, sizes, batch)) is None:
            batch *= 2
        return found

    def close(self) -> None:
        """Closes the descriptor; the kernel may go on using the map."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


def _read_batches(fd: int, name: str, sizes: tuple[int, int], batch: int) -> list[tuple[bytes, bytes]] | None:
    """Entries of a hash with keys and values of these ``sizes``. None: one of the kernel's hash buckets holds more than
    ``batch``."""
    keys, values = (ctypes.create_string_buffer(size * batch) for size in sizes)
    cursor = ctypes.create_string_buffer(max(sizes[0], 8))
    found: list[tuple[bytes, bytes]] = []
    error = 0
    while not error:
        count = c_uint32(batch)
        begin = cursor if found else None
        error = library().bpf_map_lookup_batch(fd, begin, cursor, keys, values, byref(count), None)
        if error == -errno.ENOSPC:
            return None
        if error != -errno.ENOENT:  # that was the last batch
            check(error, f"map {name}")
        pairs = zip(_cut(keys.raw, sizes[0]), _cut(values.raw, sizes[1]), strict=True)
        found.extend(itertools.islice(pairs, count.value))
    return found


def _batches(fd: int, name: str, key_size: int, value_size: int, batch: int) -> Iterator[tuple[bytes, bytes]]:
    """Deletes the entries of a hash, and returns their keys and values, so many at a time."""
    keys = ctypes.create_string_buffer(key_size * batch)
    values = ctypes.create_string_buffer(value_size * batch)
    cursor = ctypes.create_string_buffer(max(key_size, 8))
    begin, error = None, 0
    while not error:
        count = c_uint32(batch)
        error = library().bpf_map_lookup_and_delete_batch(fd, begin, cursor, keys, values, byref(count), None)
        if error != -errno.ENOENT:  # that was the last batch
            check(error, f"map {name}")
        begin = cursor
        yield ctypes.string_at(keys, count.value * key_size), ctypes.string_at(values, count.value * value_size)


class MappedArray:
    """An array map with one value that user space accesses as memory; used as an inner map of a map of maps."""

    def __init__(self, name: str, size: int) -> None:
        """``size`` of the value in bytes, a multiple of the page size. BpfError when the kernel has no room."""
        options = MapOptions(sz=ctypes.sizeof(MapOptions), map_flags=_MMAPABLE)
        created = library().bpf_map_create(_ARRAY, name.encode(), 4, size, 1, byref(options))
        self.fd: int = check(created, f"map {name}")
        try:
            self.memory = mmap.mmap(self.fd, size)
        except OSError:
            os.close(self.fd)
            raise

    def release(self) -> None:
        """Closes the descriptor; the memory stays mapped."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def close(self) -> None:
        """Unmaps the memory; the kernel may go on using the map."""
        unmap(self.memory)
        self.release()


def _cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[i : i + size] for i in range(0, len(data), size))


class Ring(Protocol):
    """A map that is a ring buffer."""

    @property
    def fd(self) -> int: ...

    @property
    def max_entries(self) -> int: ...


class RingBuffer:
    """A ring buffer whose records are passed to ``callback`` by `consume`.

    Layout: Documentation/bpf/ringbuf.rst. Read without libbpf, whose callback would cost more than all else.
    """

    def __init__(self, source: Ring, callback: Callable[[bytes], None]) -> None:
        self._callback = callback
        self._size = source.max_entries
        page = mmap.PAGESIZE
        self._consumer = mmap.mmap(source.fd, page)
        # The producer's page, then the data twice: no record is cut in two.
        self._memory = mmap.mmap(source.fd, page + 2 * self._size, prot=mmap.PROT_READ, offset=page)
        self._position = 0

    def consume(self) -> int:
        """Delivers the available records; returns how many. An exception of the callback takes its record away."""
        count, memory, mask = 0, self._memory, self._size - 1
        begin = mmap.PAGESIZE
        head = _HEAD.unpack_from
        position = self._position
        try:
            (end,) = _POSITION.unpack_from(memory)
            while position < end:
                place = begin + (position & mask)
                (length,) = head(memory, place)
                if length & _BUSY:
                    break
                size = length & ~_DISCARDED
                position += size + 15 & ~7  # with its head of 8 bytes, a multiple of 8
                if size == length:
                    count += 1
                    self._callback(memory[place + 8 : place + 8 + size])
                if position - self._position >= _STEP:
                    self._tell(position)
        finally:
            self._tell(position)
        return count

    def _tell(self, position: int) -> None:
        """Gives the kernel the room of what was read."""
        self._position = position
        store_u64(self._consumer, 0, position)

    def close(self) -> None:
        """Unmaps it; a second call does nothing."""
        unmap(self._memory)
        unmap(self._consumer)
