"""Links of as many functions as the kernel takes. With a real kernel: tests/live/test_any_library.py."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from stallscope.tracers.kernel import attaching
from stallscope.tracers.kernel.attaching import NO_TIME, NOT_SUPPORTED, Attached, attach_possible
from stallscope.tracers.kernel.bpfobject import Link
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.uprobes import Place, Way


class Kernel:
    """Refuses links with one of some places."""

    def __init__(self, refused: dict[int, int]) -> None:
        self.refused = refused
        self.attempts: list[list[int]] = []
        self.made: list[int] = []
        self.closed = 0

    def attach(self, _loaded: Any, _way: Way, _names: Any, _fd: int, places: Sequence[Place]) -> list[Link]:
        cookies = [place.cookie for place in places]
        self.attempts.append(cookies)
        for cookie in cookies:
            if cookie in self.refused:
                raise BpfError("attach uprobes", self.refused[cookie], [])
        self.made += cookies
        kernel = self

        class Made(Link):
            def close(self) -> None:
                kernel.closed += 1

        return [Made(0)]


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "x").write_bytes(bytes(4096))
    fd = os.open(tmp_path / "x", os.O_RDONLY)
    yield fd
    os.close(fd)


def attached(monkeypatch: pytest.MonkeyPatch, fd: int, kernel: Kernel, number: int, way: Way = Way.SESSION) -> Attached:
    monkeypatch.setattr(attaching, "attach", kernel.attach)
    loaded: Any = None
    return attach_possible(loaded, way, ("both", "enter", "return"), fd, [Place(16 * i, i) for i in range(number)])


def test_one_link_where_the_kernel_takes_all(monkeypatch: pytest.MonkeyPatch, fd: int) -> None:
    kernel = Kernel({})
    found = attached(monkeypatch, fd, kernel, 100)
    assert (len(found.links), found.refused, len(kernel.attempts)) == (1, {}, 1)


@pytest.mark.parametrize("refused", [{0}, {99}, {50, 51}, {0, 30, 60, 98, 99}])
def test_only_what_is_refused_is_left_out(monkeypatch: pytest.MonkeyPatch, fd: int, refused: set[int]) -> None:
    kernel = Kernel(dict.fromkeys(refused, NOT_SUPPORTED))
    found = attached(monkeypatch, fd, kernel, 100)
    assert {place.cookie: error for place, error in found.refused.items()} == kernel.refused
    assert sorted(kernel.made) == sorted(set(range(100)) - refused)
    assert len(kernel.attempts) < 16 * len(refused)
    assert len(found.links) < 8 * len(refused)


def test_single_events_are_not_made_again(monkeypatch: pytest.MonkeyPatch, fd: int) -> None:
    kernel = Kernel({3: 22})
    found = attached(monkeypatch, fd, kernel, 10, Way.SINGLE)
    assert [place.cookie for place in found.refused] == [3]
    assert kernel.attempts == [[i] for i in range(10)]


def test_a_file_that_is_refused_as_a_whole(monkeypatch: pytest.MonkeyPatch, fd: int) -> None:
    kernel = Kernel(dict.fromkeys(range(10), NOT_SUPPORTED))
    with pytest.raises(BpfError):
        attached(monkeypatch, fd, kernel, 10)


@pytest.mark.parametrize("number", [1, 12, 24])
def test_errors_that_are_not_of_a_function(monkeypatch: pytest.MonkeyPatch, fd: int, number: int) -> None:
    """EPERM, ENOMEM, EMFILE: it would be the same for others, and nothing stays attached."""
    kernel = Kernel({3: number})
    with pytest.raises(BpfError):
        attached(monkeypatch, fd, kernel, 10, Way.SINGLE)
    assert (kernel.made, kernel.closed) == ([0, 1, 2], 3)


def test_the_time_is_bounded(monkeypatch: pytest.MonkeyPatch, fd: int) -> None:
    """What is left when it is over has no probe, and is told."""
    kernel = Kernel(dict.fromkeys(range(0, 100, 2), NOT_SUPPORTED))
    clock = iter(range(1000))
    monkeypatch.setattr(attaching.time, "monotonic", lambda: next(clock) / 10)
    found = attached(monkeypatch, fd, kernel, 100)
    assert len(kernel.attempts) < 60
    assert set(found.refused.values()) == {NOT_SUPPORTED, NO_TIME}
    assert {place.cookie for place in found.refused} | set(kernel.made) == set(range(100))
