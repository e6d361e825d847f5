"""The maps of the programs, read without calls that only newer kernels have."""

from __future__ import annotations

import ctypes
import errno
import time
from collections.abc import Iterator
from dataclasses import dataclass

from ...kernel.bpfmap import Hash
from ...kernel.bytecode import Kind, OwnMap
from ...kernel.libbpf import BpfError, check, library
from .layouts import (
    ACCOUNT_SIZE,
    CONTROL,
    ENDED_KEY_SIZE,
    NUMBER,
    PLACE_SIZE,
    STACK_SIZE,
    SUM_SIZE,
    Counter,
    KernelAccount,
    KernelPlace,
    WaitSum,
    ended_tid,
    frames,
)
from .source import MapNumber

_NO_EXIST = 1
"""BPF_NOEXIST of include/uapi/linux/bpf.h."""
_SETTLE = 0.02
"""Seconds after which no program uses the other tables any more: they run with interrupts off."""
_STACKS, _FEWEST = 8, 1 << 10
"""Number of waits that share a stack, as far as room goes; least number of stacks."""
_PARTS = 2
"""Tables are emptied when one of them is filled to one of so many parts."""
_ABSENT = (errno.EINVAL, 524)
"""Errors of kernels without the call, or without it for hashes (ENOTSUPP of include/linux/errno.h)."""

