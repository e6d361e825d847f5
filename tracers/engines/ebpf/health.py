"""Checks of what this machine allows a tracer to do: each says what it found and, if it failed, how to fix it."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ....converters.base.errors import StallscopeError
from ...base import capabilities, descriptors, privilege, procfs

_PMUS = Path("/sys/bus/event_source/devices")
_LOCKDOWN = Path("/sys/kernel/security/lockdown")
_KALLSYMS = Path("/proc/kallsyms")
_USED = {"hardware counters": "only trace-oncpu --event needs them"}
_MEASURES = 2
"""Number of measures in trace-wall."""


@dataclass(frozen=True)
class Finding:
    """``needed``: no command can run without it. ``detail``: what was found, or why it failed."""

    name: str
    ok: bool
    needed: bool
    detail: str
    remedy: str = ""
    more: str = ""
    """Lines for -v."""
    lacking: tuple[str, ...] = ()
    """Commands that cannot run if it failed."""


def check_all(btf: Path | None = None) -> Iterator[Finding]:
    """All checks in order. The later ones need what the earlier ones look for, and fail with them."""
    yield _privilege()
    yield from _capabilities()
    yield _pid_namespace()
    yield _lockdown()
    yield _open_files()
    yield _libbpf()
    yield _btf(btf)
    yield _programs(btf)
    yield _process_events()
    yield _samples(btf)
    yield _ioctls(btf)
    yield _kernel_symbols()
    yield _cache()
    yield _tracefs()
    yield from _optional()


def _privilege() -> Finding:
    ok = privilege.allowed()
    detail = f"uid {os.geteuid()}, capabilities {privilege.effective_capabilities():#x}"
    remedy = "sudo trace-doctor; in a container: docker run --privileged --pid=host"
    return Finding("privilege", ok, True, detail, remedy)


def _capabilities() -> Iterator[Finding]:
    """Findings on what each capability that is not there costs."""
    if not privilege.allowed():
        return
    effective = capabilities.held().effective
    for capability, cost in capabilities.COSTS.items():
        if not effective & 1 << capability:
            remedy = f"sudo trace-doctor, or AmbientCapabilities=CAP_{capability.name} (docs/privileges.md)"
            yield Finding(f"CAP_{capability.name}", False, False, f"not there: {cost}", remedy)


def _pid_namespace() -> Finding:
    ok = procfs.in_host_pid_namespace()
    detail = "the host's" if ok else "a container's own: process ids here are not those that the kernel reports"
    return Finding("pid namespace", ok, True, detail, "docker run --pid=host, or run on the host itself")


def _lockdown() -> Finding:
    try:
        text = _LOCKDOWN.read_text()
    except OSError:
        return Finding("kernel lockdown", True, False, "none")
    mode = re.search(r"\[(\w+)\]", text)
    found = mode[1] if mode else text.strip()
    remedy = "boot without lockdown=confidentiality (Secure Boot can switch it on)"
    return Finding("kernel lockdown", found != "confidentiality", True, found, remedy)


def _open_files() -> Finding:
    from .engine import require_descriptors

    descriptors.allow_many()
    try:
        require_descriptors(_MEASURES)
    except StallscopeError as error:
        return Finding("open files", False, True, error.cause, error.remedy)
    return Finding("open files", True, True, f"{descriptors.limit():,} at a time")


def _libbpf() -> Finding:
    from ...kernel import libbpf

    try:
        version, loaded = libbpf.version(), libbpf.loaded()
    except StallscopeError as error:
        return Finding("libbpf", False, True, error.cause, error.remedy)
    more = f"the system's cannot be used: {loaded.refused}" if loaded.refused else ""
    return Finding("libbpf", True, True, f"{version}, {loaded.origin}", more=more)


def _btf(btf: Path | None) -> Finding:
    from .probes import KERNEL_BTF

    path = btf or KERNEL_BTF
    try:
        detail = f"{path}, {path.stat().st_size:,} bytes"
        return Finding("type information (BTF)", True, True, detail)
    except OSError as error:
        remedy = "trace-offcpu --btf PATH with a file for this kernel, or a kernel with CONFIG_DEBUG_INFO_BTF=y"
        return Finding("type information (BTF)", False, True, f"{path}: {error.strerror}", remedy)


def _programs(btf: Path | None) -> Finding:
    """A real test: loads, attaches, and briefly traces this process."""
    from ...base.scope import Scope
    from ...measures.offcpu import OffCpu
    from .measures.registry import collectors
    from .probes import ProbeOptions, Probes

    name = "BPF programs"
    begin = time.monotonic()
    try:
        options = ProbeOptions(Scope(tgids={os.getpid()}), collectors([OffCpu()]), btf=btf)
        engine = Probes(options, lambda _: None)
    except StallscopeError as error:
        return Finding(name, False, True, error.cause, error.remedy, error.details)
    took = time.monotonic() - begin
    try:
        engine.begin()
        engine.stop()
    except StallscopeError as error:
        return Finding(name, False, True, error.cause, error.remedy)
    finally:
        engine.close()
    return Finding(name, True, True, f"loaded and attached in {took * 1000:.0f} ms ({engine.shape.name})")


def _process_events() -> Finding:
    from ...kernel.process_events import ProcessEvents

    try:
        ProcessEvents().close()
    except OSError as error:
        remedy = "allow perf_event_open (a container's seccomp profile forbids it: --privileged)"
        return Finding("perf events", False, False, f"{error.strerror}: names of short-lived programs get lost", remedy)
    return Finding("perf events", True, False, "mmap, exec and fork events of all processes")


def _samples(btf: Path | None) -> Finding:
    """Tests a clock on every core, and the program that it calls."""
    from ...base.scope import Scope
    from ...measures.commands import users
    from ...measures.oncpu import OnCpu
    from .measures.registry import collectors
    from .probes import ProbeOptions, Probes

    name, lacking = "samples", users(OnCpu)
    try:
        Probes(ProbeOptions(Scope(tgids={os.getpid()}), collectors([OnCpu()]), btf=btf), lambda _: None).close()
    except StallscopeError as error:
        remedy = "allow perf_event_open (a container's seccomp profile forbids it: --privileged)"
        return Finding(name, False, False, error.cause, remedy, error.details, lacking)
    return Finding(name, True, False, "a clock on every core", lacking=lacking)


def _ioctls(btf: Path | None) -> Finding:
    from ...base.scope import Scope
    from ...measures.commands import IOCTL, users
    from .measures.registry import collectors
    from .probes import ProbeOptions, Probes

    name = "system call tracepoints"
    try:
        Probes(ProbeOptions(Scope(tgids={os.getpid()}), collectors([IOCTL]), btf=btf), lambda _: None).close()
    except StallscopeError as error:
        return Finding(name, False, False, error.cause, error.remedy, error.details, users(IOCTL))
    return Finding(name, True, False, "of ioctl", lacking=users(IOCTL))


def _kernel_symbols() -> Finding:
    try:
        with open(_KALLSYMS, "rb") as file:
            # Symbols of per-CPU data begin at 0 even if nothing is hidden.
            hidden = all(line.startswith(b"0000000000000000 ") for line in file)
    except OSError as error:
        return Finding("kernel symbols", False, False, f"{_KALLSYMS}: {error.strerror}")
    detail = f"{_KALLSYMS} shows no addresses: kernel frames have no names" if hidden else str(_KALLSYMS)
    return Finding(
        "kernel symbols", not hidden, False, detail, "sysctl kernel.kptr_restrict=1 (2 hides them from root)"
    )


def _cache() -> Finding:
    from ...unwind.cache import TableCache

    cache = TableCache()
    problem = cache.check()
    cache.close()
    remedy = "make room there, or name a folder with STALLSCOPE_CACHE=/path: else every trace compiles them anew"
    return Finding(
        "unwind table cache", not problem, False, f"{cache.folder}{f': {problem}' if problem else ''}", remedy
    )


def _tracefs() -> Finding:
    from ...kernel import tracefs
    from ...measures.commands import IOCTL, users

    name, lacking = "tracefs", users(IOCTL)
    try:
        folder = tracefs.folder()
    except StallscopeError as error:
        detail = f"{error.cause} (trace-ioctl, trace-func t:… and the engine bcc need it)"
        return Finding(name, False, False, detail, error.remedy, lacking=lacking)
    own = "not mounted here: a trace that needs it mounts it for itself alone, where nobody sees it"
    return Finding(name, True, False, str(folder) if tracefs.own_mount() is None else own, lacking=lacking)


def _optional() -> Iterator[Finding]:
    """Findings on what other ways of tracing would use."""
    from ...measures.calls import Calls
    from ...measures.commands import users

    checks = [
        ("kprobes", _PMUS / "kprobe", "a kernel with CONFIG_KPROBES=y"),
        ("uprobes", _PMUS / "uprobe", "a kernel with CONFIG_UPROBE_EVENTS=y"),
        ("hardware counters", _PMUS / "cpu", "few virtual machines have them"),
    ]
    for name, folder, remedy in checks:
        unneeded = _USED.get(name, "no command needs it")
        try:
            ok = stat.S_ISDIR(folder.stat().st_mode)
        except PermissionError:
            yield Finding(name, False, False, f"not for this user ({unneeded})")
            continue
        except OSError:
            ok = False
        lacking = users(Calls) if name == "uprobes" else ()
        yield Finding(name, ok, False, "here" if ok else f"not here ({unneeded})", remedy, lacking=lacking)
