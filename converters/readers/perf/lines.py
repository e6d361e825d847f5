"""The two kinds of lines in the text of ``perf script``: the header of a sample, and a frame.

What they mean follows tools/perf/builtin-script.c in Linux, which prints them, and stackcollapse-perf.pl of FlameGraph,
whose rules for names are the ones that people know.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ..model import Frame, Kind, Module

if TYPE_CHECKING:
    from .inline import Inliner

_PROCESS = re.compile(rb"(\S.*?)\s+(\d+)(?:/+(\d*))?\s+")
_TIME = re.compile(rb"(?<!\S)\d+\.\d+:(?!\S)")
_EVENT = re.compile(rb":\s*(\d*)\s+(\S+):\s*\Z")
_IDS = re.compile(rb"(\d+)(?:/+(\d*))?\Z")
_CPU = re.compile(rb"\[\d+\]\Z")
_ADDRESS = re.compile(rb"\s*(\w+)\s*(.+)\Z")
_SHORT_FRAME = re.compile(rb"\s+([0-9a-f]+)(?:\s+(\S.*))?\Z")
"""Without ``dso``, maybe without ``sym``."""
_OFFSET = re.compile(rb"\+0x[\da-f]+\Z")
_ARGUMENTS = re.compile(rb"\((?!anonymous namespace\)).*")
_BRANCHES = re.compile(rb"\S/[MPN-]{1,3}/[X-]/[A-]/\d{1,10}(?:/\S*)?(?:\s|\Z)")
_JIT = re.compile(rb"/tmp/perf-\d+\.map")
_UNKNOWN = b"[unknown]"
_DELETED = b" (deleted)"
"""Behind the path of a file that was gone when perf looked."""
_DELETED_END = _DELETED + b")"
_MAX_HEADER = 1024
"""Bytes at both ends of a header that are looked at: this bounds the time of the expressions above."""
_MAX_DIGITS = 18
HEX = b"0123456789abcdef"
_CLOSING = ord(")")


class Header(NamedTuple):
    """``comm`` is "" and a number None where the line does not say it; ``event`` likewise."""

    comm: str
    pid: int | None
    tid: int | None
    event: bytes = b""
    period: int = 1


def parse_thread(text: bytes) -> Header | None:
    """The part of a header line before the time; None when there is no process id."""
    match = _PROCESS.match(text[:_MAX_HEADER] + b" ")
    if match is None or _TIME.search(match[0]):
        return None
    return _header(match[1], match[2], match[3])


def parse_header(line: bytes, *, loose: bool) -> Header | None:
    """A header line of any shape; ``loose`` also takes one without a process id, which may be blank."""
    header = parse_thread(line) if not line[:1].isspace() else None
    if header is None and loose:
        header = _parse_loose(line)
    match = _EVENT.search(line[-_MAX_HEADER:])
    if header is None or match is None or len(match[1]) > _MAX_DIGITS:
        return header
    return header._replace(event=match[2], period=int(match[1] or 0) or 1)


def _parse_loose(line: bytes) -> Header | None:
    """What -F leaves over: any of comm, pid/tid, [cpu], time:, period, event:, each with a space after it."""
    if len(line) > _MAX_HEADER or line[-1:] not in b" \t:":
        return None
    words = line.split()
    if words and words[-1].endswith(b":") and not _TIME.match(words[-1]):
        words.pop()
        if len(words) > 1 and words[-1].isdigit() and _TIME.match(words[-2]):
            words.pop()
    for known in (_TIME, _CPU):
        if words and known.match(words[-1]):
            words.pop()
    ids = _IDS.match(words[-1]) if words else None
    if ids:
        words.pop()
    return _header(b" ".join(words), ids[1] if ids else b"", ids[2] if ids else b"")


def _header(comm: bytes, first: bytes, second: bytes | None) -> Header | None:
    if len(first) > _MAX_DIGITS or len(second or b"") > _MAX_DIGITS:
        return None
    name = comm.decode(errors="surrogateescape")
    # One number alone is the thread's, and 0/0 (swapper) counts as one: stackcollapse-perf.pl.
    if tid := int(second or 0):
        return Header(name, int(first), tid)
    return Header(name, None, int(first) if first else None)


def without_address(line: bytes) -> tuple[bytes, bytes] | None:
    """All that `parse_frames` looks at in a line of the usual form, if addresses do not matter: function and module;
    None for any other form."""
    if line[-1:] != b")":
        return None
    head, plus, tail = line.rpartition(b"+0x")
    if plus:
        offset, _, module = tail.partition(b" (")
        if not offset or offset.translate(None, HEX) or b" (" in module.removesuffix(_DELETED_END):
            return None
    else:
        start = _module_at(line, len(line) - 1)
        head, module = line[: max(start, 0)], line[start + 2 :]
    address, _, function = head.lstrip().partition(b" ")
    return (function, module) if function and address.isalnum() else None


def is_branch_stack(line: bytes) -> bool:
    """Whether it is what -F +brstack, +brstacksym and +brstackoff print below the frames: ``FROM/TO/P/-/-/0`` and so
    on, with the flags of print_bstack_flags in builtin-script.c."""
    return b"/-/" in line and not line.startswith(b"\t") and _BRANCHES.search(line) is not None


def split_frame(line: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Address, function with its offset, and module of a frame; None for a line that is none."""
    end = line.rfind(b")")
    start = _module_at(line, end)
    if start >= 0 and (match := _ADDRESS.match(line[:start])):
        return match[1], match[2], line[start + 2 : end]
    if match := _SHORT_FRAME.match(line):
        return match[1], match[2] or _UNKNOWN, _UNKNOWN
    return None


