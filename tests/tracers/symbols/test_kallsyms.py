from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stallscope.converters.model import Module
from stallscope.tracers.symbols.kallsyms import KERNEL, Kallsyms

TEXT = b"""\
ffffffff81000000 T _stext
ffffffff81000000 T first
ffffffff81000000 t __pi__text
ffffffff81000100 T __sched_text_start
ffffffff81000100 t __schedule
ffffffff81000200 t local_one
ffffffff81000280 d data_in_text
ffffffff81000300 W weak_one
ffffffff81000300 T __ia32_sys_read
ffffffff81000300 T __x64_sys_read
ffffffff81000400 T last_one
ffffffff81000500 T _etext
ffffffff81900000 R __start_rodata
ffffffff81a00000 T init_function
ffffffffc0001000 t nv_open\t[nvidia]
ffffffffc0001100 t nv_close\t[nvidia]
ffffffffc0001200 d nv_data\t[nvidia]
ffffffffc0300000 t last_of_nvidia\t[nvidia]
ffffffffc0200ff0 t bpf_prog_6deef7357e7b4530_sd_fw\t[bpf]
ffffffffc0200000 t ftrace_trampoline\t[__builtin__ftrace]
0000000000000000 A absolute_zero
"""


def find(symbols: Kallsyms, *addresses: int) -> list[tuple[str, Module] | None]:
    return symbols.find(np.array(addresses, np.uint64))


def names(symbols: Kallsyms, *addresses: int) -> list[str | None]:
    return [found[0] if found else None for found in find(symbols, *addresses)]


K = 0xFFFFFFFF81000000
M = 0xFFFFFFFFC0000000


def test_bounds_and_kinds() -> None:
    symbols = Kallsyms(TEXT)
    assert not symbols.restricted
    assert names(symbols, K, K + 0xFF) == ["first", "first"]
    assert names(symbols, K + 0x100, K + 0x1FF) == ["__schedule", "__schedule"]
    assert names(symbols, K + 0x27F, K + 0x280, K + 0x2FF) == ["local_one", None, None]
    assert names(symbols, K + 0x300) == ["weak_one"]
    assert names(symbols, K + 0x4FF, K + 0x500, K - 1, 0, 5) == ["last_one", None, None, None, None]
    # Text outside [_stext, _etext), as freed init code, and user addresses.
    assert names(symbols, K + 0xA00000, K + 0x900000, 0x401000, 2**64 - 1) == [None] * 4


def test_modules() -> None:
    symbols = Kallsyms(TEXT)
    assert find(symbols, M + 0x1000, M + 0x11FF) == [
        ("nv_open", Module("nvidia.ko")),
        ("nv_close", Module("nvidia.ko")),
    ]
    assert names(symbols, M + 0x1200, M + 0x1300) == [None, None]
    # The last one of a module: at most to the end of its page.
    assert names(symbols, M + 0x300FFF, M + 0x301000) == ["last_of_nvidia", None]
    assert find(symbols, M + 0x200FF8) == [("bpf_prog_6deef7357e7b4530_sd_fw", Module("[bpf]"))]
    assert names(symbols, M + 0x201000) == [None]
    assert find(symbols, M + 0x200000) == [("ftrace_trampoline", Module("[__builtin__ftrace]"))]
    assert find(symbols, K) == [("first", KERNEL)]


def test_addresses_are_told_relative_to_what_they_are_in() -> None:
    text = b"ffffffff80ffff00 T _text\n" + TEXT + b"ffffffff82000000 B _end\n"
    addresses = np.array([K + 0x110, K + 0x900010, M + 0x1110, M + 0x1210, M + 0x201010, M + 0x200FF8, 5], np.uint64)
    told = [(place.name, place.address) for place in Kallsyms(text).places(addresses, 0)]
    assert told == [
        ("__schedule", 0x210),
        ("[kernel+0x900110]", 0x900110),
        ("nv_close", 0x110),
        ("[nvidia+0x210]", 0x210),
        ("[kernel]", 0),
        ("bpf_prog_6deef7357e7b4530_sd_fw", 8),
        ("[kernel]", 0),
    ]
    absolute = [place.address for place in Kallsyms(text, absolute=True).places(addresses, 0)]
    assert absolute == addresses.tolist()
    hidden = Kallsyms(b"0000000000000000 T _stext\n0000000000000000 T f\t[m]\n").places(addresses, 0)
    assert {(place.name, place.address) for place in hidden} == {("[kernel]", 0)}


