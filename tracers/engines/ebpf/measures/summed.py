"""Base of measures that sum by origin in tables of the kernel (`kernel.sum_table`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....kernel.bpfobject import Object
from ....kernel.records import ORIGIN
from ....kernel.sum_table import SumTable
from .protocol import Collector

if TYPE_CHECKING:
    import numpy as np

    from .totals import Totals


class Summed(Collector):
    """A measure with one map of tables. It can be used for several traces, one after the other."""

    table: str
    """The name of the map."""
    value_size: int
    """Bytes of the values of an origin, of 8 bytes each."""
    more: int = 0
    """Words of a key behind the origin."""
    weights: Sequence[int] = (0,)
    """See `Totals`."""
    _table: SumTable | None = None
    _totals: Totals | None = None

    def ways(self) -> Sequence[np.ufunc]:
        """See `Totals`."""
        raise NotImplementedError

    def open(self, loaded: Object, entries: int) -> None:
        size = ORIGIN.size + 8 * self.more
        self._table = SumTable(loaded, self.table, self.value_size, entries, key_size=size)
        self._totals, self.slot = None, 0

    def close(self) -> None:
        if self._table:
            self._table.close()

    def drain(self) -> None:
        assert self._table, "it was not opened"
        self.totals().add(*self._table.drain(self.slot))

    def totals(self) -> Totals:
        if self._totals is None:
            # numpy, which it needs, takes longer to import than the probes to attach.
            from .totals import Totals

            self._totals = Totals(self.ways(), self.weights, self.more)
        return self._totals

    def next(self) -> None:
        super().next()
        self.totals().clear()
