from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from runner import Workload
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base import privilege, procfs
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import probes
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import KERNEL_BTF, ProbeOptions, Probes
from stallscope.tracers.kernel import records
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.shapes import BTF_SHAPES, RAW_SHAPES, SHAPES, Shape
from stallscope.tracers.measures.offcpu import OffCpu

KTHREADD = (2, 2)
"""(tid, tgid) of the one process that no machine is without and that never ends."""
LOG = [
    "libbpf: prog 'sched_switch': BPF program load failed: Permission denied",
    "libbpf: prog 'sched_switch': -- BEGIN PROG LOAD LOG --\n"
    "0: R1=ctx() R10=fp0\n; int sched_switch(u64 *ctx) @ sched.bpf.c:4\n12: (61) r0 = *(u32 *)(r8 +0)\n"
    "from 9 to 13: R0=scalar() R10=fp0\nR8 invalid mem access 'scalar'\n"
    "processed 13 insns (limit 1000000) max_states_per_insn 0\n-- END PROG LOAD LOG --",
    "libbpf: prog 'sched_switch': failed to load: -13",
    "libbpf: failed to load object 'stallscope'",
]


def options(**given: object) -> ProbeOptions:
    given.setdefault("scope", Scope(everything=True))
    return ProbeOptions(collectors=collectors([OffCpu()]), **given)  # type: ignore[arg-type]


