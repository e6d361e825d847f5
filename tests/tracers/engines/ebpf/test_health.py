from __future__ import annotations

import errno
import os
import resource
from pathlib import Path
from typing import NoReturn

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base import privilege, procfs
from stallscope.tracers.engines.ebpf import health, probes
from stallscope.tracers.engines.ebpf.health import Finding
from stallscope.tracers.kernel import bpfobject, libbpf, process_events, shapes, tracefs

NEEDED = [
    "privilege",
    "pid namespace",
    "kernel lockdown",
    "open files",
    "libbpf",
    "type information (BTF)",
    "BPF programs",
]
USEFUL = [
    "perf events",
    "samples",
    "system call tracepoints",
    "kernel symbols",
    "unwind table cache",
    "kprobes",
    "uprobes",
    "hardware counters",
    "tracefs",
]


def test_this_machine(root: None) -> None:
    before = len(os.listdir("/proc/self/fd"))
    findings = list(health.check_all())
    assert {f.name for f in findings} == {*NEEDED, *USEFUL}
    assert all(f.ok for f in findings if f.name in NEEDED)
    assert not any(f.needed for f in findings if f.name in USEFUL)
    assert all(f.detail for f in findings)
    assert all(f.remedy for f in findings if not f.ok)
    (programs,) = [f for f in findings if f.name == "BPF programs"]
    assert any(shape.name in programs.detail for shape in shapes.SHAPES)
    # The first use leaves the library behind, and tracefs if it is not mounted.
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_privilege(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: 0x20)
    found = health._privilege()
    assert (found.ok, found.needed) == (False, True)
    assert found.detail == f"uid {os.geteuid()}, capabilities 0x20"
    assert found.remedy.startswith("sudo trace-doctor")


def test_pid_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "in_host_pid_namespace", lambda: False)
    found = health._pid_namespace()
    assert (found.ok, found.needed) == (False, True)
    assert "--pid=host" in found.remedy


def test_too_few_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    found = health._open_files()
    assert (found.ok, found.needed) == (False, True)
    assert found.detail.startswith("only 64 files may be open at a time")
    assert "ulimit -n" in found.remedy


@pytest.mark.parametrize(
    ("text", "ok", "detail"),
    [
        ("[none] integrity confidentiality\n", True, "none"),
        ("none [integrity] confidentiality\n", True, "integrity"),
        ("none integrity [confidentiality]\n", False, "confidentiality"),
        (None, True, "none"),
    ],
)
def test_lockdown(text: str | None, ok: bool, detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_LOCKDOWN", tmp_path / "lockdown")
    if text is not None:
        (tmp_path / "lockdown").write_text(text)
    found = health._lockdown()
    assert (found.ok, found.detail) == (ok, detail)
    assert found.needed or ok


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> NoReturn:
        raise StallscopeError("libbpf.so.1 cannot be used", "install it")

    monkeypatch.setattr(libbpf, "library", missing)
    monkeypatch.setattr(bpfobject, "library", missing)
    assert health._libbpf() == Finding("libbpf", False, True, "libbpf.so.1 cannot be used", "install it")
    monkeypatch.setattr(privilege, "require", lambda: None)
    monkeypatch.setattr(probes, "KERNEL_BTF", Path("/"))
    assert health._programs(None) == Finding("BPF programs", False, True, "libbpf.so.1 cannot be used", "install it")


def test_no_type_information(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "KERNEL_BTF", tmp_path / "vmlinux")
    found = health._btf(None)
    assert (found.ok, found.needed) == (False, True)
    assert found.detail == f"{tmp_path}/vmlinux: No such file or directory"
    assert "--btf PATH" in found.remedy
    (tmp_path / "other").write_bytes(bytes(12345))
    assert health._btf(tmp_path / "other").detail == f"{tmp_path}/other, 12,345 bytes"


def test_programs_that_the_kernel_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    class Refusing:
        def __init__(self, *_: object) -> None: ...

        def begin(self) -> NoReturn:
            raise libbpf.BpfError("map scope_tgids", errno.EPERM, [])

        def close(self) -> None:
            closed.append(True)

    monkeypatch.setattr(probes, "Probes", Refusing)
    found = health._programs(None)
    assert (found.ok, found.needed, found.detail) == (False, True, "map scope_tgids: Operation not permitted")
    assert closed == [True]


def test_no_perf_events(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> NoReturn:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(process_events, "ProcessEvents", refuse)
    found = health._process_events()
    assert (found.ok, found.needed) == (False, False)
    assert found.detail == "Permission denied: names of short-lived programs get lost"


@pytest.mark.parametrize(
    ("text", "ok"),
    [
        ("ffffffff81000000 T _stext\n", True),
        ("0000000000000000 A fixed_percpu_data\n0000000000001000 A cpu_debug_store\n", True),  # x86-64 until 6.14
        ("0000000000000000 A fixed_percpu_data\n0000000000000000 T _stext\n", False),
        ("", False),
        (None, False),
    ],
)
def test_kernel_symbols(text: str | None, ok: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_KALLSYMS", tmp_path / "kallsyms")
    if text is not None:
        (tmp_path / "kallsyms").write_text(text)
    found = health._kernel_symbols()
    assert (found.ok, found.needed) == (ok, False)


def test_other_ways_of_tracing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_PMUS", tmp_path)
    (tmp_path / "uprobe").mkdir()
    found = {f.name: f for f in health._optional()}
    assert (found["uprobes"].ok, found["uprobes"].detail) == (True, "here")
    assert not found["kprobes"].ok
    assert not found["hardware counters"].ok
    assert not any(f.needed for f in found.values())


def test_cache_of_unwind_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALLSCOPE_CACHE", str(tmp_path / "cache"))
    found = health._cache()
    assert (found.name, found.ok, found.needed, found.detail) == (
        "unwind table cache",
        True,
        False,
        f"{tmp_path}/cache",
    )
    assert list((tmp_path / "cache").iterdir()) == []
    (tmp_path / "cache").chmod(0o777)
    found = health._cache()
    assert not found.ok
    assert found.detail == (
        f"{tmp_path}/cache: no cache: the folder {tmp_path}/cache is another user's, or others can write to it"
    )
    assert "STALLSCOPE_CACHE" in found.remedy


def test_a_folder_that_this_user_may_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    def stat(_: Path) -> NoReturn:
        raise PermissionError(13, "denied")

    monkeypatch.setattr(Path, "stat", stat)
    found = {f.name: f for f in health._optional()}
    assert (found["kprobes"].ok, found["kprobes"].detail) == (False, "not for this user (no command needs it)")


def test_tracefs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracefs, "folder", lambda: Path("/there"))
    monkeypatch.setattr(tracefs, "_own", None)
    assert (health._tracefs().ok, health._tracefs().detail) == (True, "/there")
    monkeypatch.setattr(tracefs, "_own", 7)
    assert "for itself alone" in health._tracefs().detail

    def refuse() -> NoReturn:
        raise StallscopeError("it is not mounted", "mount it")

    monkeypatch.setattr(tracefs, "folder", refuse)
    found = health._tracefs()
    assert (found.ok, found.remedy, found.lacking) == (False, "mount it", ("trace-ioctl",))
    assert found.detail == "it is not mounted (trace-ioctl, trace-func t:… and the engine bcc need it)"
