"""Programs at functions of files: uprobes, in the best way that the kernel has.

A session link runs one program at the entry and at the return of many functions (6.13); a multi link runs one at either
(6.6); older kernels need a perf event for each. libbpf 1.1 makes only the last kind. Layouts: union bpf_attr of
include/uapi/linux/bpf.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from ..outside.reads import is_copy
from .bpfobject import Link, Object
from .libbpf import BpfError, UprobeOptions, check_pointer, library

_SYS_BPF = {"x86_64": 321, "aarch64": 280}
_PROG_LOAD, _LINK_CREATE = 5, 28
_KPROBE = 2
"""BPF_PROG_TYPE_KPROBE."""
_MULTI, _SESSION = 48, 57
"""BPF_TRACE_UPROBE_MULTI and BPF_TRACE_UPROBE_SESSION."""
_AT_RETURN = 1
"""BPF_F_UPROBE_MULTI_RETURN."""
_ATTRIBUTES = 168
"""Bytes; the kernel accepts more than it knows if they are 0."""
_LINK_HEAD = struct.Struct("=4I4Q3I")
"""prog_fd, target_fd, attach_type, flags; then path, offsets, ref_ctr_offsets, cookies, cnt, flags, pid."""
_LOAD_HEAD = struct.Struct("=IIQQIIQII16sII")
"""prog_type, insn_cnt, insns, license, log_level, log_size, log_buf, kern_version, prog_flags, prog_name, prog_ifindex,
expected_attach_type."""
_RETURN_ZERO = struct.pack("=QQ", 0x00000000000000B7, 0x0000000000000095)
"""r0 = 0; exit."""


class Way(Enum):
    """How programs get to functions: its name for the user, and the attach type with which they are loaded."""

    SESSION = "session links", _SESSION
    MULTI = "multi links", _MULTI
    SINGLE = "one event per function", 0

    @property
    def title(self) -> str:
        return self.value[0]

    @property
    def attach_type(self) -> int:
        return self.value[1]


class Place(NamedTuple):
    """An instruction: its offset in the file, and what `bpf_get_attach_cookie` returns there. ``counter``: the offset
    of a number that the kernel increments in each process while there is a probe; 0: none."""

    offset: int
    cookie: int
    counter: int = 0


class Descriptor(Link):
    """A link that libbpf does not know."""

    def __init__(self, fd: int) -> None:
        super().__init__(0)
        self._fd = fd

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def best_way(ways: Sequence[Way] = (Way.SESSION, Way.MULTI)) -> Way:
    """The first one that the kernel has, else one event per function. Asks it: it refuses a link for a folder in
    another way than one whose type it does not know."""
    for way in ways:
        try:
            program = _load_nothing(way.attach_type)
        except OSError:
            continue
        try:
            _link(program, way.attach_type, b"/", [Place(0, 0)], 0)
        except OSError as error:
            if error.errno == errno.EBADF:
                return way
        finally:
            os.close(program)
    return Way.SINGLE


def attach(loaded: Object, way: Way, names: tuple[str, str, str], fd: int, places: Sequence[Place]) -> list[Link]:
    """Attaches programs to ``places`` of the open file ``fd``, at entry and return. BpfError when the kernel refuses.

    ``names`` of the loaded programs: for both in one, for the entry, for the return; "" for none.
    """
    _check(fd)
    path = b"/proc/self/fd/%d" % fd
    both, entry, end = names
    if way is Way.SINGLE:
        return _attach_each(loaded, entry, end, path, places)
    links: list[Link] = []
    # Returns first: every call that is seen to begin is seen to end.
    steps = [(both, 0)] if way is Way.SESSION else [(end, _AT_RETURN), (entry, 0)]
    steps = [step for step in steps if step[0]]
    try:
        for name, flags in steps:
            links.append(Descriptor(_link(loaded.programs[name].fd, way.attach_type, path, places, flags)))
    except OSError as error:
        for link in links:
            link.close()
        raise BpfError("attach uprobes", error.errno or 0, []) from error
    return links


def attach_entry(loaded: Object, name: str, fd: int, offset: int) -> Link:
    """Attaches a program to one instruction of an open file. BpfError when the kernel refuses."""
    _check(fd)
    options = UprobeOptions(sz=ctypes.sizeof(UprobeOptions))
    pointer, path = loaded.programs[name].pointer, b"/proc/self/fd/%d" % fd
    found = library().bpf_program__attach_uprobe_opts(pointer, -1, path, offset, ctypes.byref(options))
    return Link(check_pointer(found, f"attach {name}"))


def _check(fd: int) -> None:
    """BpfError for a file whose file system may never answer: the kernel would read it in this process."""
    if is_copy(fd):
        raise BpfError("it is on a file system of an ordinary user, which could make a probe wait", errno.EPERM, [])


def _attach_each(loaded: Object, entry: str, end: str, path: bytes, places: Sequence[Place]) -> list[Link]:
    links: list[Link] = []
    try:
        for name, at_return in ((end, True), (entry, False)) if end else ((entry, False),):
            pointer = loaded.programs[name].pointer
            for offset, cookie, counter in places:
                options = UprobeOptions(
                    sz=ctypes.sizeof(UprobeOptions), ref_ctr_offset=counter, bpf_cookie=cookie, retprobe=at_return
                )
                found = library().bpf_program__attach_uprobe_opts(pointer, -1, path, offset, ctypes.byref(options))
                links.append(Link(check_pointer(found, f"attach {name}")))
    except BaseException:
        for link in links:
            link.close()
        raise
    return links


def _link(program: int, attach_type: int, path: bytes, places: Sequence[Place], flags: int) -> int:
    """Makes a link; returns its descriptor. OSError."""
    count = len(places)
    text = ctypes.create_string_buffer(path)
    offsets = (ctypes.c_uint64 * count)(*(place.offset for place in places))
    cookies = (ctypes.c_uint64 * count)(*(place.cookie for place in places))
    counters = (ctypes.c_uint64 * count)(*(place.counter for place in places))
    counted = ctypes.addressof(counters) if any(place.counter for place in places) else 0
    pointers = ctypes.addressof(text), ctypes.addressof(offsets), counted, ctypes.addressof(cookies)
    return bpf(_LINK_CREATE, _LINK_HEAD.pack(program, 0, attach_type, 0, *pointers, count, flags, 0))


def _load_nothing(attach_type: int) -> int:
    """Loads a program that does nothing; returns its descriptor. OSError."""
    code = ctypes.create_string_buffer(_RETURN_ZERO)
    text = ctypes.create_string_buffer(b"GPL")
    where = ctypes.addressof(code), ctypes.addressof(text)
    return bpf(_PROG_LOAD, _LOAD_HEAD.pack(_KPROBE, 2, *where, 0, 0, 0, 0, 0, b"", 0, attach_type))


def bpf(command: int, head: bytes) -> int:
    """The system call, with the beginning of its attributes; the rest is 0. OSError."""
    attributes = ctypes.create_string_buffer(head, _ATTRIBUTES)
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    number = ctypes.c_long(_SYS_BPF[platform.machine()])
    fd = call(number, ctypes.c_int(command), attributes, ctypes.c_uint(len(attributes)))
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(fd)
