"""USDT notes of a workload that has them, moved, cut and damaged. With real hits: tests/live/test_events.py."""

from __future__ import annotations

import contextlib
import random
import struct

import pytest
from runner import FOLDER
from stallscope.tracers.images.elf import BytesSource, ElfError, ElfFile
from stallscope.tracers.images.usdt import usdt_probes

DATA = (FOLDER / "usdt").read_bytes()
NOTES = b".note.stapsdt"


def place(name: bytes) -> tuple[int, int]:
    header = ElfFile(BytesSource(DATA)).section_header(name)
    return int(header["offset"]), int(header["size"])


def probes(data: bytes) -> dict[str, tuple[int, ...]]:
    """The addresses of each."""
    found = usdt_probes(ElfFile(BytesSource(data)))
    return {probe.title: tuple(site.address for site in probe.sites) for probe in found}


def test_places_arguments_and_semaphores() -> None:
    elf = ElfFile(BytesSource(DATA))
    audit, look, sale = usdt_probes(elf)
    assert [probe.title for probe in (audit, look, sale)] == ["shop:audit", "shop:look", "shop:sale"]
    assert sale.arguments == ("8@%rdi", "-4@%esi")
    assert look.arguments == ()
    assert [len(probe.sites) for probe in (audit, look, sale)] == [1, 2, 1]
    for probe in (audit, look, sale):
        for site in probe.sites:
            assert DATA[site.offset] == 0x90, "a nop"
            assert elf.code_at(site.address, 1) == b"\x90"
    (site,) = audit.sites
    assert DATA[site.counter : site.counter + 2] == bytes(2)
    assert place(b".probes")[0] <= site.counter < sum(place(b".probes"))
    assert not any(each.counter for each in (*look.sites, *sale.sites))


def test_addresses_follow_a_file_that_was_moved() -> None:
    """Prelinking moves code and .stapsdt.base, and leaves what the notes say: as if all had been linked 16 lower."""
    begin, size = place(NOTES)
    data, at = bytearray(DATA), begin
    while at < begin + size:
        names, descriptor, _ = struct.unpack_from("<III", data, at)
        addresses = at + 12 + (names + 3 & ~3)
        moved = [each and each - 16 for each in struct.unpack_from("<QQQ", data, addresses)]
        struct.pack_into("<QQQ", data, addresses, *moved)
        at = addresses + (descriptor + 3 & ~3)
    assert probes(bytes(data)) == probes(DATA)


def test_what_is_not_in_the_code_is_left_out() -> None:
    begin, _ = place(NOTES)
    data = bytearray(DATA)
    struct.pack_into("<Q", data, begin + 20, 1 << 62)
    assert len(probes(bytes(data))) == 2
    struct.pack_into("<Q", data, begin + 20, 0)  # a page that is not executed
    assert len(probes(bytes(data))) == 2


@pytest.mark.parametrize("seed", range(300))
def test_damaged_notes(seed: int) -> None:
    """Nothing but an ElfError, and no place outside of the file."""
    chance, data = random.Random(seed), bytearray(DATA)
    begin, size = place(NOTES)
    for _ in range(chance.randrange(1, 12)):
        data[begin + chance.randrange(size)] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
    with contextlib.suppress(ElfError):
        for probe in usdt_probes(ElfFile(BytesSource(bytes(data)))):
            assert probe.provider and probe.name
            assert all(0 <= site.offset < len(data) and 0 <= site.counter < len(data) for site in probe.sites)


def test_other_files_have_none() -> None:
    assert probes((FOLDER / "sleeps").read_bytes()) == {}
