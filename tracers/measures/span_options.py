"""Choice of the calls that become spans on the timeline. Apart from `spans`, which needs numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from ...converters.base.units import duration, plural


class SpanOptions(NamedTuple):
    """``limit`` calls are kept, the ``newest`` or the ``first``, of those that took longer than ``over`` ns.
    ``buffer_bytes``: of kernel memory until they are read, a power of two."""

    limit: int
    kept: Literal["newest", "first"] = "newest"
    over: int = 0
    buffer_bytes: int = 16 << 20

    def remarks(self, what: str, short: int) -> Iterator[str]:
        """Says how many calls have no span. ``what``: one of them."""
        if short:
            yield f"the timeline has no span for {plural(short, what)} of at most {duration(self.over)} (--span-over)"
