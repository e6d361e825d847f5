"""Links that run BPF programs at instructions of files, by system calls alone: `child` makes them.

Layouts: union bpf_attr of include/uapi/linux/bpf.h, struct perf_event_attr of include/uapi/linux/perf_event.h.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import functools
import os
import struct
from collections.abc import Sequence
from typing import NamedTuple

_SYS_BPF = {"x86_64": 321, "aarch64": 280}
_SYS_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
_LINK_CREATE, _ITER_CREATE = 28, 33
AT_RETURN = 1
"""BPF_F_UPROBE_MULTI_RETURN; of single events, bit 0 of `config`."""
_ATTRIBUTES = 168
"""Bytes; the kernel accepts more than it knows if they are 0."""
LINK_HEAD = struct.Struct("=4I4Q3I")
"""prog_fd, target_fd, attach_type, flags; then path, offsets, ref_ctr_offsets, cookies, cnt, flags, pid."""
_OF_EVENT = struct.Struct("=4IQ")
"""prog_fd, target_fd, attach_type, flags; then the cookie of a perf event."""
_BPF_PERF_EVENT = 41
"""Type of attachment of such a program (attach_type)."""
_EVENT = struct.Struct("=IIQ24x16xQQ40x")
"""type, size, config; then config1, the path, and config2, the offset: PERF_ATTR_SIZE_VER5."""
_TYPE = "/sys/bus/event_source/devices/uprobe/type"
_COUNTER_SHIFT = 32
"""Bit of `ref_ctr_offset` in `config`, as format/ref_ctr_offset beside that file says."""
_ENABLE, _SET_BPF = 0x2400, 0x40042408
_CLOEXEC = 8


class Place(NamedTuple):
    """An instruction: its offset in the file, and what `bpf_get_attach_cookie` returns there. ``counter``: the offset
    of a number that the kernel increments in each process while there is a probe; 0: none."""

    offset: int
    cookie: int
    counter: int = 0


def link_many(program: int, attach_type: int, path: bytes, places: Sequence[Place], flags: int) -> int:
    """A link of one program at many places; returns its descriptor. OSError."""
    count = len(places)
    text = ctypes.create_string_buffer(path)
    offsets = (ctypes.c_uint64 * count)(*(place.offset for place in places))
    cookies = (ctypes.c_uint64 * count)(*(place.cookie for place in places))
    counters = (ctypes.c_uint64 * count)(*(place.counter for place in places))
    counted = ctypes.addressof(counters) if any(place.counter for place in places) else 0
    pointers = ctypes.addressof(text), ctypes.addressof(offsets), counted, ctypes.addressof(cookies)
    return bpf(_LINK_CREATE, LINK_HEAD.pack(program, 0, attach_type, 0, *pointers, count, flags, 0))


def link_one(program: int, path: bytes, place: Place, flags: int) -> list[int]:
    """A perf event at one place, with the program; returns the descriptors that keep them. OSError."""
    event = _open_event(path, place, flags)
    fds = [event]
    try:
        try:
            fds.append(bpf(_LINK_CREATE, _OF_EVENT.pack(program, event, _BPF_PERF_EVENT, 0, place.cookie)))
        except OSError as error:
            if error.errno != errno.EINVAL or place.cookie:
                raise
            fcntl.ioctl(event, _SET_BPF, program)  # before 5.15 (b89fbfbb854c)
        fcntl.ioctl(event, _ENABLE, 0)
    except BaseException:
        for fd in reversed(fds):
            os.close(fd)
        raise
    return fds[::-1]


def _open_event(path: bytes, place: Place, flags: int) -> int:
    text = ctypes.create_string_buffer(path)
    config = flags | place.counter << _COUNTER_SHIFT
    head = _EVENT.pack(_type(), _EVENT.size, config, ctypes.addressof(text), place.offset)
    attributes = ctypes.create_string_buffer(head, len(head))
    number = ctypes.c_long(_SYS_PERF_EVENT_OPEN[os.uname().machine])
    return _called(number, attributes, ctypes.c_int(-1), ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_ulong(_CLOEXEC))


@functools.cache
def _type() -> int:
    with open(_TYPE) as file:
        return int(file.read())


def read_iterator(link: int) -> bytes:
    """Bytes that an iterator's program writes about all its objects. OSError."""
    fd = bpf(_ITER_CREATE, struct.pack("=II", link, 0))
    try:
        chunks = []
        while chunk := os.read(fd, 1 << 16):
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        os.close(fd)


def bpf(command: int, head: bytes) -> int:
    """The system call, with the beginning of its attributes; the rest is 0. OSError."""
    attributes = ctypes.create_string_buffer(head, _ATTRIBUTES)
    number = ctypes.c_long(_SYS_BPF[os.uname().machine])
    return _called(number, ctypes.c_int(command), attributes, ctypes.c_uint(len(attributes)))


def _called(*arguments: object) -> int:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    fd = call(*arguments)
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(fd)
