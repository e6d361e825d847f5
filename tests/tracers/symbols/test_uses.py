from __future__ import annotations

from stallscope.tracers.symbols.one import Process
from stallscope.tracers.symbols.uses import _PIDS, Uses


def test_each_pid_is_counted_for_itself() -> None:
    uses = Uses()
    assert uses.of(5) == 0
    uses.ended(Process(5, 5, life=3))
    uses.ended(Process(5, 5, life=2))
    assert (uses.of(5), uses.of(6)) == (3, 0)


def test_no_pid_of_a_kernel_is_that_large() -> None:
    uses = Uses()
    uses.ended(Process(_PIDS, _PIDS, life=3))
    assert uses.of(_PIDS) == 0
