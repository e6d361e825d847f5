from __future__ import annotations

import errno
import os
import re
import subprocess
from pathlib import Path

import pytest
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import probes
from stallscope.tracers.engines.ebpf.measures.lock_objects import ASKED
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.kernel import bpfobject, libbpf, shapes
from stallscope.tracers.kernel.bpfmap import RingBuffer
from stallscope.tracers.kernel.bpfobject import Link, Object
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.shapes import SHAPES

REFUSED = """
char LICENSE[] __attribute__((section("license"), used)) = "GPL";
static unsigned long long (*ktime_get_ns)(void) = (void *)5;
__attribute__((section("raw_tp/sys_enter"), used)) int refused(void *context)
{
	unsigned long long sum = 0;
	for (int i = 0; i < 2000; i++) {
		sum += ktime_get_ns();
		if (sum & (1 << (i & 15)))
			sum ^= i;
	}
	return *(volatile int *)sum;
}
"""
"""Reads through a number: refused, after a log that is longer than anybody wants to keep."""


def load(**options: object) -> Object:
    """Loads our own object with the programs that follow forks and execs."""
    return probes.load_shape(ProbeOptions(Scope(everything=True), (), **options), SHAPES[0])  # type: ignore[arg-type]


def number(value: int, size: int = 8) -> bytes:
    return value.to_bytes(size, "little")


def test_variables(root: None, opened: Object) -> None:
    opened.select(set())
    opened.set_variable("min_wait", 0x1122334455667788)
    assert number(0x1122334455667788) in opened.find_map(".rodata").memory().raw
    with pytest.raises(KeyError):
        opened.set_variable("no_such_variable", 1)
    with pytest.raises(OverflowError):
        opened.set_variable("min_wait", 1 << 64)
    opened.load()
    rodata = opened.find_map(".rodata").lookup(bytes(4))
    assert rodata is not None
    assert number(0x1122334455667788) in rodata
    opened.set_variable("run", 5 | 7 << 64)
    opened.set_variable("unwind_epoch", 9)
    found = opened.find_map(".bss").lookup(bytes(4)) or b""
    assert number(5) + number(7) in found
    assert number(9, 4) in found.replace(number(5) + number(7), b"")
    opened.set_variable("run", 6)
    assert number(6) + number(0) in (opened.find_map(".bss").lookup(bytes(4)) or b"")


def test_only_selected_programs_are_loaded(root: None) -> None:
    made = load()
    try:
        made.programs["scope_fork"].attach().close()
        with pytest.raises(BpfError, match="attach sched_switch"):
            made.programs["sched_switch"].attach()
        with pytest.raises(KeyError, match="no_such_program"):
            made.select({"scope_fork", "no_such_program"})
    finally:
        made.close()


def test_close_is_for_once_and_for_all(root: None) -> None:
    made = load()
    link = made.programs["scope_fork"].attach()
    ring = RingBuffer(made.find_map("records"), lambda data: None)
    before = len(os.listdir("/proc/self/fd"))
    for thing in (link, ring, made, link, ring, made):
        thing.close()
    assert len(os.listdir("/proc/self/fd")) < before


def test_iterator(loaded: Object) -> None:
    loaded.set_variable("run", 1)
    link = loaded.programs["scope_seed"].attach_iterator()
    try:
        data = link.read_iterator()
        assert len(data) % 8 == 0
        assert number(2, 4) + number(2, 4) in data  # kthreadd
        assert len(link.read_iterator()) >= len(data) - 800  # again from the start
    finally:
        link.close()


@pytest.mark.parametrize("content", [None, b"", b"\x7fELF but not really", bytes(4096)])
def test_broken_object_file(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "broken.bpf.o"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BpfError, match=r"open broken\.bpf\.o: ") as caught:
        Object(path)
    assert caught.value.number == (errno.ENOENT if content is None else caught.value.number) > 0
    assert any("broken.bpf.o" in line for line in caught.value.log)


def test_end_of_a_long_verifier_log_is_kept(root: None, clang: str, tmp_path: Path) -> None:
    source, path = tmp_path / "refused.c", tmp_path / "refused.bpf.o"
    source.write_text(REFUSED)
    subprocess.run([clang, "-g", "-O2", "-target", "bpf", "-mcpu=v3", "-c", source, "-o", path], check=True)
    made = Object(path)
    try:
        with pytest.raises(BpfError, match="the kernel refuses the BPF programs: Permission denied") as caught:
            made.load()
    finally:
        made.close()
    assert caught.value.number == errno.EACCES
    text = "\n".join(caught.value.log)
    assert "invalid mem access 'scalar'" in text
    assert len(text) < 1 << 15
    assert shapes.reason(caught.value.log).endswith("invalid mem access 'scalar'")


def test_log_of_one_error_is_not_told_again(tmp_path: Path) -> None:
    with pytest.raises(BpfError):
        Object(tmp_path / "one.o")
    libbpf._log.append("a warning that nobody asked for")
    with pytest.raises(BpfError) as caught:
        Object(tmp_path / "two.o")
    assert caught.value.log
    assert all("two.o" in line for line in caught.value.log)


@pytest.mark.parametrize("kind", [Link, Object])
def test_ctrl_c_while_it_is_closed(kind: type[Link] | type[Object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt is raised when libbpf has freed it; what is closed once more is not freed once more."""
    freed = []

    def free(pointer: int) -> None:
        freed.append(pointer)
        if len(freed) == 1:
            raise KeyboardInterrupt

    class Library:
        bpf_link__destroy = bpf_object__close = staticmethod(free)

    monkeypatch.setattr(bpfobject, "library", Library)
    thing = object.__new__(kind)
    thing._pointer = 4096
    if isinstance(thing, Object):
        thing._iterators = {}
    with pytest.raises(KeyboardInterrupt):
        thing.close()
    thing.close()
    assert freed == [4096]


def test_programs_do_not_write_variables() -> None:
    """`Object.set_variable` writes all variables at once: what a program had written there would be lost."""
    sources = {path.name: path.read_text() for path in (Path(__file__).parents[3] / "bpf").rglob("*.[ch]")}
    declared = r"^(?:SHARED )?(?:u8|u32|u64|bool|struct \w+) (\w+)(?:\[\w+\])?;"
    names = {name for text in sources.values() for name in re.findall(declared, text, re.MULTILINE)}
    assert {"run", "stack_generation", "dumped_at"} <= names
    any_name = "|".join(sorted(names))
    write = re.compile(
        rf"__sync_\w+\(&(?:{any_name})\b|^\t+(?:{any_name})(?:\.\w+)?(?: [-+|&]?= |\+\+|--)", re.MULTILINE
    )
    assert {name: found for name, text in sources.items() if (found := write.findall(text))} == {}


def test_call_of_a_function_of_the_kernel(opened: Object) -> None:
    """The call takes the place of a helper that there is not. That the kernel takes it: tests/live/test_locks.py."""
    program = opened.programs["locks_begin_asking"]
    with pytest.raises(BpfError, match=r"call of no_such_function\(\) in locks_begin_asking"):
        program.call_function(ASKED, "no_such_function")
    program.call_function(ASKED, "schedule")
    with pytest.raises(BpfError, match=r"call of schedule\(\)"):  # none is left
        program.call_function(ASKED, "schedule")
    with pytest.raises(BpfError, match=r"call of schedule\(\) in locks_begin:"):
        opened.programs["locks_begin"].call_function(ASKED, "schedule")