def _module_at(line: bytes, end: int) -> int:
    """Where the parenthesis begins that closes at ``end``, with the space before it; -1 without one."""
    return line.rfind(b" (", 0, max(end - len(_DELETED) * line.endswith(_DELETED, 0, end), 0))


def inlined_frames(line: bytes, inliner: Inliner, *, context: bool) -> tuple[Frame, ...]:
    """The frames of one line as addr2line knows them, outermost first; empty when it does not. ``context`` adds
    the file and the line to the name."""
    parts = split_frame(line)
    frames = []
    for function, place in reversed(inliner.places(*parts)) if parts else ():
        name = (b"%b:%b" % (function, place) if context else function).decode(errors="surrogateescape")
        file, _, number = place.decode(errors="surrogateescape").rpartition(":")
        known = number.isdecimal() and len(number) <= _MAX_DIGITS
        module = Module(parts[2].decode(errors="surrogateescape")) if parts else None
        frames.append(Frame(name or "[unknown]", "native", module, 0, file, int(number) if known else 0))
    return tuple(frames)


def parse_frames(line: bytes, *, addrs: bool, java: bool) -> tuple[Frame, ...] | None:
    """The frames of one line, outermost first: several where functions were inlined (``a->b``), none for a line that
    only repeats the process; None for a line that is no frame."""
    parts = split_frame(line)
    if parts is None:
        return None
    address, function, module = parts
    function = _OFFSET.sub(b"", function)
    if function.startswith(b"("):
        return ()
    names = function.split(b"->")
    while names and not names[-1]:
        names.pop()
    kind = _kind(module)
    path = module.decode(errors="surrogateescape")
    home = None if module in (_UNKNOWN, b"inlined") else Module(path)
    frames = []
    for i, name in enumerate(names):
        if name == _UNKNOWN:
            name = _unknown(address if addrs else b"", module)
        name = _tidy(name, java)
        if i:
            name += b"" if b"_[i]" in name else b"_[i]"
        elif kind == "jit":
            name = name.removesuffix(b"_[j]")
        text = name.decode(errors="surrogateescape") or "[unknown]"
        frames.append(Frame(text, "native" if i else kind, home))
    return tuple(frames)


def _kind(module: bytes) -> Kind:
    if (module.startswith(b"[") or module.endswith(b"vmlinux")) and b"unknown" not in module:
        return "kernel"
    return "jit" if _JIT.search(module) else "native"


def _unknown(address: bytes, module: bytes) -> bytes:
    known = b"unknown" if module == _UNKNOWN else module.removesuffix(_DELETED).rpartition(b"/")[2]
    return b"[%b <%b>]" % (known, address) if address else b"[%b]" % known


def _tidy(name: bytes, java: bool) -> bytes:
    """Without arguments and quotes; ``Lorg/foo/Bar;.baz`` of a Java process without the L."""
    name = name.replace(b";", b":")
    method = name.find(b".(")
    if method < 0 or name.find(b").", method + 2) < 0:  # net/http.(*Client).Do of Go keeps its receiver
        name = _ARGUMENTS.sub(b"", name)
    name = name.replace(b'"', b"").replace(b"'", b"")
    return name[1:] if java and name.startswith(b"L") and b"/" in name else name
