"""Choice of how many calls are kept with their arguments."""

from __future__ import annotations

from typing import NamedTuple


class ArgumentOptions(NamedTuple):
    """The first ``limit`` calls are kept. ``buffer_bytes``: of kernel memory until they are read, a power of two."""

    limit: int = 2_000_000
    buffer_bytes: int = 16 << 20
