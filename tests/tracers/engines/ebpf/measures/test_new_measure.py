"""A measure that the house does not know: a .bpf.c, what is measured, how, and a line in the registry."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from stallscope.converters.model import ValueType
from stallscope.converters.model.states import RUNNING
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import probes
from stallscope.tracers.engines.ebpf.engine import Ebpf
from stallscope.tracers.engines.ebpf.measures.protocol import SCHEDULER, Collector, Ended
from stallscope.tracers.engines.ebpf.measures.registry import COLLECTORS, collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.kernel import linker
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.records import ORIGIN, Origin
from stallscope.tracers.kernel.shapes import SHAPES
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.protocol import Measure

BPF = Path(__file__).resolve().parents[5] / "bpf"
SOURCE = Path(__file__).with_name("yields.bpf.c")
FLAGS = ["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86"]
CONTEXTS = 4
"""Number of contexts, up to CONTEXT_SYSCALL."""
PROGRAM = """
#include <sched.h>
#include <unistd.h>
__attribute__((noinline)) void give_way(void) { sched_yield(); asm volatile(""); }
int main(void) { usleep(300000); for (int i = 0; i < 321; i++) give_way(); }
"""


@dataclass(frozen=True)
class Yields(Measure):
    """Calls of sched_yield()."""

    name: ClassVar[str] = "yields"

    @property
    def columns(self) -> tuple[ValueType, ...]:
        return (ValueType("yields", "count"),)


class YieldsCollector(Collector):
    """Counts them."""

    name = Yields.name
    programs = (*SCHEDULER, "yield_enter")

    def __init__(self, measure: Yields) -> None:
        self.columns = measure.columns
        self._yields: dict[Origin, int] = {}

    def knobs(self) -> Mapping[str, int]:
        return {"yield_number": 24}  # arch/x86/entry/syscalls/syscall_64.tbl

    def sizes(self, entries: int) -> Mapping[str, int]:
        return {"yields": entries, "stack_scratch": CONTEXTS, "walk_scratch": CONTEXTS}

    def read(self, loaded: Object) -> None:
        items = loaded.find_map("yields").items()
        self._yields = {Origin(*ORIGIN.unpack(key)): int.from_bytes(value, "little") for key, value in items}

    def rows(self, ended: Ended) -> list[Row]:
        return [Row(origin, RUNNING, (number,)) for origin, number in self._yields.items()]

    def losses(self) -> Mapping[str, int]:
        return {"yields": 0}


@pytest.fixture
def linked(root: None, clang: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Links an object with its kernel side among ours."""
    parts = []
    for source in [*BPF.glob("*.bpf.c"), SOURCE]:
        parts.append(tmp_path / source.name.replace(".bpf.c", ".bpf.o"))
        subprocess.run([clang, *FLAGS, f"-I{BPF / 'include'}", "-c", source, "-o", parts[-1]], check=True)
    output = tmp_path / "all.o"
    assert linker.main([str(output), *map(str, parts)]) == 0
    monkeypatch.setattr(probes, "object_path", lambda: output)
    monkeypatch.setitem(COLLECTORS, "Yields", YieldsCollector)
    yield


def test_it_is_traced_beside_another(linked: None, gcc: str, tmp_path: Path) -> None:
    source = tmp_path / "yields.c"
    source.write_text(PROGRAM)
    subprocess.run([gcc, "-O2", "-fomit-frame-pointer", "-o", tmp_path / "yields", source], check=True)
    request = Request(Scope(), (OffCpu(), Yields()), "Waits and yields", (str(tmp_path / "yields"),), duration=60)
    profile = Ebpf().trace(request).profile
    assert [column.name for column in profile.value_types] == ["off-cpu", "count", "min", "max", "yields"]
    assert profile.title == "Waits and yields of yields"
    assert profile.lost["yields"] == profile.lost["intervals"] == 0
    counted = [sample for sample in profile.samples if sample.values[4]]
    assert sum(sample.values[4] for sample in counted) == 321
    for sample in counted:
        names = [frame.name for frame in sample.stack]
        assert names[0] == "_start"
        assert names[-3:-1] == ["main", "give_way"]
        assert (sample.label("state"), sample.values[:4]) == ("running", (0, 0, 0, 0))
    assert any(sample.values[1] for sample in profile.samples), "the other measure's rows"


def test_it_loads_in_every_shape(linked: None) -> None:
    for shape in SHAPES:
        # Of SHAPES the names of raw programs end in _raw: load_shape() sees to that.
        loaded = probes.load_shape(ProbeOptions(Scope(everything=True), collectors([OffCpu(), Yields()])), shape)
        try:
            names = {name for name, program in loaded.programs.items() if program.is_loaded}
            assert {name.removesuffix("_raw") for name in names} >= {"yield_enter", "sched_switch"}
        finally:
            loaded.close()
