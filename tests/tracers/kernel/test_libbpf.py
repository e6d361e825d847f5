from __future__ import annotations

import ctypes
import errno
from typing import NoReturn

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.kernel import libbpf
from stallscope.tracers.kernel.libbpf import BpfError


def test_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, **_: object) -> NoReturn:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(libbpf, "_loaded", None)
    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(StallscopeError) as caught:
        libbpf.version()
    assert caught.value.cause == "libbpf.so.1 cannot be used: libbpf.so.1: cannot open shared object file"
    assert "apt-get install libbpf1" in caught.value.remedy


def test_library_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libbpf, "_loaded", None)
    monkeypatch.setitem(libbpf._SIGNATURES, "bpf_from_the_future", (None, []))
    with pytest.raises(StallscopeError, match="bpf_from_the_future"):
        libbpf.library()


def test_version() -> None:
    assert libbpf.version().startswith("v1.")
    assert libbpf.library() is libbpf.library()


def test_errors_name_the_reason() -> None:
    assert libbpf.check(3, "x") == libbpf.check_pointer(3, "x") == 3
    with pytest.raises(BpfError, match=r"^map x: Operation not permitted$"):
        libbpf.check(-errno.EPERM, "map x")
    with pytest.raises(BpfError, match=r"^object: Endian mismatch$"):
        libbpf.check(-4003, "object")
    ctypes.set_errno(0)
    with pytest.raises(BpfError, match=r"^thing: unknown error$"):
        libbpf.check_pointer(None, "thing")
