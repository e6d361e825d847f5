from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from stallscope.tracers.probe_targets.targets import libraries
from stallscope.tracers.probe_targets.wanted import Library, Wanted

RUNTIME, OTHER = "/usr/lib/libcudart.so.12", "/opt/libnccl.so.2"
HERE = (1, 2)


def test_by_default_what_is_worth_timing() -> None:
    wanted = Wanted()
    assert wanted.looks_into(RUNTIME, HERE, is_program=False)
    assert not wanted.looks_into(OTHER, HERE, is_program=False)
    assert wanted.looks_into("/usr/bin/train", HERE, is_program=True)
    assert wanted.wants("cudaMalloc", RUNTIME, HERE)
    assert not wanted.wants("cudaGetDevice", RUNTIME, HERE)
    assert not wanted.wants("cudaLaunchKernel", RUNTIME, HERE)


def test_more_on_request() -> None:
    wanted = Wanted(api=re.compile("^cudaGetDevice$|malloc"), launches=True)
    assert wanted.wants("cudaGetDevice", RUNTIME, HERE)
    assert wanted.wants("cudaLaunchKernel_ptsz", RUNTIME, HERE)
    assert not wanted.wants("malloc", RUNTIME, HERE)


def test_libraries_by_name_path_and_identity(tmp_path: Path) -> None:
    file = tmp_path / "libx.so"
    file.write_bytes(b"")
    status = os.stat(file)
    by_path, by_name = Library.at(str(file)), Library.at("libnccl.so.2")
    assert by_path.is_file("/another/name", (status.st_dev, status.st_ino))
    assert by_path.is_file(str(file.resolve()), HERE)  # of a container
    assert not by_path.is_file("/opt/libx.so", HERE)
    assert by_name.is_file(OTHER, HERE)
    assert not by_name.is_file("/opt/libnccl.so.22", HERE)
    wanted = Wanted(libraries=(by_name,), symbols=re.compile("^nccl"))
    assert wanted.looks_into(OTHER, HERE, is_program=False)
    assert wanted.wants("ncclAllReduce", OTHER, HERE)
    assert not wanted.wants("ncclAllReduce", RUNTIME, HERE)
    assert not wanted.wants("pncclAllReduce", OTHER, HERE)


def test_a_path_without_a_file() -> None:
    with pytest.raises(OSError, match="No such file"):
        Library.at("/no/such/lib.so")


def test_a_name_is_not_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder may be another user's."""
    (tmp_path / "libfoo.so.1").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    assert Library.at("libfoo.so.1") == Library("libfoo.so.1")
    assert Library.at("./libfoo.so.1").identity
    assert libraries("libfoo.so.1") == (Library("libfoo.so.1"),)


def test_a_name_that_is_a_link() -> None:
    library = Library.at("libfoo.so.1")
    assert library.is_file("/usr/lib/libfoo.so.1", HERE)
    assert library.is_file("/usr/lib/libfoo.so.1.2.3", HERE)
    assert not library.is_file("/usr/lib/libfoo.so.10", HERE)
    assert not Library.at("foo").is_file("/usr/bin/foo.1", HERE)


@pytest.mark.parametrize(
    "name",
    ["_ZN2at4_ops2mm4callE", "_RNvC1a1b", "main.deep", "_setjmp", "__sigsetjmp", "siglongjmp", "vfork", "swapcontext"],
)
def test_functions_whose_return_cannot_be_watched(name: str) -> None:
    wanted = Wanted(libraries=(Library(OTHER, HERE),), symbols=re.compile(""))
    assert not wanted.wants(name, OTHER, HERE)
    assert wanted.wants("ncclAllReduce", OTHER, HERE)


def test_what_was_asked_for_and_must_not_have_a_probe() -> None:
    wanted = Wanted(libraries=(Library.at("libnccl.so.2"),), symbols=re.compile("."))
    assert wanted.is_unsafe("_ZN4ncclEv", OTHER, HERE)
    assert wanted.is_unsafe("setjmp", OTHER, HERE)
    assert not wanted.is_unsafe("ncclInit", OTHER, HERE)
    assert not wanted.is_unsafe("setjmp", RUNTIME, HERE), "nobody asked for it there"
