from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from stallscope.converters.model.wait_objects import EVENTS, FILE, TCP, WaitObject
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.retransmissions import PROGRAM, Resent, Retransmissions, Sender, taken, wanted
from stallscope.tracers.kernel import kernel_types
from stallscope.tracers.kernel.shapes import SHAPES
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from type_information import type_information

HERE, THERE, ELSEWHERE = "10.0.0.1:40000", "10.0.0.2:80", "10.0.0.3:80"
RESENT = Resent(5, 300)


class Table:
    """A map with these entries."""

    def __init__(self, *entries: tuple[bytes, bytes]) -> None:
        self._entries = list(entries)

    def take(self) -> list[tuple[bytes, bytes]]:
        return self._entries


def entry(netns: int, family: int, local: str, remote: str) -> tuple[bytes, bytes]:
    """Key and value that bpf/retransmissions.bpf.c writes. Addresses: their bytes in hexadecimal digits."""
    ends = (bytes.fromhex(local).ljust(16, b"\0"), bytes.fromhex(remote).ljust(16, b"\0"))
    return struct.pack("<IHHHH16s16s", netns, family, 40000, 80, 0, *ends), struct.pack("<QQQ", *RESENT, 999)


@pytest.mark.parametrize(
    ("family", "local", "remote"),
    [
        (2, "0a000001", "0a000002"),
        (10, "00000000000000000000ffff0a000001", "00000000000000000000ffff0a000002"),  # a socket for both versions
    ],
)
def test_entries_are_parsed(family: int, local: str, remote: str) -> None:
    table: Any = Table(entry(7, family, local, remote))
    assert taken(table).of(7, HERE, THERE) == RESENT


def test_addresses_of_version_6() -> None:
    table: Any = Table(entry(7, 10, "fd00" + "0" * 27 + "1", "fd00" + "0" * 27 + "2"))
    assert taken(table).of(7, "[fd00::1]:40000", "[fd00::2]:80") == RESENT


def test_both_ends_are_added_up() -> None:
    made = Retransmissions({Sender(7, HERE, THERE): RESENT, Sender(8, THERE, HERE): Resent(2, 900)})
    assert made.of(7, HERE, THERE) == made.of(8, THERE, HERE) == Resent(7, 900)


@pytest.mark.parametrize(
    ("sender", "ends"),
    [
        (Sender(8, HERE, THERE), (HERE, THERE)),  # the same addresses in another namespace are another connection
        (Sender(7, HERE, ELSEWHERE), (HERE, THERE)),
        (Sender(7, HERE, THERE), (HERE, "")),
        # What does not leave the host is not lost.
        (Sender(7, "127.0.0.1:80", "127.0.0.2:9"), ("127.0.0.1:80", "127.0.0.2:9")),
        (Sender(7, "[::1]:80", "[::1]:9"), ("[::1]:80", "[::1]:9")),
        (Sender(7, "10.0.0.1:80", "10.0.0.1:9"), ("10.0.0.1:80", "10.0.0.1:9")),
    ],
)
def test_another_connection(sender: Sender, ends: tuple[str, str]) -> None:
    assert Retransmissions({sender: RESENT}).of(7, *ends) == Resent()


def test_the_other_end_may_be_one_of_several() -> None:
    two = {Sender(number, THERE, HERE): RESENT for number in (8, 9)}
    assert Retransmissions(two).of(7, HERE, THERE) == Resent()
    assert Retransmissions({**two, Sender(7, THERE, HERE): Resent(1)}).of(7, HERE, THERE) == Resent(1)


def test_objects_get_those_of_their_connections() -> None:
    made = Retransmissions({Sender(7, HERE, THERE): RESENT, Sender(7, HERE, ELSEWHERE): Resent(9, 100)})
    one = made.told(WaitObject(1, TCP, local=HERE, remote=THERE), 7, set())
    assert (one.retransmissions, one.unanswered, one.resent_with) == (5, 300, "")
    several = made.told(WaitObject(1, EVENTS), 7, {(HERE, THERE), (HERE, ELSEWHERE)})
    assert (several.retransmissions, several.unanswered, several.resent_with) == (14, 100, ELSEWHERE)
    for other in (WaitObject(1, FILE, "/x"), WaitObject(1, TCP, local=HERE), WaitObject(1, EVENTS)):
        assert made.told(other, 7, set()) is other


def test_only_waits_need_them_and_only_where_the_kernel_reports_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_types, "_KERNEL_BTF", tmp_path / "btf")
    waits = collectors([OffCpu()])
    assert wanted(waits, SHAPES[0]) == set()
    assert wanted(waits, SHAPES[-1]) == {PROGRAM}  # nothing tells: a raw tracepoint needs no type information
    (tmp_path / "btf").write_bytes(type_information("btf_trace_tcp_retransmit_skb"))
    assert wanted(waits, SHAPES[0]) == {PROGRAM}
    assert wanted(collectors([OnCpu()]), SHAPES[0]) == set()
