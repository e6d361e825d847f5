from __future__ import annotations

import pytest
from stallscope.converters.model.locks import CONTENDED, FUTEX, KERNEL, PROCESS, SIGNALLED, LockTimes


@pytest.mark.parametrize("kind", CONTENDED)
def test_waits_for_what_somebody_has_are_contention(kind: str) -> None:
    assert LockTimes("a", kind, PROCESS).is_contention is True


@pytest.mark.parametrize("kind", SIGNALLED)
def test_waits_to_be_told_are_not(kind: str) -> None:
    assert LockTimes("a", kind, PROCESS).is_contention is False


def test_what_is_not_known() -> None:
    assert LockTimes("a", FUTEX, PROCESS).is_contention is None
    assert LockTimes("a", "rwsem", KERNEL).is_contention is True
