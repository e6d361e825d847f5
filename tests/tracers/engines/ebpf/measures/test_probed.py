"""Files and functions that get probes, and what is said of the others. Nothing is attached."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from stallscope.tracers.engines.ebpf.measures import probed
from stallscope.tracers.engines.ebpf.measures.probed import Probed
from stallscope.tracers.holder.links import Place
from stallscope.tracers.holder.making import NO_TIME, NOT_SUPPORTED
from stallscope.tracers.images.maps import Mapping
from stallscope.tracers.kernel.attaching import Attached, WithheldError
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.uprobes import Way
from stallscope.tracers.probe_targets.wanted import Library, Wanted

SOURCE = """
int cudaMalloc(int x) { return x + __builtin_return_address(0) != 0; }
int cudaFree(int x) { return x; }
int cudaOther(int x) { return x; }
int cudaLaunchKernel(int x) { return x; }
"""
ME = os.getpid()


@pytest.fixture
def attached(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Place]]:
    seen: list[Sequence[Place]] = []

    def attach(loaded: object, way: Way, names: object, fd: int, places: Sequence[Place]) -> Attached:
        assert os.fstat(fd).st_size
        seen.append(places)
        return Attached()

    monkeypatch.setattr(probed, "attach_possible", attach)
    return seen


def made(folder: Path, name: str = "libcudart.so.12", *options: str) -> Mapping:
    (folder / "x.c").write_text(SOURCE)
    path = folder / name
    subprocess.run(["gcc", "-w", "-O1", "-shared", "-fPIC", *options, "-o", path, folder / "x.c"], check=True)
    return mapping_of(path)


def mapping_of(path: Path) -> Mapping:
    status = path.stat()
    return Mapping(0x1000, 0x2000, 0, str(path), status.st_dev, status.st_ino)


def probes(wanted: Wanted | None = None) -> Probed:
    return Probed(None, Way.MULTI, ("both", "enter", "return"), wanted or Wanted())  # type: ignore[arg-type]


def test_a_library_is_looked_into_once(tmp_path: Path, attached: list[Sequence[Place]]) -> None:
    mapping, found = made(tmp_path), probes()
    found.look(ME, mapping)
    found.look(ME, mapping)
    assert [probe.name for probe in found.functions] == ["cudaMalloc", "cudaFree"]
    ((first, second),) = attached
    assert (first.cookie, second.cookie) == (1 << 32, 1 << 32 | 1)
    assert first.offset < second.offset
    assert any("cannot emulate" in remark and "cudaFree" in remark for remark in found.remarks())


@pytest.mark.parametrize("other", ["zz.so", "libcuda.so.1"])
def test_another_name_of_a_file_hides_nothing(tmp_path: Path, attached: list[Sequence[Place]], other: str) -> None:
    """A user mounts it elsewhere, and maps it before others do: under a name of no interest, or under one that is."""
    mapping, found = made(tmp_path), probes()
    found.look(ME, mapping._replace(path=f"/mnt/{other}"))
    found.look(ME, mapping)
    assert [probe.name for probe in found.functions] == ["cudaMalloc", "cudaFree"]
    assert len(attached) == 1


def test_numbers_go_on_in_the_next_library(tmp_path: Path, attached: list[Sequence[Place]]) -> None:
    found = probes(Wanted(launches=True, api=re.compile("Other")))
    found.look(ME, made(tmp_path))
    found.look(ME, made(tmp_path, "libcudart-2.so.12", "-DX"))
    assert [place.cookie & 0xFFFFFFFF for places in attached for place in places] == list(range(8))
    assert next(found.remarks()).startswith("probes were on 8 functions of 2 files, by multi links")


def test_other_files_are_left_alone(tmp_path: Path, attached: list[Sequence[Place]]) -> None:
    found = probes()
    found.look(ME, made(tmp_path, "libother.so"))
    found.look(ME, Mapping(1, 2, 0, "[vdso]"))
    assert attached == []
    assert list(found.remarks()) == ["no traced process has mapped a library with functions to trace"]


def test_libraries_of_the_user(tmp_path: Path, attached: list[Sequence[Place]]) -> None:
    mapping = made(tmp_path, "libother.so")
    wanted = Wanted(libraries=(Library.at(mapping.path),), symbols=re.compile("Other"))
    found = probes(wanted)
    found.look(ME, mapping)
    assert "cudaOther" in [probe.name for probe in found.functions]
    assert len(attached) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"this is a text, and no library", "not an ELF file"), (b"\x7fELF\1\1\1", "truncated"), (b"", "truncated")],
)
def test_damaged_libraries_are_told(tmp_path: Path, attached: list[Sequence[Place]], content: bytes, says: str) -> None:
    path = tmp_path / "libcuda.so.1"
    path.write_bytes(content)
    found = probes()
    found.look(ME, mapping_of(path))
    assert attached == []
    assert any(says in remark and "was not traced" in remark for remark in found.remarks())


def test_32_bit_libraries_are_told(tmp_path: Path, attached: list[Sequence[Place]]) -> None:
    path = tmp_path / "libcudart.so.12"
    made(tmp_path)
    data = bytearray(path.read_bytes())
    data[18:20] = (183).to_bytes(2, "little")  # EM_AARCH64
    path.write_bytes(data)
    found = probes()
    found.look(ME, mapping_of(path))
    assert attached == []
    assert "not that of 64-bit x86" in found.problems[str(path)]


def test_a_kernel_that_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def attach(*_: object) -> Attached:
        raise BpfError("attach uprobes", 22, [])

    monkeypatch.setattr(probed, "attach_possible", attach)
    found, mapping = probes(), made(tmp_path)
    found.look(ME, mapping)
    assert found.functions == []
    assert "attach uprobes" in found.problems[mapping.path]


def test_functions_that_the_kernel_refuses_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def attach(_loaded: object, _way: Way, _names: object, _fd: int, places: Sequence[Place]) -> Attached:
        return Attached([], {places[1]: NOT_SUPPORTED, places[2]: NO_TIME})

    monkeypatch.setattr(probed, "attach_possible", attach)
    found = probes(Wanted(launches=True, api=re.compile("Other")))
    found.look(ME, made(tmp_path))
    assert [probe.name for probe in found.probes()] == ["cudaMalloc", "cudaLaunchKernel"]
    assert len(found.functions) == 4, "the numbers of the others stay"
    remarks = list(found.remarks())
    assert remarks[0].startswith("probes were on 2 functions of 1 file")
    assert (
        "libcudart.so.12: left out 1 function that there was no time for (5 s): cudaOther; "
        "1 function with a first instruction that the kernel takes no probe on: cudaFree"
    ) in remarks


def test_functions_that_would_not_survive_are_told(tmp_path: Path, attached: list[Sequence[Place]]) -> None:
    source = "int good(int x) { return x; } int _setjmp(void *x) { return !x; } int _ZN3abc4evilEi(int x) { return x; }"
    (tmp_path / "y.c").write_text(source)
    path = tmp_path / "liby.so"
    subprocess.run(["gcc", "-w", "-O1", "-shared", "-fPIC", "-o", path, tmp_path / "y.c"], check=True)
    found = probes(Wanted(libraries=(Library.at(str(path)),), symbols=re.compile("good|evil|setjmp")))
    found.look(ME, mapping_of(path))
    assert [probe.name for probe in found.probes()] == ["good"]
    why = "that a probe on the return could end the program of"
    assert f"liby.so: left out 2 functions {why}: abc::evil(int), _setjmp" in list(found.remarks())


def test_a_library_without_a_matching_function_is_told(tmp_path: Path, attached: list[Sequence[Place]]) -> None:
    """The library is given by its name: this is known only when a process maps it."""
    names = [f"-D{name}={name.replace('cuda', 'own')}" for name in re.findall("cuda[A-Za-z]+", SOURCE)]
    mapping = made(tmp_path, "libown.so.1", *names)
    found = probes(Wanted(libraries=(Library.at("libown.so.1"),), symbols=re.compile("^ownMaloc$")))
    found.look(ME, mapping)
    assert not attached
    assert list(found.remarks())[1] == "libown.so.1 has no function that --sym matches: it has ownMalloc"


def test_nothing_is_probed_after_the_end(tmp_path: Path, attached: list[Sequence[Place]]) -> None:
    found = probes()
    found.close()
    found.look(ME, made(tmp_path))
    assert attached == []


def test_hostile_names_are_not_printed(tmp_path: Path, attached: list[Sequence[Place]]) -> None:
    path = tmp_path / "libcuda\x1b[31m.so.1"
    path.write_bytes(b"x")
    found = probes(Wanted(libraries=(Library.at(str(path)),), symbols=re.compile("x")))
    found.look(ME, mapping_of(path))
    assert attached == []
    assert not any("\x1b" in remark for remark in found.remarks())


def test_a_file_without_probes_because_others_wait_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program without probes is told, too."""

    def attach(*_: object) -> Attached:
        raise WithheldError

    monkeypatch.setattr(probed, "attach_possible", attach)
    monkeypatch.setattr(probed, "is_program", lambda *_: True)
    mapping, found = made(tmp_path), probes()
    found.look(ME, mapping)
    assert found.problems == {mapping.path: "the kernel would wait for a process that keeps its address space locked"}


