"""Pressure and interrupts, from the kernel's texts as they are, cut short, and hostile."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest
from stallscope.converters.model.pressure import ALL, HARD, SOFT, STOLEN, Interrupts, Pressure
from stallscope.tracers.base.pressure import HostTimes, Stalled, _sources, interrupts, stalled

TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
PSI = b"some avg10=0.02 avg60=0.84 avg300=1.31 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n"
STAT = b"""cpu  415704 15316 109081 486124 5359 10 1280 1008 0 0
cpu0 1 1 1 1 1 1 1 1 0 0
intr 9389965 0 0 1
ctxt 5
softirq 2146954 0 242690 4 315869 703735 0 3 263678 0 620975
"""
LATER = b"""cpu  415804 15316 109081 486224 5350 30 1330 1048 50 0
intr 9389995 0 0 31
softirq 2147054 0 242690 4 315959 703735 0 3 263678 0 620985
"""
TABLE = b"""           CPU0       CPU1
 24:          1          2  IO-APIC   5-edge      ACPI:Ged
 28:         10         20 PCI-MSIX-0000:00:01.0   0-edge      mlx5 \x1b[2J\xff
NMI:          3          4   Non-maskable interrupts
ERR:          5
MIS:          7
cut:        9
"""


def host(folder: Path, *, some: int, full: int, stat: bytes, table: bytes) -> None:
    (folder / "pressure").mkdir(exist_ok=True)
    (folder / "pressure" / "io").write_bytes(PSI % (some, full))
    (folder / "pressure" / "cpu").write_bytes(b"some avg10=0.00 total=%d\n" % some)
    (folder / "stat").write_bytes(stat)
    (folder / "interrupts").write_bytes(table)


def test_differences_of_a_host(tmp_path: Path) -> None:
    host(tmp_path, some=1_000, full=10, stat=STAT, table=TABLE)
    looks = HostTimes(tmp_path)
    host(tmp_path, some=1_500, full=12, stat=LATER, table=TABLE.replace(b"20 PCI", b"50 PCI"))
    looks.end()
    cpu, io = looks.pressure
    assert (cpu.resource, cpu.some, cpu.full, cpu.cgroup) == ("cpu", 500_000, 0, "")
    assert (io.resource, io.some, io.full) == ("io", 500_000, 2_000)
    assert 0 < io.elapsed == cpu.elapsed
    capacity = (100 + 100 + 20 + 50 + 40) * TICK  # not the time of guests; what went back is 0
    assert looks.interrupts == [
        Interrupts(HARD, "", 20 * TICK, 30, capacity),
        Interrupts(SOFT, "", 50 * TICK, 100, capacity),
        Interrupts(STOLEN, "", 40 * TICK, 0, capacity),
        Interrupts(SOFT, "NET_RX", 0, 90, capacity),
        Interrupts(HARD, "28 PCI-MSIX-0000:00:01.0 0-edge mlx5 \x1b[2J\udcff", 0, 30, capacity),
        Interrupts(SOFT, "RCU", 0, 10, capacity),
    ]


def test_time_that_is_taken_from_each_core() -> None:
    before, after = (
        STAT.replace(b"cpu0 1 1 1 1 1 1 1 1 0 0\n", b"".join(b"cpu%d %s\n" % core for core in enumerate(cores)))
        for cores in (
            (b"0 0 0 0 0 0 0 0 0 0", b"5 0 0 9 0 0 0 0 0 0", b"0 0 0 0 0 0 0 0", b"0 0 0"),
            (b"8 0 0 0 0 0 2 0 9 9", b"5 0 0 9 0 3 5 2 0 0", b"0 0 0 7 0 0 0 0", b"9 9 9"),
        )
    )
    found = [each for each in interrupts(before, after, Counter()) if each.core != ALL]
    assert found == [
        Interrupts(HARD, "", 3 * TICK, 0, 10 * TICK, 1),
        Interrupts(SOFT, "", 5 * TICK, 0, 10 * TICK, 1),
        Interrupts(STOLEN, "", 2 * TICK, 0, 10 * TICK, 1),
        Interrupts(SOFT, "", 2 * TICK, 0, 10 * TICK, 0),
    ], "of one from which nothing was taken, and of a line that is cut, nothing is told"


def test_of_many_cores_some_are_kept() -> None:
    cores = range(200)
    before = STAT + b"".join(b"cpu%d 0 0 0 0 0 0 0 0\n" % core for core in cores)
    after = STAT + b"".join(b"cpu%d 0 0 0 9 0 0 %d 0\n" % (core, core) for core in cores)
    found = [each.core for each in interrupts(before, after, Counter()) if each.core != ALL]
    assert found == list(range(199, 135, -1))


def test_a_kernel_without_pressure(tmp_path: Path) -> None:
    looks = HostTimes(tmp_path)
    looks.end()
    assert (looks.pressure, looks.interrupts) == ([], [])


def test_sources_of_interrupts() -> None:
    assert _sources(TABLE) == {
        "24 IO-APIC 5-edge ACPI:Ged": 3,
        "28 PCI-MSIX-0000:00:01.0 0-edge mlx5 \x1b[2J\udcff": 30,
        "NMI Non-maskable interrupts": 7,
        "ERR": 5,
        "MIS": 7,
        "cut": 9,
    }
    assert _sources(TABLE.removesuffix(b"9\n"))["cut"] == 0, "a line that was cut is left out"
    assert _sources(b"") == {}
    assert len(next(iter(_sources(b"CPU0\n 1: 5 " + b"x" * 500 + b"\n")))) == 80


@pytest.mark.parametrize(
    "text", [b"some", b"some total=", b"some total=-3", b"other total=3", b"\xff\0", b"", b"some avg10=1 total=3x"]
)
def test_no_pressure_in_other_texts(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "io.pressure").write_bytes(text)
    assert stalled(os.fsencode(tmp_path), b".pressure").times == {}


def test_resources_that_only_one_look_has_are_left_out() -> None:
    before, after = Stalled(10, {"io": (5, 0), "cpu": (9, 9)}), Stalled(30, {"memory": (7, 7), "cpu": (8, 19)})
    assert after.since(before, "/a") == [Pressure("cpu", 0, 10, 20, "/a")]


@pytest.mark.parametrize("text", [b"", b"cpu 1 2 3\n", b"cpu a b c d e f g h\n", b"cpu  1 1 1 1 1 1 1 -1\n"])
def test_no_interrupts_in_other_texts(text: bytes) -> None:
    assert interrupts(text, STAT, Counter()) == []
    assert interrupts(STAT, text, Counter()) == []


def test_this_host() -> None:
    looks = HostTimes()
    began = time.monotonic_ns()
    while time.monotonic_ns() < began + 200_000_000:
        pass
    looks.end()
    whole = looks.interrupts[0]
    assert whole.count > 0
    elapsed = (time.monotonic_ns() - began) / 1e9
    cores = os.cpu_count() or 1
    assert whole.capacity / 1e9 == pytest.approx(elapsed * cores, abs=0.1 * cores)
    for each in looks.pressure:
        assert 0 <= each.full <= each.some <= each.elapsed * 1.1