def test_hidden_addresses_are_told() -> None:
    symbols = Kallsyms(b"0000000000000000 T _stext\n0000000000000000 T schedule\n0000000000000000 T _etext\n")
    assert symbols.restricted
    assert names(symbols, 0, 1, K) == [None, None, None]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"\n\n\n",
        b"x",
        b"short\n",
        b" T a\n",
        b"g" * 16 + b" T f\n",
        b"1" * 17 + b" T f\n",
        b"\xff" * 99 + b"\n",
    ],
)
def test_malformed_files_name_nothing(text: bytes) -> None:
    symbols = Kallsyms(text)
    assert names(symbols, 0, K) == [None, None]
    assert not symbols.restricted


def test_malformed_lines_are_left_out() -> None:
    good = b"ffffffff81000000 T _stext\nffffffff81000000 T f\nffffffff81000100 T _etext\n"
    bad = b"zzzzzzzzzzzzzzzz T g\nffffffff81000050 T\nffffffff81000060\nffffffff81000070xT h\n\n"
    assert names(Kallsyms(good + bad), K + 0x80) == ["f"]
    cut = Kallsyms(good + b"ffffffff810000")
    assert names(cut, K) == ["f"]


@pytest.fixture(scope="module")
def running(require: Callable[[bool, str], None]) -> tuple[Kallsyms, list[tuple[int, str, str]]]:
    text = Path("/proc/kallsyms").read_text()
    lines = [(int(f[0], 16), f[1], f[2]) for f in map(str.split, text.splitlines()) if len(f) == 3]
    symbols = Kallsyms(text.encode())
    require(bool(lines) and not symbols.restricted, "kernel addresses are hidden here")
    return symbols, lines


def test_running_kernel(running: tuple[Kallsyms, list[tuple[int, str, str]]]) -> None:
    symbols, lines = running
    start = next(a for a, _, n in lines if n == "_stext")
    end = next(a for a, _, n in lines if n == "_etext")
    by_address: dict[int, set[str]] = {}
    for address, kind, name in lines:
        by_address.setdefault(address, set())
        if kind in "tTwW" and start <= address < end:
            by_address[address].add(name)
    ordered = sorted(by_address)
    asked, truth = [], []
    for address, following in zip(ordered, [*ordered[1:], end], strict=True):
        if by_address[address]:
            asked += [address, (address + following) // 2, following - 1]
            truth += [by_address[address]] * 3
    assert len(asked) > 30_000
    for name, possible in zip(names(symbols, *asked), truth, strict=True):
        assert name in possible
    assert names(symbols, start - 1, end, 0x401000) == [None] * 3


def test_no_place_of_the_running_kernel_tells_where_it_is(running: tuple[Kallsyms, list[tuple[int, str, str]]]) -> None:
    symbols, lines = running
    every = np.array(sorted({address for address, _, _ in lines}), np.uint64)
    places = symbols.places(np.concatenate([every, every + np.uint64(1 << 20)]), 1)
    assert max(place.address for place in places) < 1 << 32
    assert not any("0xffff" in place.name for place in places)
    assert sum(place.address > 0 for place in places) > 30_000


def test_well_known_functions_win_over_markers(running: tuple[Kallsyms, list[tuple[int, str, str]]]) -> None:
    symbols, lines = running
    at = {name: address for address, _, name in lines}
    for name in ("schedule", "do_futex", "vfs_read"):
        if name in at:
            assert names(symbols, at[name] + 8) == [name]
