from __future__ import annotations

import os
from pathlib import Path

import pytest
from stallscope.tracers.base import fuse_servers
from stallscope.tracers.base.fuse_servers import served_by

ME = os.getpid()


def info(*texts: bytes | None, monkeypatch: pytest.MonkeyPatch, link: Path) -> None:
    """Descriptors of this path are the device, and have these fdinfos."""
    monkeypatch.setattr(fuse_servers, "LINK", str(link))
    monkeypatch.setattr(fuse_servers, "heads", lambda pids, _: {pid: list(texts) for pid in pids})


def test_connections_of_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fuse"
    info(b"pos:\t0\nfuse_connection:\t44\n", b"pos:\t0\n", None, monkeypatch=monkeypatch, link=path)
    assert served_by(ME) == set(), "it has no such descriptor"
    with path.open("w"):
        assert served_by(ME) == {44}
    assert served_by(1 << 30) == set()


@pytest.mark.parametrize("number", [b"", b"-1", b"x", b"99999999999", "\u0663".encode(), b"\xb2"])
def test_what_is_malformed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: bytes) -> None:
    path = tmp_path / "fuse"
    info(b"fuse_connection:\t" + number, monkeypatch=monkeypatch, link=path)
    with path.open("w"):
        assert served_by(ME) == set()
