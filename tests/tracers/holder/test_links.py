"""System calls that make links. With real calls: tests/live/test_cuda.py, test_any_library.py."""

from __future__ import annotations

import errno
import os

import pytest
from stallscope.tracers.holder import links
from stallscope.tracers.holder.links import Place, link_many, link_one


def test_layouts() -> None:
    """link_create.uprobe_multi.pid ends at 60, link_create.perf_event.bpf_cookie at 24; config2 at 72 of 112."""
    assert links.LINK_HEAD.size == 60
    assert links._OF_EVENT.size == 24
    assert links._EVENT.size == 112
    fields = links._EVENT.pack(1, 2, 3, 0x1122334455667788, 0x99)
    assert (fields[56:64], fields[64:72]) == ((0x1122334455667788).to_bytes(8, "little"), (0x99).to_bytes(8, "little"))


def test_an_error_of_the_kernel_is_one() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        links.bpf(links._ITER_CREATE, (1 << 20).to_bytes(4, "little") + bytes(4))
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        link_many(1 << 20, 48, b"/", [Place(0, 0)], 0)


@pytest.mark.parametrize("cookie", [0, 7])
def test_kernels_without_links_of_events(monkeypatch: pytest.MonkeyPatch, cookie: int) -> None:
    """The program goes to the event before 5.15, if it needs no cookie."""
    calls: list[tuple[int, int]] = []
    closed: list[int] = []

    def refuse(*_: object) -> int:
        raise OSError(errno.EINVAL, "no such link")

    monkeypatch.setattr(links, "_open_event", lambda *_: 50)
    monkeypatch.setattr(links, "bpf", refuse)
    monkeypatch.setattr(links.fcntl, "ioctl", lambda fd, *what: calls.append(what) if fd == 50 else None)
    monkeypatch.setattr(links.os, "close", closed.append)
    if cookie:
        with pytest.raises(OSError, match="no such link"):
            link_one(9, b"/x", Place(0, cookie), 0)
        assert (calls, closed) == ([], [50])
    else:
        assert link_one(9, b"/x", Place(0, cookie), 0) == [50]
        assert calls == [(links._SET_BPF, 9), (links._ENABLE, 0)]


def test_a_counter_and_a_return_are_in_the_event(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    monkeypatch.setattr(links, "_type", lambda: 8)
    monkeypatch.setattr(links, "_called", lambda number, attributes, *_: seen.append(attributes.raw) or 5)
    assert links._open_event(b"/x", Place(0x10, 0, 0x20), links.AT_RETURN) == 5
    assert seen[0][8:16] == (0x20 << 32 | 1).to_bytes(8, "little")
