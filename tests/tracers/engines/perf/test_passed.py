"""Records that went to perf script."""

from __future__ import annotations

import struct

import pytest
from stallscope.tracers.engines.perf import layouts
from stallscope.tracers.engines.perf import passed as passed_module
from stallscope.tracers.engines.perf.passed import Passed


def went(tid: int, kind: int = layouts.SAMPLE) -> tuple[int, int, int, int]:
    return kind, 7, tid, 2_000_000_000 + tid


@pytest.mark.parametrize("size", [1, 16, 17, 1000])
def test_notices_come_in_any_pieces(size: int) -> None:
    data = b"".join(struct.pack("=BiiQ", *went(tid)) for tid in (1, 2, 2, -1))
    passed = Passed()
    for at in range(0, len(data), size):
        passed.feed(data[at : at + size])
    assert [passed.take(*went(tid)) for tid in (2, 2, 2, 1, -1, 1)] == [True, True, False, True, True, False]
    assert not passed.take(layouts.SAMPLE, 1 << 40, 1, 1)
    assert not passed.take(layouts.SAMPLE, 7, 1, 1 << 64)


def test_records_that_are_never_printed_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passed_module, "_MOST", 4)
    passed = Passed()
    passed.feed(b"".join(struct.pack("=BiiQ", *went(tid)) for tid in range(10)))
    assert [tid for tid in range(10) if passed.take(*went(tid))] == [6, 7, 8, 9]
