from __future__ import annotations

import ctypes
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from stallscope.converters.errors import StallscopeError
from stallscope.tracers.core import engine, libbpf
from stallscope.tracers.core.engine import SHAPES, EngineOptions
from stallscope.tracers.core.libbpf import BpfError, Object, RingBuffer
from stallscope.tracers.core.scope import Scope

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
    """Our own object with the programs that follow forks and execs."""
    return engine.load_shape(EngineOptions(Scope(everything=True), (), **options), SHAPES[0])  # type: ignore[arg-type]


@pytest.fixture
def opened() -> Iterator[Object]:
    made = Object(engine.object_path())
    yield made
    made.close()


@pytest.fixture
def loaded(root: None) -> Iterator[Object]:
    made = load(table_entries=1 << 14)
    yield made
    made.close()


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
    assert opened.find_map(".bss").lookup(bytes(4)) == number(5) + number(7)
    opened.set_variable("run", 6)
    assert opened.find_map(".bss").lookup(bytes(4)) == number(6) + number(0)


def test_only_selected_programs_are_loaded(root: None) -> None:
    made = load()
    try:
        made.programs["scope_fork"].attach().close()
        with pytest.raises(BpfError, match="attach offcpu_switch"):
            made.programs["offcpu_switch"].attach()
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


def test_exception_in_the_callback_is_raised_by_consume(root: None) -> None:
    records: list[bytes] = []
    failure: BaseException | None = KeyboardInterrupt("in the callback")

    def on_record(data: bytes) -> None:
        if failure:
            raise failure
        records.append(data)

    made = engine.Engine(EngineOptions(Scope(everything=True), ()), on_record)
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
    assert engine._reason(caught.value.log).endswith("invalid mem access 'scalar'")


def test_log_of_one_error_is_not_told_again(tmp_path: Path) -> None:
    with pytest.raises(BpfError):
        Object(tmp_path / "one.o")
    libbpf._log.append("a warning that nobody asked for")
    with pytest.raises(BpfError) as caught:
        Object(tmp_path / "two.o")
    assert caught.value.log
    assert all("two.o" in line for line in caught.value.log)


def test_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, **_: object) -> NoReturn:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(libbpf, "_library", None)
    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(StallscopeError) as caught:
        libbpf.version()
    assert caught.value.cause == "libbpf.so.1 cannot be used: libbpf.so.1: cannot open shared object file"
    assert "apt-get install libbpf1" in caught.value.remedy


def test_library_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libbpf, "_library", None)
    monkeypatch.setitem(libbpf._SIGNATURES, "bpf_from_the_future", (None, []))
    with pytest.raises(StallscopeError, match="bpf_from_the_future"):
        libbpf.library()


def test_version() -> None:
    assert libbpf.version().startswith("v1.")
    assert libbpf.library() is libbpf.library()


def test_errors_name_the_reason() -> None:
    assert libbpf.check(3, "x") == libbpf.check_pointer(3, "x") == 3
    with pytest.raises(BpfError, match=r"^map x: Operation not permitted$"):
        libbpf.check(-errno.EPERM, "map x")
    with pytest.raises(BpfError, match=r"^object: Endian mismatch$"):
        libbpf.check(-4003, "object")
    ctypes.set_errno(0)
    with pytest.raises(BpfError, match=r"^thing: unknown error$"):
        libbpf.check_pointer(None, "thing")
