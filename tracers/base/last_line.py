"""Limit that holds if one of `budget` is wrong: the tracer itself ends, and nothing else on the host.

Its data have a limit, and the kernel's out-of-memory killer takes it before other programs. Neither applies to the
command that it starts.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

from ...converters.base.errors import StallscopeError
from ...converters.base.memory import most

_SCORE = 500
"""oom_score_adj of proc(5): the tracer counts as if it had half of the machine's memory besides."""
_ADJUSTMENT = Path("/proc/self/oom_score_adj")

_before: tuple[int, str] | None = None
"""Soft limit and adjustment of before, while this holds."""


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Holds inside. StallscopeError when memory is used up there."""
    global _before
    if _before is not None:
        yield
        return
    _before = _hold()
    try:
        yield
    except MemoryError:
        release()
        raise StallscopeError(
            "the tracer's memory is used up", "trace fewer processes, or for a shorter time; see --memory"
        ) from None
    finally:
        release()


def release() -> None:
    """Restores what was before. Also for a forked child that becomes another program."""
    global _before
    if _before is None:
        return
    soft, adjustment = _before
    _before = None
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (soft, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    with contextlib.suppress(OSError):
        _ADJUSTMENT.write_text(adjustment)


def _hold() -> tuple[int, str]:
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > most():
        resource.setrlimit(resource.RLIMIT_DATA, (most(), hard))
    adjustment = "0"
    with contextlib.suppress(OSError):
        adjustment = _ADJUSTMENT.read_text().strip()
        if int(adjustment) < _SCORE:
            _ADJUSTMENT.write_text(str(_SCORE))
    return soft, adjustment
