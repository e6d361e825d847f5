"""Kinds of the objects of waits, by what the kernel tells of their inodes and sockets."""

from __future__ import annotations

import stat

from ....converters.model.wait_objects import DEVICE, FILE, FOLDER, OTHER, PIPE, SOCKET, TCP, TERMINAL, UDP, UNIX
from ...base.filesystems import TERMINALS
from ...kernel import objects
from ...kernel.objects import ObjectRecord

_KINDS = {stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFCHR: DEVICE, stat.S_IFBLK: DEVICE, stat.S_IFIFO: PIPE}


def kind_of(record: ObjectRecord) -> str:
    """The kind, one of those of `converters.model.wait_objects`."""
    if record.kind == stat.S_IFSOCK:
        if record.family == objects.UNIX:
            return UNIX
        is_internet = record.family in (objects.INET, objects.INET6)
        return {objects.TCP: TCP, objects.UDP: UDP}.get(record.protocol, SOCKET) if is_internet else SOCKET
    if record.kind == stat.S_IFCHR and record.magic == TERMINALS:
        return TERMINAL
    return _KINDS.get(record.kind, OTHER)