def test_processes_that_use_functions_with_probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of which one such function has no probe are none of them."""
    mapping, found = made(tmp_path), probes()

    def attach(_loaded: object, _way: Way, _names: object, _fd: int, places: Sequence[Place]) -> Attached:
        return Attached([], {places[1]: NOT_SUPPORTED})

    monkeypatch.setattr(probed, "attach_possible", attach)
    found.look(ME, mapping)
    found.look(ME + 1, mapping)
    found.look(ME + 2, mapping._replace(path="/usr/lib/other.so", inode=mapping.inode + 1))
    assert found.users("cudaMalloc".__eq__) == {ME, ME + 1}
    assert found.users("cudaFree".__eq__) == found.users(lambda _name: True) == frozenset()
    assert found.users("cudaOther".__eq__) == frozenset(), "it is not wanted"
    found.problems[mapping.path] = "it is damaged"
    assert found.users("cudaMalloc".__eq__) == frozenset()


def test_functions_that_can_throw_have_a_probe_at_their_entry_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others keep theirs at both, and lose these again."""
    seen: list[tuple[Way, tuple[str, str, str], list[int]]] = []

    def attach(loaded: object, way: Way, names: tuple[str, str, str], fd: int, places: Sequence[Place]) -> Attached:
        seen.append((way, names, [place.cookie & 0xFF for place in places]))
        return Attached(refused={places[0]: NOT_SUPPORTED})

    class Begins(Wanted):
        def is_begin(self, name: str) -> bool:
            return name == "cudaFree"

    monkeypatch.setattr(probed, "attach_possible", attach)
    for way, begin in ((Way.SESSION, Way.MULTI), (Way.MULTI, Way.MULTI), (Way.SINGLE, Way.SINGLE)):
        seen.clear()
        found = Probed(None, way, ("both", "enter", "return"), Begins(), "begin")  # type: ignore[arg-type]
        found.keeps = True
        found.look(ME, made(tmp_path))
        assert seen == [(way, ("both", "enter", "return"), [0]), (begin, ("", "begin", ""), [1])]
        assert found.probes() == [], "what is refused is told of both"
        found.leave([1])
        assert len(seen) == 2, "it has no probe that could leave"
        found.close()
