from __future__ import annotations

import errno
import os
import resource

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base import descriptors
from stallscope.tracers.base.descriptors import RESERVE, Budget

INFINITE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        (1024, 4096, [(4096, 4096)]),
        (1024, 1 << 20, [(1 << 16, 1 << 20)]),
        (1024, INFINITE, [(1 << 16, INFINITE)]),
        (1 << 18, 1 << 20, []),
        (4096, 4096, []),
        (INFINITE, INFINITE, []),
    ],
)
def test_limit_is_raised_and_never_lowered(
    soft: int, hard: int, expected: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: seen.append(limits))
    descriptors.allow_many()
    assert seen == expected


@pytest.fixture
def hundred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit of a hundred open files, of which ten are open."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 100))
    monkeypatch.setattr(os, "listdir", lambda _: ["x"] * 10)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)


def test_what_is_available(hundred: None) -> None:
    left = 100 - 10 - RESERVE
    assert descriptors.available() == left
    descriptors.require(left)
    with pytest.raises(StallscopeError) as caught:
        descriptors.require(left + 1)
    assert caught.value.cause == "only 100 files may be open at a time, and tracing needs 101"
    assert "`ulimit -n 65536`" in caught.value.remedy


def test_budget(hundred: None) -> None:
    budget = Budget()
    most = (100 - 10 - RESERVE - 8) // 2
    assert [budget.take() for _ in range(most + 1)] == [True] * most + [False]
    budget.give_back()
    assert budget.take()
    assert not budget.refused
    assert [budget.take_late() for _ in range(most + 1)] == [True] * most + [False]
    assert budget.refused == 1
    budget.give_back_late()
    assert budget.take_late()
    assert not Budget(0).take()
    assert Budget(0).take_late()


class Refused(StallscopeError):
    """Refusal as libbpf's."""

    number = errno.EMFILE


def wrapped() -> StallscopeError:
    error = StallscopeError("no program can be attached")
    error.__cause__ = Refused("x")
    return error


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "x"), Refused("x"), wrapped()])
def test_want_of_descriptors_is_told(error: Exception) -> None:
    with pytest.raises(StallscopeError, match="files are open, and no more may be"), descriptors.told():
        raise error


@pytest.mark.parametrize("error", [OSError(errno.EPERM, "x"), StallscopeError("x"), KeyboardInterrupt(), ValueError()])
def test_other_errors_stay(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, descriptors.told():
        raise error
    assert caught.value is error


@pytest.mark.parametrize("late", [False, True])
def test_a_user_takes_half_of_what_others_have_left(late: bool) -> None:
    """A user who maps very many files takes no room from others; root's own are not limited."""
    budget = Budget(64)
    budget._late = 64
    shares = {uid: budget.of(uid) for uid in (0, 1000, 1001)}

    def taken(uid: int) -> int:
        share = shares[uid]
        number = 0
        while share.take_late() if late else share.take():
            number += 1
        return number

    assert [taken(1000), taken(1001), taken(0)] == [32, 16, 16]
    (shares[1000].give_back_late if late else shares[1000].give_back)()
    assert [taken(1001), taken(0)] == [0, 1]
