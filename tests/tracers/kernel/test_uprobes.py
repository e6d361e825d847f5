"""Ways in which programs get to functions. With real calls: tests/live/test_cuda.py."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

import pytest
from stallscope.tracers.base import privilege
from stallscope.tracers.holder.links import Place
from stallscope.tracers.kernel import uprobes
from stallscope.tracers.kernel.uprobes import Way, best_way


def kernel(monkeypatch: pytest.MonkeyPatch, *known: int, refuses: bool = False) -> None:
    """A kernel that knows these attach types."""

    def load(attach_type: int) -> int:
        if refuses:
            raise OSError(errno.EPERM, "no")
        return 100 + attach_type

    def link(program: int, attach_type: int, path: bytes, places: Sequence[Place], flags: int) -> int:
        assert (program, path, len(places), flags) == (100 + attach_type, b"/", 1, 0)
        raise OSError(errno.EBADF if attach_type in known else errno.EINVAL, "")

    monkeypatch.setattr(uprobes, "_load_nothing", load)
    monkeypatch.setattr(uprobes, "link_many", link)
    monkeypatch.setattr(uprobes.os, "close", lambda _: None)


@pytest.mark.parametrize(
    ("known", "way"), [((48, 57), Way.SESSION), ((48,), Way.MULTI), ((), Way.SINGLE), ((57,), Way.SESSION)]
)
def test_the_best_way(monkeypatch: pytest.MonkeyPatch, known: tuple[int, ...], way: Way) -> None:
    kernel(monkeypatch, *known)
    assert best_way() is way


def test_a_kernel_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel(monkeypatch, 48, 57, refuses=True)
    assert best_way() is Way.SINGLE


def test_this_kernel(require: Callable[[bool, str], None]) -> None:
    require(privilege.allowed(), "loading programs needs root")
    assert best_way() in Way


def test_layouts() -> None:
    """union bpf_attr: prog_load.expected_attach_type ends at 72."""
    assert uprobes._LOAD_HEAD.size == 72
