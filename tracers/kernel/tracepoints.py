"""Places in the kernel where a program can be attached by name: tracepoints, and functions (kprobes).

Their names: Documentation/trace/events.rst and kprobetrace.rst. Options: struct bpf_tracepoint_opts and struct
bpf_kprobe_opts of libbpf 1.0's libbpf.h.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import NamedTuple

from ...converters.base.errors import StallscopeError
from .bpfobject import Link, Object
from .libbpf import KprobeOptions, TracepointOptions, check_pointer, library

_FOLDERS = Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing")
_KALLSYMS = Path("/proc/kallsyms")
_KPROBES = Path("/sys/bus/event_source/devices/kprobe")
_FIELD = re.compile(
    r"^\tfield:([^;]*?)\s*(\w+)((?:\[[^\]]*\])?);\s*offset:([0-9]{1,5});\s*size:([0-9]{1,5});\s*signed:([01]);",
    re.MULTILINE | re.ASCII,
)
_FUNCTION = re.compile(rb"^[0-9a-f]+ [tT] (\S+)$", re.MULTILINE)
_COMMON = "common_"


class Field(NamedTuple):
    """What a tracepoint tells: ``pid_t``, ``pid``. ``offset`` and ``size``: of its bytes in the record."""

    type: str
    name: str
    offset: int = 0
    size: int = 0
    is_signed: bool = False


def tracepoints() -> list[str]:
    """All that the kernel has, as ``system:event``. StallscopeError if they cannot be listed."""
    for folder in _FOLDERS:
        try:
            return (folder / "available_events").read_text().split()
        except OSError as error:
            why = error.strerror
    raise StallscopeError(
        f"the kernel's list of tracepoints cannot be read: {why}",
        "run as root, and if it is not there: mount -t tracefs tracefs /sys/kernel/tracing",
    )


def fields(tracepoint: str) -> list[Field]:
    """Those that are not the same for every tracepoint; none if they cannot be read."""
    for folder in _FOLDERS:
        try:
            text = (folder / "events" / tracepoint.replace(":", "/") / "format").read_text()
        except OSError:
            continue
        found = [
            Field(kind + bounds, name, int(offset), int(size), signed == "1")
            for kind, name, bounds, offset, size, signed in _FIELD.findall(text)
        ]
        return [field for field in found if not field.name.startswith(_COMMON)]
    return []


def kernel_functions() -> list[str]:
    """The names of the kernel's functions, sorted. Whether one can have a probe is known when it is attached."""
    try:
        names = _FUNCTION.findall(_KALLSYMS.read_bytes())
    except OSError:
        return []
    return sorted({name.decode("utf-8", "backslashreplace") for name in names})


def has_kprobes() -> bool:
    """Whether the kernel takes probes on its functions."""
    return _KPROBES.exists()


def attach_tracepoint(loaded: Object, program: str, tracepoint: str, cookie: int) -> Link:
    """BpfError when the kernel refuses."""
    options = TracepointOptions(sz=ctypes.sizeof(TracepointOptions), bpf_cookie=cookie)
    system, _, event = tracepoint.encode().partition(b":")
    found = library().bpf_program__attach_tracepoint_opts(
        loaded.programs[program].pointer, system, event, ctypes.byref(options)
    )
    return Link(check_pointer(found, f"attach {program}"))


def attach_function(loaded: Object, program: str, function: str, cookie: int, *, at_return: bool = False) -> Link:
    """At the entry of a function of the kernel, or at its return. BpfError when the kernel refuses."""
    options = KprobeOptions(sz=ctypes.sizeof(KprobeOptions), bpf_cookie=cookie, retprobe=at_return)
    found = library().bpf_program__attach_kprobe_opts(
        loaded.programs[program].pointer, function.encode(), ctypes.byref(options)
    )
    return Link(check_pointer(found, f"attach {program}"))
