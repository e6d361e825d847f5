"""Links of as many functions as the kernel takes. With a real kernel: tests/live/test_any_library.py."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from stallscope.tracers.holder import making
from stallscope.tracers.holder.links import Place
from stallscope.tracers.holder.making import NO_TIME, NOT_SUPPORTED, Made, make, make_possible

MULTI = 48


class Kernel:
    """Refuses links with one of some places."""

    def __init__(self, refused: dict[int, int]) -> None:
        self.refused = refused
        self.attempts: list[list[int]] = []
        self.made: list[int] = []
        self.closed = 0

    def make(self, _type: int, _steps: object, _fd: int, places: Sequence[Place]) -> list[int]:
        cookies = [place.cookie for place in places]
        self.attempts.append(cookies)
        for cookie in cookies:
            if cookie in self.refused:
                raise OSError(self.refused[cookie], "refused")
        self.made += cookies
        return [1000]

    def close(self, fds: Sequence[int]) -> None:
        self.closed += len(fds)


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "x").write_bytes(bytes(4096))
    fd = os.open(tmp_path / "x", os.O_RDONLY)
    yield fd
    os.close(fd)


def made(monkeypatch: pytest.MonkeyPatch, fd: int, kernel: Kernel, number: int, attach_type: int = MULTI) -> Made:
    monkeypatch.setattr(making, "make", kernel.make)
    monkeypatch.setattr(making, "close_all", kernel.close)
    steps = [(3, 0), (4, 1)]
    return make_possible(attach_type, steps, fd, [Place(16 * i, i) for i in range(number)], lambda: None)


def test_one_link_where_the_kernel_takes_all(monkeypatch: pytest.MonkeyPatch, fd: int) -> None:
    kernel = Kernel({})
    found = made(monkeypatch, fd, kernel, 100)
    assert (len(found.fds), found.refused, len(kernel.attempts)) == (1, {}, 1)


@pytest.mark.parametrize("refused", [{0}, {99}, {50, 51}, {0, 30, 60, 98, 99}])
def test_only_what_is_refused_is_left_out(monkeypatch: pytest.MonkeyPatch, fd: int, refused: set[int]) -> None:
    kernel = Kernel(dict.fromkeys(refused, NOT_SUPPORTED))
    found = made(monkeypatch, fd, kernel, 100)
    assert {place.cookie: error for place, error in found.refused.items()} == kernel.refused
    assert sorted(kernel.made) == sorted(set(range(100)) - refused)
    assert len(kernel.attempts) < 16 * len(refused)
    assert len(found.fds) < 8 * len(refused)


def test_single_events_are_not_made_again(monkeypatch: pytest.MonkeyPatch, fd: int) -> None:
    kernel = Kernel({3: 22})
    found = made(monkeypatch, fd, kernel, 10, attach_type=0)
    assert [place.cookie for place in found.refused] == [3]
    assert kernel.attempts == [[i] for i in range(10)]


def test_a_file_that_is_refused_as_a_whole(monkeypatch: pytest.MonkeyPatch, fd: int) -> None:
    kernel = Kernel(dict.fromkeys(range(10), NOT_SUPPORTED))
    with pytest.raises(OSError, match="refused"):
        made(monkeypatch, fd, kernel, 10)


@pytest.mark.parametrize("number", [1, 12, 24])
def test_errors_that_are_not_of_a_function(monkeypatch: pytest.MonkeyPatch, fd: int, number: int) -> None:
    """EPERM, ENOMEM, EMFILE: it would be the same for others, and nothing stays attached."""
    kernel = Kernel({3: number})
    with pytest.raises(OSError, match="refused"):
        made(monkeypatch, fd, kernel, 10, attach_type=0)
    assert (kernel.made, kernel.closed) == ([0, 1, 2], 3)


def test_the_time_is_bounded(monkeypatch: pytest.MonkeyPatch, fd: int) -> None:
    """Places that are left when it is over have no probe, and are told."""
    kernel = Kernel(dict.fromkeys(range(0, 100, 2), NOT_SUPPORTED))
    clock = iter(range(1000))
    monkeypatch.setattr(making.time, "monotonic", lambda: next(clock) / 10)
    found = made(monkeypatch, fd, kernel, 100)
    assert len(kernel.attempts) < 60
    assert set(found.refused.values()) == {NOT_SUPPORTED, NO_TIME}
    assert {place.cookie for place in found.refused} | set(kernel.made) == set(range(100))


def test_what_was_made_is_closed_if_the_rest_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Returns come first, and stay for none without an entry."""
    kernel = Kernel({})
    asked: list[tuple[int, int]] = []

    def link(program: int, attach_type: int, path: bytes, places: Sequence[Place], flags: int) -> int:
        assert (attach_type, path, len(places)) == (MULTI, b"/proc/self/fd/9", 1)
        asked.append((program, flags))
        if len(asked) == 2:
            raise OSError(22, "refused")
        return 1000

    monkeypatch.setattr(making, "link_many", link)
    monkeypatch.setattr(making, "close_all", kernel.close)
    with pytest.raises(OSError, match="refused"):
        make(MULTI, [(4, 1), (3, 0)], 9, [Place(0, 0)])
    assert (asked, kernel.closed) == ([(4, 1), (3, 0)], 1)
