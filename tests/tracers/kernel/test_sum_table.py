from __future__ import annotations

import os

from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.libbpf import library
from stallscope.tracers.kernel.records import ORIGIN, WAIT_SUM
from stallscope.tracers.kernel.sum_table import SLOTS, SumTable


def put(table: SumTable, slot: int, tid: int, waits: int) -> None:
    """Puts as a program would."""
    key, value = ORIGIN.pack(1, 2, 0, tid, 7, 0, 1), WAIT_SUM.pack(waits, *[5] * 6)
    assert library().bpf_map_update_elem(table._tables[slot].fd, key, value, 0) == 0


def drained(table: SumTable, slot: int) -> dict[int, int]:
    """Waits by tid."""
    keys, values = table.drain(slot)
    origins = [ORIGIN.unpack(key)[3] for key in (keys[i : i + ORIGIN.size] for i in range(0, len(keys), ORIGIN.size))]
    return dict(zip(origins, (WAIT_SUM.unpack(values[i : i + 56])[0] for i in range(0, len(values), 56)), strict=True))


def test_each_slot_is_drained_by_itself(loaded: Object) -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    table = SumTable(loaded, "waits", WAIT_SUM.size, 20_000)
    try:
        for tid in range(20_000):
            put(table, 0, tid, tid + 1)
        put(table, 1, 3, 77)
        assert drained(table, 0) == {tid: tid + 1 for tid in range(20_000)}
        assert drained(table, 0) == {}
        put(table, 0, 5, 6)
        assert drained(table, 1) == {3: 77}
        assert drained(table, 0) == {5: 6}
    finally:
        table.close()
        table.close()
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_programs_find_the_present_table(loaded: Object) -> None:
    table = SumTable(loaded, "waits", WAIT_SUM.size, 16)
    outer = loaded.find_map("waits")
    assert outer.max_entries == SLOTS
    try:
        before = outer.lookup((0).to_bytes(4, "little"))
        other = outer.lookup((1).to_bytes(4, "little"))
        table.drain(0)
        after = outer.lookup((0).to_bytes(4, "little"))
        assert len({before, other, after}) == 3  # ids of maps
        table.drain(0)
        assert outer.lookup((0).to_bytes(4, "little")) == before
    finally:
        table.close()
