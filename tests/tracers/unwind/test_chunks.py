from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from stallscope.tracers.unwind import chunks, rows, store
from stallscope.tracers.unwind.chunks import CHUNK_SHIFT, PAGE_SHIFT, SHARD_WORDS, Chunk, cut
from stallscope.tracers.unwind.rows import END, GAP, ROW, RSP, UnwindTable

CHUNK, PAGE = 1 << CHUNK_SHIFT, 1 << PAGE_SHIFT


def table(*rows: tuple[int, int], base: int = 0) -> UnwindTable:
    """Rows of (pc, cfa): a gap where cfa is 0."""
    made = np.array([(pc, cfa, 0, RSP if cfa else GAP) for pc, cfa in rows], ROW)
    return UnwindTable(base, made, {})


def find(made: list[Chunk], vaddr: int) -> tuple[int, int] | None:
    """(rule, cfa) of the row that a search as find_row() in unwind.bpf.h makes comes to; None: no such page."""
    for chunk in made:
        place = vaddr - (chunk.number << CHUNK_SHIFT)
        page = place >> PAGE_SHIFT
        if not 0 <= page < len(chunk.first) or place >= CHUNK:
            continue
        (piece,) = [p for p in chunk.pieces if p.first_page <= page < p.first_page + p.pages]
        first, count = int(chunk.first[page]), int(chunk.counts[page])
        there: NDArray[np.void] = piece.rows[first : first + count].view(ROW)
        assert len(there) == count > 0
        held = there[there["pc"] <= place]
        return (int(held[-1]["rule"]), int(held[-1]["cfa"])) if len(held) else (GAP, 0)
    return None


@pytest.mark.parametrize("base", [0, 1 << 32])
def test_every_address_has_the_row_that_the_table_gives_it(base: int) -> None:
    random = np.random.default_rng(5)
    places = np.unique(random.integers(0, 3 * CHUNK, 20_000))
    dense = np.arange(CHUNK - 700, CHUNK + 700)
    places = np.unique(np.concatenate([places, dense]))
    rows = [(int(pc), int(cfa)) for pc, cfa in zip(places, random.integers(0, 9, len(places)), strict=True)]
    made = table(*rows, (3 * CHUNK + 5, 0), base=base)
    found = list(cut(made))
    some = np.concatenate([random.integers(int(places[0]), 3 * CHUNK, 3000), dense])
    vaddrs = some.astype(np.uint64) + np.uint64(base)
    expected = made.find(vaddrs)
    for vaddr, row in zip(vaddrs, expected, strict=True):
        assert find(found, int(vaddr)) == (int(row["rule"]), int(row["cfa"])), hex(int(vaddr))


def test_what_lies_around_is_no_ones() -> None:
    found = list(cut(table((CHUNK + 3 * PAGE, 2), (CHUNK + 4 * PAGE + 7, 0))))
    (chunk,) = found
    assert chunk.number == 1
    assert len(chunk.first) == 5
    assert find(found, CHUNK + 3 * PAGE - 1) == (GAP, 0)
    assert find(found, CHUNK) == (GAP, 0)
    assert find(found, CHUNK + 3 * PAGE) == find(found, CHUNK + 4 * PAGE + 6) == (RSP, 2)
    assert find(found, CHUNK + 4 * PAGE + 7) == (GAP, 0)
    assert find(found, CHUNK + 5 * PAGE) is None
    assert find(found, 0) is None


def test_a_row_reaches_into_the_chunks_behind_it() -> None:
    found = list(cut(table((8, 1), (2 * CHUNK + 16, 0))))
    assert [chunk.number for chunk in found] == [0, 1, 2]
    assert [find(found, vaddr) for vaddr in (8, CHUNK, 2 * CHUNK - 1, 2 * CHUNK + 15)] == [(RSP, 1)] * 4
    assert find(found, 2 * CHUNK + 16) == (GAP, 0)
    assert [chunk.words for chunk in found[:2]] == [CHUNK // PAGE + 2, CHUNK // PAGE + 1]


def test_chunks_of_gaps_are_left_out() -> None:
    assert [chunk.number for chunk in cut(table((0, 1), (10, 0), (5 * CHUNK, 3), (5 * CHUNK + 1, 0)))] == [0, 5]
    assert list(cut(table((0, 0)))) == []
    assert list(cut(table())) == []
    assert [chunk.number for chunk in cut(UnwindTable(0, np.array([(0, 0, 0, END), (4, 0, 0, GAP)], ROW), {}))] == [0]


def test_no_page_has_its_rows_in_two_pieces_and_no_piece_is_more_than_a_shard() -> None:
    rows = [(pc, 1 + pc % 7) for pc in range(0, 200_000, 2)]
    (chunk,) = cut(table(*rows, (200_000, 0)))
    assert len(chunk.pieces) > 20
    assert all(len(piece.rows) <= SHARD_WORDS // 16 for piece in chunk.pieces)
    assert [piece.first_page for piece in chunk.pieces[1:]] == [p.first_page + p.pages for p in chunk.pieces[:-1]]
    assert sum(piece.pages for piece in chunk.pieces) == len(chunk.first)
    for vaddr in range(0, 200_000, 37):
        assert find([chunk], vaddr) == (RSP, 1 + (vaddr & ~1) % 7)


def test_the_header_says_the_same() -> None:
    header = (Path(__file__).resolve().parents[3] / "bpf" / "include" / "unwind.h").read_text()
    numbers = {name: int(value) for name, value in re.findall(r"^#define (\w+) (\d+)\b", header, re.MULTILINE)}
    assert 1 << numbers["SHARD_SHIFT"] == SHARD_WORDS
    assert numbers["PAGE_SHIFT"] == PAGE_SHIFT
    assert numbers["MAPPING_WORDS"] == chunks.MAPPING_WORDS
    enums = {
        name: re.findall(r"^\t(\w+)", body, re.MULTILINE)
        for name, body in re.findall(r"enum (\w+) \{\n(.*?)\n\};", header, re.DOTALL)
    }
    assert enums["table_number"] == ["TABLE_UNMAPPED", "TABLE_NONE", "TABLE_FIRST"]
    assert [getattr(chunks, name) for name in enums["table_number"]] == [0, 1, 2]
    assert [getattr(rows, name.removeprefix("CFA_")) for name in enums["cfa_kind"]] == list(range(11))
    assert [getattr(rows, name) for name in enums["rbp_kind"]] == list(range(5))
    fields = re.findall(r"struct unwind_table \{(.*?)\n\}", header, re.DOTALL)[0]
    assert re.findall(r"u32 (\w+);", fields) == [name for name, _ in store._TABLE]
    fields = re.findall(r"struct unwind_space \{(.*?)\n\}", header, re.DOTALL)[0]
    assert re.findall(r"u32 (\w+);", fields) == ["first", "count", "version", "pad"]
