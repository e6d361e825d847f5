"""Programs at functions, by the process that holds the probes. With a real kernel: tests/live/test_any_library.py."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.tracers.holder.client import Withheld
from stallscope.tracers.holder.links import AT_RETURN, Place
from stallscope.tracers.kernel import attaching
from stallscope.tracers.kernel.attaching import WithheldError, attach_entry, attach_possible
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.uprobes import Way

PLACES = [Place(16, 1), Place(32, 2)]


class Holder:
    """Notes what it is asked for."""

    def __init__(self, error: OSError | None = None) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.closed: list[int] = []
        self._error = error

    def attach(self, *words: Any) -> tuple[int, dict[Place, int]]:
        if self._error:
            raise self._error
        self.asked.append(words)
        return 5, {PLACES[0]: errno.EINVAL}

    def close(self, key: int) -> None:
        self.closed.append(key)


class Loaded:
    """Three programs, with descriptors."""

    def __init__(self) -> None:
        self.programs = {name: SimpleNamespace(fd=fd) for name, fd in (("both", 10), ("enter", 11), ("return", 12))}

    def iterator(self, name: str) -> int:
        assert name == "scope_locked"
        return 20


def use(monkeypatch: pytest.MonkeyPatch, holder: Holder) -> Any:
    monkeypatch.setattr(attaching, "HOLDER", holder)
    return Loaded()


@pytest.mark.parametrize(
    ("way", "programs"),
    [
        (Way.SESSION, [(10, 0)]),
        (Way.MULTI, [(12, AT_RETURN), (11, 0)]),
        (Way.SINGLE, [(12, AT_RETURN), (11, 0)]),
    ],
)
def test_what_is_asked_for(monkeypatch: pytest.MonkeyPatch, way: Way, programs: Sequence[tuple[int, int]]) -> None:
    """Returns first: every call that is seen to begin is seen to end."""
    loaded = use(monkeypatch, holder := Holder())
    found = attach_possible(loaded, way, ("both", "enter", "return"), 0, PLACES)
    assert holder.asked == [(20, way.attach_type, programs, 0, PLACES)]
    assert found.refused == {PLACES[0]: errno.EINVAL}
    (link,) = found.links
    link.close()
    link.close()
    assert holder.closed == [5]


def test_programs_that_there_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = use(monkeypatch, holder := Holder())
    attach_possible(loaded, Way.MULTI, ("", "enter", ""), 0, PLACES)
    assert holder.asked[0][2] == [(11, 0)]


def test_one_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = use(monkeypatch, holder := Holder())
    attach_entry(loaded, "enter", 0, 0x40)
    assert holder.asked == [(20, 0, [(11, 0)], 0, [Place(0x40, 0)])]


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = use(monkeypatch, Holder(OSError(errno.EPERM, "no")))
    with pytest.raises(BpfError, match="Operation not permitted"):
        attach_entry(loaded, "enter", 0, 0)
    loaded = use(monkeypatch, Holder(Withheld([3])))
    with pytest.raises(WithheldError) as caught:
        attach_entry(loaded, "enter", 0, 0)
    assert caught.value.cause == "the kernel would wait for a process that keeps its address space locked"


def test_no_probe_on_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = use(monkeypatch, holder := Holder())
    monkeypatch.setattr(attaching, "is_copy", lambda fd: True)
    with pytest.raises(BpfError, match="ordinary user"):
        attach_possible(loaded, Way.MULTI, ("both", "enter", "return"), os.getpid(), PLACES)
    assert not holder.asked
