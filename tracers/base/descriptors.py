"""Number of files that this process may have open: the limit, and the error if it is too low."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ...converters.base.errors import StallscopeError

_ENOUGH = 1 << 16
RESERVE = 40
"""Descriptors for files open briefly: /proc, tables from compiling processes, files read by ctypes and libbpf."""
REMEDY = (
    "allow more before it starts: `ulimit -n 65536` as root; LimitNOFILE= of a service, --ulimit nofile= of a container"
)


def limit() -> int:
    """Files that may be open at a time."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft


def allow_many() -> None:
    """Raises the limit as far as that needs no privilege: the mapped files of all processes are held open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def available() -> int:
    """Files that may still be opened, without `RESERVE`; 0 where that is used up."""
    return max(limit() - len(os.listdir("/proc/self/fd")) - RESERVE, 0)


def require(count: int) -> None:
    """StallscopeError unless so many files can be opened."""
    if available() < count:
        needed = count + len(os.listdir("/proc/self/fd")) + RESERVE
        raise StallscopeError(f"only {limit()} files may be open at a time, and tracing needs {needed}", REMEDY)


def exhausted() -> StallscopeError:
    """The error for EMFILE."""
    return StallscopeError(f"{limit()} files are open, and no more may be", REMEDY)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Turns any error caused by EMFILE into one that says so."""
    try:
        yield
    except (OSError, StallscopeError) as error:
        for reason in (error, error.__cause__):
            # System errors have errno, libbpf's have number.
            if errno.EMFILE in (getattr(reason, "errno", 0), getattr(reason, "number", 0)):
                raise exhausted() from error
        raise


class Budget:
    """Descriptors that are held for long: some for files while they are mapped, as many for files opened later.

    An ordinary user's files get at most half of what others have left: who maps very many takes no room from others.
    """

    def __init__(self, count: int | None = None) -> None:
        """``count`` is for mapped files; default: half of what is `available` beside one perf event per core."""
        half = max(available() - (os.cpu_count() or 1), 0) // 2
        self._left = half if count is None else count
        self._late = half
        self.refused = 0
        """Files that could not be opened for want of a descriptor."""
        self._of: Counter[int] = Counter()
        """Number of descriptors that a user has for mapped files, by uid."""
        self._late_of: Counter[int] = Counter()
        """Number of descriptors that a user has for files opened later, by uid."""

    def of(self, uid: int) -> Share:
        """Share of a user."""
        return Share(self, uid)

    def take(self, uid: int = 0) -> bool:
        """Takes one for a file while it is mapped, by a process of this user. False if there is none: the file may be
        opened later."""
        if _is_used_up(self._left, self._of[uid], uid):
            return False
        self._left -= 1
        self._of[uid] += 1
        return True

    def give_back(self, uid: int = 0) -> None:
        """Gives back one from `take`."""
        self._left += 1
        self._of[uid] -= 1

    def take_late(self, uid: int = 0) -> bool:
        """Takes one for a file that is opened when needed. False, and counted as refused, if there is none."""
        if _is_used_up(self._late, self._late_of[uid], uid):
            self.refused += 1
            return False
        self._late -= 1
        self._late_of[uid] += 1
        return True

    def give_back_late(self, uid: int = 0) -> None:
        """Gives back one from `take_late`."""
        self._late += 1
        self._late_of[uid] -= 1


class Share(NamedTuple):
    """Share of a budget that a user may have."""

    budget: Budget
    uid: int

    def take(self) -> bool:
        """See `Budget.take`."""
        return self.budget.take(self.uid)

    def give_back(self) -> None:
        """See `Budget.give_back`."""
        self.budget.give_back(self.uid)

    def take_late(self) -> bool:
        """See `Budget.take_late`."""
        return self.budget.take_late(self.uid)

    def give_back_late(self) -> None:
        """See `Budget.give_back_late`."""
        self.budget.give_back_late(self.uid)


def _is_used_up(left: int, own: int, uid: int) -> bool:
    """Whether a user who has ``own`` gets no more where so many are left."""
    return left <= 0 or (uid != 0 and own >= (left + own) / 2)