Pairs = Iterator[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Read:
    """Content of one table of each pair."""

    waits: list[tuple[KernelPlace, WaitSum]]
    samples: list[tuple[KernelPlace, int]]
    stacks: list[tuple[int, bytes]]
    """Ids, and addresses as in `layouts.frames`."""
    ended: list[tuple[int, KernelAccount]]
    """Accounts of threads that ended, by tid."""


class Tables:
    """All maps of a trace. `close` frees them."""

    def __init__(self, entries: int, *, waits: bool = True, samples: bool = True) -> None:
        """``entries`` of a table of waits, or of samples, if they are wanted. BpfError when the kernel has no room."""
        self._entries = entries
        self._waits, self._samples = entries if waits else 1, entries if samples else 1
        self._stacks = max(entries // _STACKS, _FEWEST)
        self._which = 0
        self._seen = dict.fromkeys(Counter, 0)
        self._maps: dict[MapNumber, Hash | OwnMap] = {}
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        make = self._maps.__setitem__
        make(MapNumber.CONTROL, OwnMap(Kind.ARRAY, "control", 4, CONTROL.size, 1))
        make(MapNumber.COUNTERS, OwnMap(Kind.ARRAY, "counters", 4, 8, len(Counter)))
        make(MapNumber.SCRATCH, OwnMap(Kind.PERCPU_ARRAY, "scratch", 4, STACK_SIZE, 2))
        make(MapNumber.THREADS, Hash("threads", 4, ACCOUNT_SIZE, self._entries))
        for kind, key, value, entries in (
            ("WAITS", PLACE_SIZE, SUM_SIZE, self._waits),
            ("SAMPLES", PLACE_SIZE, 8, self._samples),
            ("STACKS", 8, STACK_SIZE, self._stacks),
            ("ENDED", ENDED_KEY_SIZE, ACCOUNT_SIZE, self._stacks),
        ):
            for which in (0, 1):
                make(MapNumber[f"{kind}_{which}"], Hash(f"{kind.lower()}_{which}", key, value, entries))

    @property
    def descriptors(self) -> dict[int, int]:
        """Descriptors by number."""
        return {number.value: each.fd for number, each in self._maps.items()}

    def control(self, *, runs: bool, expected: int = 0) -> None:
        """Whether the programs run; ``expected``: a process that joins at its next exec."""
        self._write(MapNumber.CONTROL, bytes(4), CONTROL.pack(runs, self._which, expected, 0), 0)

    def seed(self, tid: int, account: bytes) -> bool:
        """Adds a thread, unless it is there already; returns whether it is new. BpfError without room."""
        fd = self._maps[MapNumber.THREADS].fd
        error = library().bpf_map_update_elem(fd, tid.to_bytes(4, "little"), account, _NO_EXIST)
        if error == -errno.EEXIST:
            return False
        check(error, "map threads")
        return True

    def counters(self) -> dict[Counter, int]:
        """Counters so far."""
        found = {}
        for each in Counter:
            value = ctypes.create_string_buffer(8)
            fd = self._maps[MapNumber.COUNTERS].fd
            check(library().bpf_map_lookup_elem(fd, each.to_bytes(4, "little"), value), "map counters")
            (found[each],) = NUMBER.unpack(value.raw)
        return found

    def is_filling(self, counters: dict[Counter, int]) -> bool:
        """Whether a table should be emptied."""
        sizes = {
            Counter.NEW_WAITS: self._waits,
            Counter.NEW_SAMPLES: self._samples,
            Counter.NEW_STACKS: self._stacks,
            Counter.NEW_ENDED: self._stacks,
        }
        return any(counters[each] - self._seen[each] > size // _PARTS for each, size in sizes.items())

    def take(self, *, runs: bool, expected: int = 0) -> Read:
        """Lets the programs fill the other tables, and empties those that they have filled."""
        self._seen = self.counters()
        old, self._which = self._which, 1 - self._which
        self.control(runs=runs, expected=expected)
        time.sleep(_SETTLE)
        waits = [(KernelPlace.unpack(key), WaitSum.unpack(value)) for key, value in self._taken("WAITS", old)]
        samples = [(KernelPlace.unpack(key), *NUMBER.unpack(value)) for key, value in self._taken("SAMPLES", old)]
        stacks = [(NUMBER.unpack(key)[0], _compact(value)) for key, value in self._taken("STACKS", old)]
        ended = [(ended_tid(key), KernelAccount.unpack(value)) for key, value in self._taken("ENDED", old)]
        return Read(waits, samples, stacks, ended)

    def threads(self) -> dict[int, KernelAccount]:
        """The threads that have not ended; afterwards there are none. The programs must not run."""
        pairs = _emptied(self._hash(MapNumber.THREADS), 4, ACCOUNT_SIZE)
        return {int.from_bytes(key, "little"): KernelAccount.unpack(value) for key, value in pairs}

    def _taken(self, kind: str, which: int) -> Pairs:
        key, value = {
            "WAITS": (PLACE_SIZE, SUM_SIZE),
            "SAMPLES": (PLACE_SIZE, 8),
            "STACKS": (8, STACK_SIZE),
            "ENDED": (ENDED_KEY_SIZE, ACCOUNT_SIZE),
        }[kind]
        return _emptied(self._hash(MapNumber[f"{kind}_{which}"]), key, value)

    def _hash(self, number: MapNumber) -> Hash:
        found = self._maps[number]
        assert isinstance(found, Hash)
        return found

    def _write(self, number: MapNumber, key: bytes, value: bytes, flags: int) -> None:
        check(library().bpf_map_update_elem(self._maps[number].fd, key, value, flags), f"map {number.name.lower()}")

    def close(self) -> None:
        """A second call does nothing."""
        for each in self._maps.values():
            each.close()


def _compact(value: bytes) -> bytes:
    """The addresses alone."""
    return value[8 : 8 + 8 * len(frames(value))]


def _emptied(table: Hash, key_size: int, value_size: int) -> Pairs:
    """The entries of a hash that no program uses; it is empty then."""
    try:
        keys, values = table.take()
    except BpfError as error:
        if error.number not in _ABSENT:
            raise
        yield from one_by_one(table.fd, key_size, value_size)
        return
    for i in range(len(keys) // key_size):
        yield keys[i * key_size : (i + 1) * key_size], values[i * value_size : (i + 1) * value_size]


def one_by_one(fd: int, key_size: int, value_size: int) -> Pairs:
    """Takes the pairs one by one, for kernels before 5.6."""
    key, value = ctypes.create_string_buffer(key_size), ctypes.create_string_buffer(value_size)
    # There is always a first one, until it is deleted.
    while library().bpf_map_get_next_key(fd, None, key) == 0:
        check(library().bpf_map_lookup_elem(fd, key, value), "map")
        check(library().bpf_map_delete_elem(fd, key), "map")
        yield key.raw, value.raw
