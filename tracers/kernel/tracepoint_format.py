"""Layout of a tracepoint's record in the running kernel: its ``format`` in tracefs.

Format: Documentation/trace/events.rst.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...converters.base.errors import StallscopeError
from . import tracefs

_ID = re.compile(r"^ID: (\d{1,9})$", re.MULTILINE | re.ASCII)
_FIELD = re.compile(
    r"^\tfield:[^;]*?(\w+)(?:\[[^\]]*\])?;\s*offset:(\d{1,9});\s*size:(\d{1,9});", re.MULTILINE | re.ASCII
)
_FLAG = re.compile(r'\{ *(0x[0-9a-f]{1,16}|0|[1-9]\d{0,18}), *"(\w)" *\}', re.ASCII)
"""Flag of a field. Before Linux 4.14 the first one has no space behind it: `{ 1, "S"} , { 2, "D" }`."""


class Format(NamedTuple):
    """``number``: by which perf_event_open(2) knows it. ``fields``: offset and size in bytes by name."""

    name: str
    number: int
    fields: dict[str, tuple[int, int]]
    text: str

    def offset(self, field: str, size: int) -> int:
        """StallscopeError if there is no such field of this size."""
        found = self.fields.get(field)
        if found is None or found[1] != size:
            has = f"has {field} in {found[1]} bytes" if found else f"has no {field}"
            raise StallscopeError(f"the tracepoint {self.name} {has} in this kernel")
        return found[0]

    def flags(self) -> dict[int, str]:
        """Letters by bit, as the event prints them."""
        found = {int(bit, 0): letter for bit, letter in _FLAG.findall(self.text)}
        return {bit: letter for bit, letter in found.items() if bit and not bit & bit - 1}


def read_format(tracepoint: str) -> Format:
    """Format of ``system:event``. StallscopeError if it cannot be read."""
    try:
        return parse_format(tracepoint, tracefs.read(f"events/{tracepoint.replace(':', '/')}/format"))
    except OSError as error:
        raise StallscopeError(
            f"the tracepoint {tracepoint} cannot be read: {error.strerror}", "trace-doctor says what is missing"
        ) from None


def parse_format(tracepoint: str, text: str) -> Format:
    """StallscopeError if it is not the text of one."""
    number = _ID.search(text)
    fields = {name: (int(offset), int(size)) for name, offset, size in _FIELD.findall(text)}
    if number is None or not fields:
        raise StallscopeError(f"the format of the tracepoint {tracepoint} is not understood")
    return Format(tracepoint, int(number[1]), fields, text)
