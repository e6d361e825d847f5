from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stallscope.tracers.images.maps import Mapping, read_maps
from stallscope.tracers.images.vdso import special_name


@pytest.fixture
def vdso() -> Mapping:
    return next(m for m in read_maps(os.getpid()) if m.path == "[vdso]")


def test_functions_of_the_vdso(
    vdso: Mapping, tmp_path: Path, nm: Callable[..., list[tuple[int, int, str, str]]]
) -> None:
    image = tmp_path / "vdso.so"
    image.write_bytes(ctypes.string_at(vdso.start, vdso.end - vdso.start))
    symbols = nm(image, "-D", "--defined-only")
    assert any(name == "__vdso_clock_gettime" for *_, name in symbols)
    for value, size, _, _ in symbols:
        possible = {n for v, s, _, n in symbols if v <= value < v + s}
        for offset in (value, value + size - 1):
            assert special_name(vdso, vdso.start + offset)[1] in possible
        assert special_name(vdso, vdso.start + value)[0] == value


def test_headers_of_the_vdso_have_no_name(vdso: Mapping) -> None:
    assert special_name(vdso, vdso.start) == (0, None)
    assert special_name(vdso, vdso.end - 1)[1] is None


def test_another_vdso_is_not_ours(vdso: Mapping) -> None:
    addresses = np.arange(vdso.start, vdso.end, 16)
    named = next(int(a) for a in addresses if special_name(vdso, int(a))[1])
    longer = vdso._replace(end=vdso.end + 4096)
    assert special_name(longer, named)[1] is None
    low = vdso._replace(start=0xF7FC0000, end=0xF7FC0000 + vdso.end - vdso.start)
    assert special_name(low, low.start + named - vdso.start)[1] is None


@pytest.mark.parametrize(
    ("offset", "name"),
    [(0, "gettimeofday"), (9, "gettimeofday"), (10, None), (0x400, "time"), (0x800, "getcpu"), (0xC00, None)],
)
def test_vsyscalls(offset: int, name: str | None) -> None:
    page = Mapping(0xFFFFFFFFFF600000, 0xFFFFFFFFFF601000, 0, "[vsyscall]")
    assert special_name(page, page.start + offset) == (offset, name)
