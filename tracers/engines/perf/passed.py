"""Records that went to perf script: only these are believed in its text.

Symbols of programs stand in the text as they are, ends of lines included, so that a program's file can have lines that
look like samples of other processes. The process between perf record and perf script (`passing`) tells of each record
that it passes on, before perf script has it, and each is believed once.
"""

from __future__ import annotations

import struct

_NOTICE = struct.Struct("=BiiQ")
"""Type of the record (see `layouts`), pid, tid, time in ns: what tells a record from all others."""
_MOST = 1 << 20
"""Records that perf script has not printed; it has those of two rounds at a time."""


class Passed:
    """The records that perf script may still print."""

    def __init__(self) -> None:
        self._left: dict[bytes, int] = {}
        self._rest = b""

    def feed(self, data: bytes | bytearray) -> None:
        """Notices, as they come."""
        data, size, left = self._rest + data, _NOTICE.size, self._left
        whole = len(data) // size * size
        for at in range(0, whole, size):
            key = data[at : at + size]
            left[key] = left.get(key, 0) + 1
        self._rest = data[whole:]
        while len(left) > _MOST:
            del left[next(iter(left))]

    def take(self, kind: int, pid: int, tid: int, time: int) -> bool:
        """Whether such a record went to perf script and was not taken yet; now it is."""
        try:
            key = _NOTICE.pack(kind, pid, tid, time)
        except struct.error:
            return False
        number = self._left.pop(key, 0)
        if number > 1:
            self._left[key] = number - 1
        return number > 0
