"""Files that an attacker made to take the tracer's time or memory: what is read of them has limits."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest
from forged_elf import STRTAB, elf, with_symbols
from stallscope.tracers.cpython.runtime import find_runtime
from stallscope.tracers.images import data_symbols, functions, symtab
from stallscope.tracers.images import elf as module
from stallscope.tracers.images.elf import BytesSource, ElfError, ElfFile, TooMuch
from stallscope.tracers.images.symtab import Bounds, SymbolTable
from stallscope.tracers.images.usdt import usdt_probes

NAMES = b"\0function\0"


class Counted(BytesSource):
    """Counts the bytes that are read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.bytes = self.most = 0

    def read(self, offset: int, size: int) -> bytes:
        self.bytes += size
        self.most = max(self.most, size)
        return super().read(offset, size)


def opened(data: bytes) -> ElfFile:
    return ElfFile(BytesSource(data))


USES: dict[str, Callable[[ElfFile], object]] = {
    "symbols": lambda file: SymbolTable([file], Bounds.none),
    "functions": functions.function_names,
    "wanted functions": lambda file: functions.find_functions(file, lambda _: True, 8),
    "variables": lambda file: data_symbols.variable_at(file, 0x400000),
    "Python": lambda file: find_runtime(file, "libpython3.11.so"),
}


@pytest.mark.parametrize("use", USES)
def test_any_number_of_symbol_tables(use: str) -> None:
    """The tables can all have the same symbols and names: 64 bytes of the file cost a whole table each time."""
    USES[use](opened(with_symbols(10, NAMES)))
    for tables in (2, 8000):
        with pytest.raises(TooMuch, match="more than one symbol table of a kind"):
            USES[use](opened(with_symbols(10, NAMES, tables=tables)))


@pytest.mark.parametrize("use", USES)
def test_too_many_symbols(use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SYMBOLS", 1000)
    USES[use](opened(with_symbols(1000, NAMES)))
    if use != "Python":  # nothing is read of symbols without the names
        with pytest.raises(TooMuch, match="symbols"):
            USES[use](opened(with_symbols(1001, NAMES)))


def test_too_many_symbols_of_all_tables() -> None:
    file = opened(with_symbols(1000, NAMES))
    assert SymbolTable([file], Bounds.none, 1000).size == 1000
    with pytest.raises(TooMuch, match="over 999 symbols"):
        SymbolTable([file], Bounds.none, 999)


def test_headers() -> None:
    opened(elf([], segments=128))
    opened(elf([(b"", STRTAB, b"", 0, 0)] * 8000))
    with pytest.raises(ElfError, match="program headers"):
        opened(elf([], segments=129))
    with pytest.raises(ElfError, match="section headers"):
        opened(elf([(b"", STRTAB, b"", 0, 0)] * 8192))


def test_overlapping_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each symbol's name begins one byte behind the one before, and ends where all end: 4 GB out of 100 KB."""
    monkeypatch.setattr(functions, "_MAX_KEPT", 8 << 20)
    names = b"\0" + b"f" * 60_000 + b"\0"
    source = Counted(with_symbols(60_000, names, at=1 + np.arange(60_000)))
    with pytest.raises(TooMuch, match="names of its functions take over 8 MB"):
        functions.function_names(ElfFile(source))
    with pytest.raises(TooMuch, match="names of its functions take over 8 MB"):
        functions.find_functions(ElfFile(source), lambda _: True, 0)
    assert source.bytes < 10 << 20


def test_names_that_nobody_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_MAX_NAMES", 8 << 20)
    names = b"\0" + b"f" * 60_000 + b"\0"
    with pytest.raises(TooMuch, match="names of its functions have over 8 MB"):
        functions.find_functions(opened(with_symbols(1000, names)), lambda _: False, 0)


def test_a_name_is_bounded() -> None:
    """One of 10 MB that many symbols share."""
    source = Counted(
        with_symbols(1000, b"\0" + b"f" * (10 << 20) + b"\0good\0", at=np.arange(1000) % 2 * ((10 << 20) + 1) + 1)
    )
    file = ElfFile(source)
    assert functions.function_names(file) == ["good"]
    assert source.most <= functions._PIECE + module.MAX_NAME


def test_names_of_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many functions has the same long name, which is read for each."""
    monkeypatch.setattr(symtab, "_MAX_READ", 1 << 20)
    source = Counted(with_symbols(4000, b"\0" + b"f" * 60_000 + b"\0"))
    table = SymbolTable([ElfFile(source)], Bounds.none)
    found = table.find(0x400000 + np.arange(4000, dtype=np.uint64))
    assert 0 < sum(name is not None for name in found) < 30
    assert table.unread > 3900
    assert source.bytes < 5 << 20


def test_usdt_notes_are_not_copied_again_and_again() -> None:
    """Each of 200,000 notes was compared with all that follow it: 5 TB for a file of 4.8 MB."""

    class Bytes(bytes):
        copied = 0

        def __getitem__(self, key: object) -> object:  # type: ignore[override]
            found = super().__getitem__(key)  # type: ignore[index]
            Bytes.copied += len(found) if isinstance(found, bytes) else 1
            return found

    note = struct.pack("<III", 8, 0, 3) + b"stapsdt\0"
    file = opened(elf([(b".note.stapsdt", 7, note * 200_000, 0, 0)]))
    content = Bytes(note * 200_000)
    file.section = lambda _: content  # type: ignore[method-assign]
    assert usdt_probes(file) == []
    assert Bytes.copied < 2 * len(content)
