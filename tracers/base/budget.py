"""Limits of what is read of what others write: for one file, for one process, and for all.

Files, maps and names are hostile: none of them may take the tracer's time or memory without a limit. What exceeds one
is left out, counted, and named for the reader. The limits are several times what the largest files in use need:
libtorch_cpu.so of PyTorch 2.13 has 600,000 symbols, the names of which take 76 MB, and the longest of which has 1,466
bytes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...converters.base.errors import StallscopeError
from ...converters.base.text import printable
from ...converters.base.units import plural

SYMBOLS = 4_000_000
"""Symbols of all files together, kept at a time: each takes some 66 bytes."""
SECONDS, SHARE = 60.0, 0.25
"""CPU time that symbols of all files may take: so much, and this share of the time since the first one was read."""
_NAMED = 3


@contextmanager
def reading(path: str) -> Iterator[None]:
    """StallscopeError that names the file if memory is used up inside."""
    try:
        yield
    except MemoryError:
        raise StallscopeError(
            f"the tracer's memory is used up while {printable(path)} is read", "leave its process out of the trace"
        ) from None


class Limit:
    """A number of things that may be in use at a time."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0

    @property
    def left(self) -> int:
        """Number that may still be taken."""
        return self.most - self.used

    def take(self, number: int) -> bool:
        """Takes so many, or none if that is too much; returns which."""
        if number > self.left:
            return False
        self.used += number
        return True

    def give_back(self, number: int) -> None:
        """Gives back ``number``, which are in use no more."""
        self.used -= number


class Seconds:
    """CPU time of this thread that something may take, in all: a part of the time that passes is added."""

    def __init__(
        self,
        most: float = SECONDS,
        share: float = SHARE,
        clocks: tuple[Callable[[], float], Callable[[], float]] = (time.monotonic, time.thread_time),
    ) -> None:
        self._most, self._share = most, share
        self._now, self._cpu = clocks
        self._began: float | None = None
        self.used = 0.0

    @property
    def is_over(self) -> bool:
        """Whether nothing more may begin."""
        passed = 0.0 if self._began is None else self._now() - self._began
        return self.used > self._most + self._share * passed

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Counts what happens inside."""
        if self._began is None:
            self._began = self._now()
        begin = self._cpu()
        try:
            yield
        finally:
            self.used += self._cpu() - begin


class Readings:
    """Readings of the files of one trace."""

    def __init__(self, symbols: Limit | None = None, seconds: Seconds | None = None) -> None:
        self.symbols = symbols or Limit(SYMBOLS)
        self.seconds = seconds or Seconds()
        self.number = 0
        """Files of which something is left out."""
        self._left_out: dict[str, list[str]] = {}
        """Some of their names, by the reason."""
        self._numbers: dict[str, int] = {}

    def leave_out(self, path: str, why: str) -> None:
        """Something of a file is left out."""
        self.number += 1
        self._numbers[why] = self._numbers.get(why, 0) + 1
        names = self._left_out.setdefault(why, [])
        if len(names) < _NAMED:
            names.append(printable(os.path.basename(path)))

    def remarks(self) -> Iterator[str]:
        """Sentences for the reader."""
        for why, names in self._left_out.items():
            more = self._numbers[why] - len(names)
            shown = ", ".join(names) + (f" and {plural(more, 'other file')}" if more else "")
            yield f"symbols of {shown} are left out: {why}"
