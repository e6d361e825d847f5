"""BPF maps and ring buffers; keys and values are bytes."""

from __future__ import annotations

import ctypes
import errno
import itertools
import mmap
import os
from collections.abc import Callable, Iterator
from ctypes import byref, c_size_t, c_uint32

from .libbpf import MapOptions, RingCallback, check, check_pointer, library

_ARRAY, _MMAPABLE = 2, 1 << 10
"""BPF_MAP_TYPE_ARRAY and BPF_F_MMAPABLE of include/uapi/linux/bpf.h."""


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

    def items(self, batch: int = 4096) -> Iterator[tuple[bytes, bytes]]:
        """All (key, value) of a hash that is not modified meanwhile."""
        batch = min(batch, self.max_entries)
        while (found := self._read_batches(batch)) is None:
            batch *= 2
        yield from found

    def _read_batches(self, batch: int) -> list[tuple[bytes, bytes]] | None:
        """None: one of the kernel's hash buckets holds more than ``batch`` entries."""
        keys = ctypes.create_string_buffer(self.key_size * batch)
        values = ctypes.create_string_buffer(self.value_size * batch)
        cursor = ctypes.create_string_buffer(max(self.key_size, 8))
        found: list[tuple[bytes, bytes]] = []
        error = 0
        while not error:
            count = c_uint32(batch)
            begin = cursor if found else None
            error = library().bpf_map_lookup_batch(self.fd, begin, cursor, keys, values, byref(count), None)
            if error == -errno.ENOSPC:
                return None
            if error != -errno.ENOENT:  # that was the last batch
                check(error, f"map {self.name}")
            pairs = zip(_cut(keys.raw, self.key_size), _cut(values.raw, self.value_size), strict=True)
            found.extend(itertools.islice(pairs, count.value))
        return found


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
        """Unmaps the memory; the kernel may go on using the map. BufferError while the memory is in use."""
        self.memory.close()
        self.release()


def _cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[i : i + size] for i in range(0, len(data), size))


class RingBuffer:
    """A ring buffer whose records are passed to ``callback`` by `consume`."""

    def __init__(self, source: Map, callback: Callable[[bytes], None]) -> None:
        self._failure: BaseException | None = None

        def on_record(_context: int, data: int, size: int) -> int:
            try:
                callback(ctypes.string_at(data, size))
            except BaseException as error:  # must not cross C frames; raised again by consume()
                self._failure = error
                return -1
            return 0

        self._callback = RingCallback(on_record)
        self._pointer: int | None = check_pointer(
            library().ring_buffer__new(source.fd, self._callback, None, None), "ring buffer"
        )

    def consume(self) -> int:
        """Delivers the available records; returns how many."""
        count = int(library().ring_buffer__consume(self._pointer))
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return check(count, "ring buffer")

    def close(self) -> None:
        # Forgotten first: after a Ctrl-C in between, a second close must not free it again.
        pointer, self._pointer = self._pointer, None
        if pointer:
            library().ring_buffer__free(pointer)
