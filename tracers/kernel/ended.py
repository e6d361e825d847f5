"""The accounts of threads that ended, packed, and sums of them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from ...converters.model.processes import LATENCY_BUCKETS
from ...converters.model.states import BLOCKED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FIRST, _TIME = struct.Struct("<I"), struct.Struct("<Q")
_END_OFFSET, _START_OFFSET, _EXITING_OFFSET, _FIRST_OFFSET, _MADE_IN_OFFSET = 8, 32, 435, 448, 512
"""Offsets of ``end``, and of the fields of ``thread`` with these names, in a struct thread_record."""


def record_type() -> np.dtype[Any]:
    """struct thread_record of bpf/include/records.h."""
    import numpy as np

    origin = [("ustack", "<u8"), ("kstack", "<u8"), ("object", "<u8"), *((name, "<u4") for name in _IDS)]
    return np.dtype(
        [
            ("type", "<u4"),
            ("cpu", "<u4"),
            ("end", "<u8"),
            ("comm", "S16"),
            *((name, "<u8") for name in ("start", "since", "out", "woken", "exec_runtime", "kernel_switches")),
            ("on_cpu", "<u8"),
            ("runnable", "<u8"),
            ("blocked", "<u8", _STATES),
            ("switches", "<u8"),
            ("latencies", "<u4", LATENCY_BUCKETS),
            ("key", origin),
            ("sum_key", origin),
            ("sum", "<u8", 7),
            *((name, "<u8") for name in ("late_out", "late_ustack", "cut", "lived")),
            *((name, "u1") for name in ("phase", "walk_end", "late_end", "exiting")),
            *((name, "<u4") for name in ("creator", "waker", "waker_cpu", "first", "interpreters")),
            *(
                (name, "<u8")
                for name in (
                    *("on_file", "on_mark", "on_object", "fault"),
                    *("inner_fault", "inner_regs", "inner_ip", "made_in"),
                )
            ),
        ]
    )


_IDS = ("tid", "tgid", "life", "state")
_STATES = len(BLOCKED) + 2
"""enum wait_state."""


class EndedThreads:
    """Records of exits, as they come; not parsed, for there may be very many."""

    def __init__(self) -> None:
        self._records: dict[tuple[int, int], bytes] = {}
        """Records by the thread's first life and the start of the account."""
        self._exiting: set[int] = set()

    def __len__(self) -> int:
        return len(self._records)

    def add(self, data: bytes) -> None:
        """Takes a record. One is sent when a thread begins to exit, and at its last switch another one, with more."""
        (first,) = _FIRST.unpack_from(data, _FIRST_OFFSET)
        (start,) = _TIME.unpack_from(data, _START_OFFSET)
        self._records[first, start] = data
        (self._exiting.add if data[_EXITING_OFFSET] else self._exiting.discard)(first)

    @property
    def exiting(self) -> int:
        """Number of threads that have begun to exit, and have not been switched out for the last time."""
        return len(self._exiting)

    def others(self, there: set[tuple[int, int]]) -> list[bytes]:
        """The records of threads that are not ``there``."""
        return [data for key, data in self._records.items() if key not in there]

    def split(self, boundary: int) -> EndedThreads:
        """Takes out those that ended at ``boundary`` or later."""
        later = EndedThreads()
        later._records = {k: data for k, data in self._records.items() if _end(data) >= boundary}
        later._exiting, self._exiting = self._exiting, set()
        self._records = {key: data for key, data in self._records.items() if key not in later._records}
        return later

    def processes(self) -> set[tuple[int, int]]:
        """The process id of each, and a time at which the process had it."""
        import numpy as np

        records = np.frombuffer(b"".join(self._records.values()), record_type())
        return set(zip(records["key"]["tgid"].tolist(), records["lived"].tolist(), strict=True))

    def made_in(self) -> set[int]:
        """Ids of the stacks in which they were created."""
        return {made_in for data in self._records.values() if (made_in := _TIME.unpack_from(data, _MADE_IN_OFFSET)[0])}

    def take_shortest(self, keep: int, before: int) -> NDArray[Any]:
        """Takes out all but the ``keep`` longest accounts; only those of threads that are gone, and that ended before
        ``before``. Fields as in `record_type`."""
        import numpy as np

        keys = [key for key, data in self._records.items() if key[0] not in self._exiting and _end(data) < before]
        records = np.frombuffer(b"".join([self._records[key] for key in keys]), record_type())
        if len(records) <= keep:
            return records[:0]
        order = np.argsort(records["end"] - records["start"], kind="stable")[: len(records) - keep]
        for i in order.tolist():
            del self._records[keys[i]]
        return records[order]


def _end(data: bytes) -> int:
    return int(_TIME.unpack_from(data, _END_OFFSET)[0])
