from __future__ import annotations

import errno
import subprocess

import pytest
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import probes
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.kernel import libbpf
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.shapes import SHAPES


def load(**options: object) -> Object:
    """Loads our own object with the programs that follow forks and execs."""
    return probes.load_shape(ProbeOptions(Scope(everything=True), (), **options), SHAPES[0])  # type: ignore[arg-type]


def number(value: int, size: int = 8) -> bytes:
    return value.to_bytes(size, "little")


@pytest.mark.parametrize("batch", [1, 7, 4096, 1 << 15])
def test_big_hash_is_read_completely_and_once(batch: int, loaded: Object) -> None:
    stacks = loaded.find_map("known_stacks")
    wanted = {number(i * 0x9E3779B97F4A7C15 % (1 << 64)): number(i, 4) for i in range(10_000)}
    for key, value in wanted.items():
        stacks.update(key, value)
    items = list(stacks.items(batch))
    assert len(items) == 10_000
    assert dict(items) == wanted


def test_empty_and_full_hash(loaded: Object) -> None:
    stacks = loaded.find_map("known_stacks")
    assert list(stacks.items()) == []
    for i in range(stacks.max_entries):
        stacks.update(number(i), number(1, 4))
    with pytest.raises(BpfError, match="map known_stacks: Argument list too long") as caught:
        stacks.update(number(1 << 40), number(1, 4))
    assert caught.value.number == errno.E2BIG
    assert sorted(key for key, _ in stacks.items()) == sorted(map(number, range(stacks.max_entries)))


def test_what_is_taken_is_gone(loaded: Object) -> None:
    stacks = loaded.find_map("known_stacks")
    wanted = {number(i): number(i, 4) for i in range(100)}
    for key, value in wanted.items():
        stacks.update(key, value)
    assert dict(stacks.take()) == wanted
    assert stacks.take() == []
    assert list(stacks.items()) == []


def test_one_entry(loaded: Object) -> None:
    stacks = loaded.find_map("known_stacks")
    assert stacks.lookup(number(5)) is None
    stacks.update(number(5), number(77, 4))
    assert stacks.lookup(number(5)) == number(77, 4)
    stacks.delete(number(5))
    stacks.delete(number(5))
    assert stacks.lookup(number(5)) is None


def test_per_cpu_values_are_added_up(loaded: Object) -> None:
    cpus = libbpf.library().libbpf_num_possible_cpus()
    counters = loaded.find_map("counters")
    assert counters.lookup_percpu_u64(3) == 0
    counters.update(number(3, 4), b"".join(number((1 << 40) + i) for i in range(cpus)))
    assert counters.lookup_percpu_u64(3) == sum((1 << 40) + i for i in range(cpus))
    assert counters.lookup_percpu_u64(2) == 0


def test_map_sizes(loaded: Object) -> None:
    stacks = loaded.find_map("known_stacks")
    assert (stacks.key_size, stacks.value_size, stacks.max_entries) == (8, 4, 1 << 14)
    with pytest.raises(BpfError, match="map no_such_map"):
        loaded.find_map("no_such_map")


def test_exception_in_the_callback_is_raised_by_consume(root: None) -> None:
    records: list[bytes] = []
    failure: BaseException | None = KeyboardInterrupt("in the callback")

    def on_record(data: bytes) -> None:
        if failure:
            raise failure
        records.append(data)

    made = probes.Probes(ProbeOptions(Scope(everything=True), ()), on_record)
    try:
        made.begin()
        for _ in range(2):
            subprocess.run(["true"], check=True)
        with pytest.raises(KeyboardInterrupt, match="in the callback"):
            made.consume()
        failure = None
        subprocess.run(["true"], check=True)
        made.consume()
        assert records
    finally:
        made.close()


def test_a_hash_is_cleared(loaded: Object) -> None:
    stacks = loaded.find_map("known_stacks")
    stacks.clear()
    for i in range(stacks.max_entries):
        stacks.update(number(i), number(1, 4))
    stacks.clear()
    assert list(stacks.items()) == []


def test_values_of_each_cpu(loaded: Object) -> None:
    cpus = libbpf.library().libbpf_num_possible_cpus()
    lost = loaded.find_map("lost_waits")
    values = [bytes([cpu + 1]) * lost.value_size for cpu in range(cpus)]
    lost.update(number(3, 4), b"".join(values))
    assert lost.take_percpu(3) == values
    assert lost.take_percpu(3) == lost.take_percpu(2) == [bytes(lost.value_size)] * cpus


def test_ring_is_read_round_and_round(root: None) -> None:
    """Every record once, however often the end of the memory is passed."""
    execs: list[bytes] = []
    made = probes.Probes(ProbeOptions(Scope(everything=True), (), buffer_bytes=4096), execs.append)
    try:
        made.begin()
        for i in range(160):  # records of 32 bytes, with their heads 40
            subprocess.run(["true"], check=True)
            if i % 16 == 0:
                made.consume()
        made.consume()
        lost = made.counters()["lost_records"]  # if others start many programs
    finally:
        made.close()
    ours = [data for data in execs if data[:4] == number(2, 4)]
    assert len(ours) + lost >= 160
    assert len(set(ours)) == len(ours)
    assert all(len(data) == 32 for data in ours)
