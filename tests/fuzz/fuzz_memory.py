"""Targets that read what a process has in memory, what the kernel's programs send, and what helpers answer."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from fuzz_mutators import as_json, havoc
from fuzz_seeds import these
from fuzz_target import Target
from stallscope.tracers.cpython import functions, layouts, search
from stallscope.tracers.cpython.functions import Inside
from stallscope.tracers.cpython.layouts import Refused
from stallscope.tracers.cpython.lines import line_of
from stallscope.tracers.dwarf.parameters import parameters_of
from stallscope.tracers.expressions.asked import Asked, Fault
from stallscope.tracers.ioctls import devices
from stallscope.tracers.kernel import process_events, records, stack_store

_LARGEST = 64 << 20
_ADDRESS = (1 << 63) - 1
"""The largest that is read."""
_VERSIONS = ((3, 8), (3, 9), (3, 10), (3, 11), (3, 12), (3, 13), (3, 14))
_CODE, _TEXT, _NAME = 0x7F0000001000, 0x7F0000002000, 0x100
"""Addresses of types and of a string in `_Image`."""


class _Image:
    """Memory that has the input's bytes again and again: a process can map as much as it wants."""

    def __init__(self, data: bytes) -> None:
        self._data = data or b"\0"

    def read(self, address: int, size: int) -> bytes:
        """See `stallscope.tracers.cpython.memory.Memory`."""
        if not 0 <= address < 1 << 63:
            raise OSError("not an address")
        assert 0 <= size <= _LARGEST, f"{size} bytes were asked for"
        at = address % len(self._data)
        return (self._data[at:] + self._data * (size // len(self._data) + 1))[:size]

    def word(self, address: int) -> int:
        """See there."""
        return int(struct.unpack("<Q", self.read(address, 8))[0])


def interpreter(data: bytes) -> None:
    """Layouts that an interpreter publishes, its functions, their names and lines."""
    memory: Any = _Image(data)
    for version in _VERSIONS:
        try:
            layout = layouts.layout_of(version, 0, memory)
            layout.pack(layout.interpreters_head & _ADDRESS, 7, counted=True)
            layouts.check_threads(layout, 0, memory)
        except (Refused, OSError):
            layout = layouts._TABLES.get(version, layouts._TABLES[3, 12])
        for text_type in (_TEXT, 0):
            inside = Inside(replace(layout, version=version), _CODE if text_type else 0, text_type, 3)
            for address in (0, 16, 64):
                _function(memory, inside, address)


def _function(memory: Any, inside: Inside, address: int) -> None:
    try:
        functions.text_at(memory, inside, address)
        found = functions.function_at(memory, inside, address)
        words = np.frombuffer(memory.read(address & ~7, 4096), np.uint64)
        list(search._candidates(words, inside))
    except OSError:
        return
    if found is not None:
        found.line(6)


def code_lines(data: bytes) -> None:
    """Tables of lines, as long as they are read."""
    data = data[: functions._MAX_TABLE]
    for version in _VERSIONS:
        for instruction in (-1, 0, 6, 1 << 20):
            line_of(version, data, 7, instruction)


def kernel_records(data: bytes) -> None:
    """Reads what the kernel's programs send: as long as they make them, with any content."""
    for kind in (records.RECORD_EXEC, records.RECORD_EXIT, records.RECORD_CUT):
        records.parse_record(struct.pack("<I", kind) + data.ljust(1 << 10, b"\0"))
    head = struct.pack("<IIQ", 0, len(data) % 64, 7)
    records.parse_chain(head + data.ljust(64 * 40, b"\0"))
    records.parse_seeds(data[: len(data) // 8 * 8])
    store = stack_store.StackStore()
    for at in range(0, min(len(data), 1 << 14) - 23, 24):
        count = data[at] % 3
        store.add(
            struct.pack("<IIQ", 0, count, int.from_bytes(data[at : at + 4], "little")) + data[at : at + 8 * count]
        )
    store.find([7])


def perf_events(data: bytes) -> None:
    """The kernel's records of processes: their sizes are right, a program's name and path are its own."""
    events = process_events.ProcessEvents.__new__(process_events.ProcessEvents)
    events.lost, events._rings = 0, []
    chance, stream = random.Random(len(data)), b""
    for at in range(0, min(len(data), 1 << 14), 120):
        body = data[at : at + 120].ljust(120, b"\0")
        body = body[:32] + struct.pack("<II", body[32], body[33]) + body[40:]  # a device's numbers
        kind = chance.choice((3, 4, 7, 10, 2, 1))
        stream += struct.pack("<IHH", kind, chance.choice((0, 1 << 13, 1 << 14)), 128) + body
    for _ in events._parse(stream):
        pass


def parameters(data: bytes) -> None:
    """Reads what the process that reads debug information answers."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    for each in parameters_of(found, 2):
        _ = each.shown
        for text in ("a->next->depth > 3", "a[1] + retval == 2", "a.next", "*a", "b"):
            try:
                Asked.parse(where=[text]).bind(each.values)
            except Fault:
                continue


def device_names(data: bytes) -> None:
    """Names of files and their file systems."""
    half = len(data) // 2
    for mode in (0, 0o020000, 0o060000, 0o100000, 0o140000, 0o010000, 0o040000):
        devices.device_of(mode, int.from_bytes(data[:4], "little"), data[:half], data[half:])


def _interpreters() -> Sequence[bytes]:
    found = []
    for version, count in (((3, 13), 34), ((3, 14), 38)):
        number = version[0] << 24 | version[1] << 16
        values = [8 * (i + 1) for i in range(count)]
        found.append(struct.pack(f"<8sQQ{count}Q", b"xdebugpy", number, 0, *values).ljust(1024, b"\0"))
    string = struct.pack("<QQQqI", 1, _TEXT, 9, -1, 0x60 | 1 << 2).ljust(40, b"\0") + b"train.py\0".ljust(32, b"\0")
    head = struct.pack("<QQQ", 1, _CODE, 1).ljust(68, b"\0") + struct.pack("<I", 12)
    code = head + struct.pack("<20Q", *[_NAME] * 20)
    return [*found, code.ljust(_NAME, b"\0") + string, string * 4]


_ANSWER = json.dumps(
    {
        "functions": [
            {
                "parameters": [{"name": "a", "type": 2, "place": ["arg1"]}, {"name": "", "type": 2, "place": [16]}],
                "result": 3,
            },
            {"fault": "it is inlined"},
        ],
        "types": {
            "1": {"kind": "integer", "size": 4, "signed": True},
            "2": {"kind": "pointer", "target": 4},
            "3": {"kind": "array", "element": 1, "count": 3},
            "4": {"kind": "struct", "name": "node", "size": 16, "members": [["next", 0, 2], ["depth", 8, 1]]},
            "5": {"kind": "reference", "target": 4},
            "6": {"kind": "unreadable", "why": "a float"},
        },
    }
).encode()

TARGETS = (
    Target("python-memory", interpreter, _interpreters, havoc, share=2),
    Target("python-lines", code_lines, these(b"\x80\x00\xd8\x04\x0b\xf0\x02\x03", b"\x02\x01\x04\xff"), havoc),
    Target("kernel-records", kernel_records, these(bytes(range(256)) * 3), havoc, share=0.3),
    Target("process-events", perf_events, these(bytes(range(256)) * 3), havoc, share=0.3),
    Target("parameters", parameters, these(_ANSWER), as_json, share=0.7),
    Target(
        "devices", device_names, these(b"\x01\x00\xc3\x00devtmpfsnvidia0", b"anon_inodefs[eventfd]"), havoc, share=0.3
    ),
)
