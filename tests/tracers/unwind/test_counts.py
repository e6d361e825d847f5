from __future__ import annotations

from stallscope.tracers.unwind.counts import Counts


def test_notes() -> None:
    assert Counts().notes(0, 100) == []
    assert Counts(compiled=1).notes(9, 100) == [
        "9.0 % of the time in user code is in stacks cut short: unwind tables were still being compiled; run it again"
    ]
    left, uncached = Counts(compiled=1, unfinished=2, uncached="not cached: No space left on device").notes(1, 8)
    assert left.endswith("; run it again, or compile what is left (2 files) with `trace-doctor --prepare`")
    assert uncached == (
        "unwind tables had to be compiled, and will be the next time: not cached: No space left on device"
    )
    assert Counts(uncached="no cache: Read-only file system").notes(0, 1) == []