def make(shape: Shape, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> Probes:
    """An engine in this shape and no other."""
    monkeypatch.setattr(probes, "RAW_SHAPES" if shape.raw else "BTF_SHAPES", (shape,))
    return Probes(options(scope=scope, btf=KERNEL_BTF if shape.raw else None), lambda data: None)


@pytest.fixture
def sleeper() -> Iterator[int]:
    child = subprocess.Popen(["sleep", "60"])
    while procfs.comm(child.pid) != "sleep" or procfs.state(child.pid) != "S":
        time.sleep(0.001)
    yield child.pid
    child.kill()
    child.wait()


@pytest.fixture
def shapes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Names of the shapes that were tried; all of them fail."""
    tried: list[str] = []

    def load_shape(_: ProbeOptions, shape: Shape) -> Object:
        tried.append(shape.name)
        raise BpfError("the kernel refuses", errno.EACCES if len(tried) == 1 else errno.EINVAL, LOG)

    monkeypatch.setattr(probes, "load_shape", load_shape)
    monkeypatch.setattr(probes, "KERNEL_BTF", tmp_path)
    return tried


def test_shapes_are_tried_in_order_and_the_one_that_should_have_worked_says_why(
    shapes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "kernel_helpers", lambda: frozenset(BTF_SHAPES[1].needs))
    with pytest.raises(StallscopeError) as caught:
        probes._load(options())
    assert shapes == [shape.name for shape in BTF_SHAPES]
    why = f"(sched_switch, {BTF_SHAPES[1].name}: R8 invalid mem access 'scalar')"
    assert caught.value.cause == f"the kernel refuses: Invalid argument {why}"


def test_with_other_type_information_only_raw_tracepoints_are_tried(shapes: list[str], tmp_path: Path) -> None:
    (tmp_path / "btf").write_bytes(b"\x9f\xeb\1\0")
    with pytest.raises(StallscopeError):
        probes._load(options(btf=tmp_path / "btf"))
    assert shapes == [RAW_SHAPES[0].name]


def test_second_shape_is_taken_where_the_first_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = object()

    def load_shape(_: ProbeOptions, shape: Shape) -> object:
        if shape is SHAPES[0]:
            raise BpfError("x", errno.EINVAL, [])
        return taken

    monkeypatch.setattr(probes, "load_shape", load_shape)
    monkeypatch.setattr(probes, "KERNEL_BTF", Path("/"))
    assert probes._load(options()) == (taken, SHAPES[1])


def test_other_errors_are_not_taken_for_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_shape(*_: object) -> object:
        raise MemoryError

    monkeypatch.setattr(probes, "load_shape", load_shape)
    monkeypatch.setattr(probes, "KERNEL_BTF", Path("/"))
    with pytest.raises(MemoryError):
        probes._load(options())


def test_no_type_information(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(probes, "KERNEL_BTF", tmp_path / "vmlinux")
    with pytest.raises(StallscopeError) as caught:
        probes._load(options())
    assert caught.value.cause == "this kernel carries no BTF type information"
    assert "--btf PATH" in caught.value.remedy
    (tmp_path / "text").write_text("no BTF")
    for wrong, what in (
        (tmp_path, "no file with"),
        (tmp_path / "text", "no file with"),
        (tmp_path / "x", "not a file"),
    ):
        with pytest.raises(StallscopeError, match=f"^{wrong} is {what}") as caught:
            probes._load(options(btf=wrong))
        assert "--btf" in caught.value.remedy


def test_malformed_type_information(root: None, tmp_path: Path) -> None:
    (tmp_path / "vmlinux").write_bytes(b"\x9f\xeb not BTF")
    with pytest.raises(StallscopeError) as caught:
        Probes(options(btf=tmp_path / "vmlinux"), lambda data: None)
    assert caught.value.remedy


def test_no_object(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(probes, "__file__", str(tmp_path / "tracers" / "engines" / "ebpf" / "probes.py"))
    with pytest.raises(StallscopeError) as caught:
        probes.object_path()
    assert caught.value.cause == "stallscope.bpf.o is missing from the installation"
    assert caught.value.remedy == "run `make build`, or install the wheel"


def test_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: 0)
    with pytest.raises(StallscopeError, match="tracing needs"):
        Probes(options(), lambda data: None)


def test_program_that_cannot_be_attached(root: None, monkeypatch: pytest.MonkeyPatch) -> None:
    real = probes.load_shape

    def load_less(given: ProbeOptions, shape: Shape) -> Object:
        return real(ProbeOptions(given.scope, ()), shape)

    monkeypatch.setattr(probes, "load_shape", load_less)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(StallscopeError, match="lets no program be attached: attach sched_switch: "):
        Probes(options(), lambda data: None)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_sleeping_process_is_taken_in_and_found_at_the_end(
    shape: Shape, root: None, sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(shape, Scope(tgids={sleeper}), monkeypatch)
    try:
        before = time.monotonic_ns()
        assert made.begin() == [(sleeper, sleeper)]
        assert made.seed() == [(sleeper, sleeper)]  # it stays the same thread
        (record,) = made.stop()
    finally:
        made.close()
    assert before <= made.began <= record.thread.start < made.stopped == record.end
    assert (record.comm, record.exited) == (b"sleep", False)
    assert (record.thread.key.tid, record.thread.key.tgid) == (sleeper, sleeper)
    assert record.thread.phase == records.BLOCKED
    assert records.STATES[record.thread.key.state] == "interruptible"
    assert (record.thread.on_cpu, record.thread.switches) == (0, 0)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_one_thread_of_several(shape: Shape, root: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with Workload("futex_pingpong", 1) as workload:
        chosen = workload.tids[-1]
        assert chosen != workload.pid
        made = make(shape, Scope(tids={chosen}), monkeypatch)
        try:
            assert made.begin() == [(chosen, workload.pid)]
            (record,) = made.stop()
        finally:
            made.close()
    assert (record.thread.key.tid, record.thread.key.tgid) == (chosen, workload.pid)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_everything_is_everything_but_ourselves(
    shape: Shape, root: None, sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(shape, Scope(everything=True), monkeypatch)
    try:
        seeds = made.begin()
        ends = made.stop()
    finally:
        made.close()
    assert {(sleeper, sleeper), KTHREADD} <= set(seeds)
    assert {(sleeper, sleeper), KTHREADD} <= {(r.thread.key.tid, r.thread.key.tgid) for r in ends}
    assert os.getpid() not in {tgid for _, tgid in seeds} | {record.thread.key.tgid for record in ends}


def test_scope_may_change(root: None, sleeper: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = Scope(tgids={2})
    made = make(SHAPES[0], scope, monkeypatch)
    ids = made.object.find_map("scope_tgids")
    try:
        assert made.begin() == [KTHREADD]
        scope.tgids = {sleeper}
        assert made.seed() == [(sleeper, sleeper)]
        assert [key for key, _ in ids.items()] == [sleeper.to_bytes(4, "little")]
        made.expect_exec(4711)
        assert [key for key, _ in made.object.find_map("scope_expected").items()] == [(4711).to_bytes(4, "little")]
        assert [key for key, _ in ids.items()] == [sleeper.to_bytes(4, "little")], "who has a pid later is a stranger"
        scope.tgids = set(range(1, probes._IDS + 2))
        with pytest.raises(StallscopeError, match="16385 processes or threads are too many to list"):
            made.seed()
    finally:
        made.close()


def test_counters_have_names(root: None, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(SHAPES[0], Scope(everything=True), monkeypatch)
    try:
        assert made.counters() == dict.fromkeys(records.COUNTERS, 0)
        made.begin()
        subprocess.run(["true"], check=True)
        made.stop()
        assert made.counters()["new_stacks"] > 0
        assert made.counters()["lost_waits"] == 0
    finally:
        made.close()


def test_knobs_reach_the_programs(root: None) -> None:
    made = probes.load_shape(options(knobs={"min_wait": 0x1234567890}, table_entries=2048), SHAPES[0])
    try:
        rodata = made.find_map(".rodata").lookup(bytes(4))
        assert rodata is not None
        assert (0x1234567890).to_bytes(8, "little") in rodata
        assert os.getpid().to_bytes(4, "little") in rodata
        assert made.find_map("known_stacks").max_entries == 2048
        assert made.find_map("records").max_entries == 8 << 20
    finally:
        made.close()
    with pytest.raises(KeyError):
        probes.load_shape(options(knobs={"no_such_knob": 1}), SHAPES[0])
