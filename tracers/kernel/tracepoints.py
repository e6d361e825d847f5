"""Places in the kernel where a program can be attached by name: tracepoints, and functions (kprobes).

Their names: Documentation/trace/events.rst and kprobetrace.rst. Options: struct bpf_perf_event_opts and struct
bpf_kprobe_opts of libbpf 1.0's libbpf.h.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ...converters.base.errors import StallscopeError
from . import perf_events, tracefs
from .bpfobject import Link, Object
from .libbpf import BpfError, KprobeOptions, PerfEventOptions, check_pointer, library, take_log

_KALLSYMS = Path("/proc/kallsyms")
_KPROBES = Path("/sys/bus/event_source/devices/kprobe")
_FIELD = re.compile(
    r"^\tfield:([^;]*?)\s*(\w+)((?:\[[^\]]*\])?);\s*offset:([0-9]{1,5});\s*size:([0-9]{1,5});\s*signed:([01]);",
    re.MULTILINE | re.ASCII,
)
_FUNCTION = re.compile(rb"^[0-9a-f]+ [tT] (\S+)$", re.MULTILINE)
_COMMON = "common_"


class Field(NamedTuple):
    """Field of a tracepoint: ``pid_t``, ``pid``. ``offset`` and ``size``: of its bytes in the record."""

    type: str
    name: str
    offset: int = 0
    size: int = 0
    is_signed: bool = False


def tracepoints() -> list[str]:
    """All that the kernel has, as ``system:event``. StallscopeError if they cannot be listed."""
    try:
        return tracefs.read("available_events").split()
    except OSError as error:
        raise StallscopeError(
            f"the kernel's list of tracepoints cannot be read: {error.strerror}",
            "run it as root, or give CAP_DAC_READ_SEARCH (docs/privileges.md)",
        ) from None


def fields(tracepoint: str) -> list[Field]:
    """Fields that are not the same for every tracepoint; none if they cannot be read."""
    try:
        text = tracefs.read(f"events/{tracepoint.replace(':', '/')}/format")
    except (OSError, StallscopeError):
        return []
    found = [
        Field(kind + bounds, name, int(offset), int(size), signed == "1")
        for kind, name, bounds, offset, size, signed in _FIELD.findall(text)
    ]
    return [field for field in found if not field.name.startswith(_COMMON)]


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


def attach_tracepoint(loaded: Object, program: str, tracepoint: str, cookie: int = 0) -> Link:
    """Attaches to ``system:event``, by its number: libbpf would look for tracefs where the host mounts it. BpfError
    when the kernel refuses, StallscopeError if there is no tracefs for this user."""
    what = f"attach {program}"
    try:
        attr = perf_events.Attr(type=perf_events.TYPE_TRACEPOINT, config=tracefs.number_of(tracepoint))
        # A program runs on every core, wherever its event is.
        event = perf_events.open_event(attr, perf_events.online_cpus()[0])
    except OSError as error:
        raise BpfError(what, error.errno or 0, []) from error
    options = PerfEventOptions(sz=ctypes.sizeof(PerfEventOptions), bpf_cookie=cookie)
    pointer = loaded.programs[program].pointer
    found = library().bpf_program__attach_perf_event_opts(pointer, event, ctypes.byref(options))
    if not found:
        code = ctypes.get_errno()
        os.close(event)  # a link would have taken it over
        raise BpfError(what, code, take_log())
    return Link(found)


def attach_tracepoints(loaded: Object, places: Mapping[str, str]) -> list[Link]:
    """All or none of them, in this order: tracepoints by program. Errors like `attach_tracepoint`."""
    links: list[Link] = []
    try:
        for program, tracepoint in places.items():
            links.append(attach_tracepoint(loaded, program, tracepoint))
    except BaseException:
        for link in links:
            link.close()
        raise
    return links


def attach_function(loaded: Object, program: str, function: str, cookie: int, *, at_return: bool = False) -> Link:
    """Attaches to the entry of a function of the kernel, or to its return. BpfError when the kernel refuses."""
    options = KprobeOptions(sz=ctypes.sizeof(KprobeOptions), bpf_cookie=cookie, retprobe=at_return)
    found = library().bpf_program__attach_kprobe_opts(
        loaded.programs[program].pointer, function.encode(), ctypes.byref(options)
    )
    return Link(check_pointer(found, f"attach {program}"))
