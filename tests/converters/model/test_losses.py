from __future__ import annotations

from stallscope.converters.model.losses import divided, is_incomplete


def test_what_is_missing_and_what_is_only_not_complete() -> None:
    lost = {"events": 2, "ns of events": 7, "stacks not complete: no unwind table": 3, "frames without a name": 1}
    lost["x"] = 0
    assert divided(lost) == ({"events": 2}, {"stacks not complete: no unwind table": 3, "frames without a name": 1})
    assert is_incomplete("stacks cut short")
    assert not is_incomplete("stacks")
