"""The two kinds of lines in the output of ``perf script``: the header of a sample, and a frame.

Their meaning follows tools/perf/builtin-script.c in Linux, which prints them, and stackcollapse-perf.pl of
FlameGraph, whose names users know. The script cuts a name at the first parenthesis, so that it cannot distinguish
``std::function<void (int)>::operator()`` from ``std::function<void (char)>::operator()``. Here a name loses only its
argument list.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ...model import Frame, Module
from ...model.kinds import kind_of_module
from ...names.cxx import inlined_names, without_arguments

if TYPE_CHECKING:
    from .inline import Inliner

_PROCESS = re.compile(rb"(\S+(?:\s+\S+)*?)\s+(\d+)(?:/+(\d*))?\s+")
_TIME = re.compile(rb"(?<!\S)\d+\.\d+:(?!\S)")
_EVENT = re.compile(rb":\s*(\d*)\s+(\S+):\s*\Z")
_FLAT = re.compile(
    rb"\s*(\S.{0,40}?\s{1,32}\d{1,10}(?:/\d{0,10})?\s{1,32}(?:\[\d+\]\s{1,32})?(?:\S{1,8}\s{1,32})?\d{1,12}\.\d{1,9}:\s{1,32}(?:\d{1,18}\s{1,32})?"
    rb"\S{1,200}:)(?=\s{1,32}[0-9a-f]{1,16} \S)"
)
"""The header of a sample without a stack; its address, function and file follow on the same line."""
_IDS = re.compile(rb"(\d+)(?:/+(\d*))?\Z")
_CPU = re.compile(rb"\[\d+\]\Z")
_ADDRESS = re.compile(rb"\s*(\w+)(?:\s+(.*))?\Z")
_SHORT_FRAME = re.compile(rb"\s+([0-9a-f]+)(?:\s+(\S.*))?\Z")
"""Line of a frame without ``dso``, and possibly without ``sym``."""
_OFFSET = re.compile(rb"\+0x[\da-f]+\Z")
_BRANCHES = re.compile(rb"\S/[MPN-]{1,3}/[X-]/[A-]/\d{1,10}(?:/\S*)?(?:\s|\Z)")
_UNKNOWN = b"[unknown]"
_ANONYMOUS = b"(anonymous namespace)::"
_DELETED = b" (deleted)"
"""perf appends this to the path of a deleted file."""
_DELETED_END = _DELETED + b")"
_MAX_HEADER = 1024
"""Bytes at both ends of a header that are matched, which bounds the time of the expressions above."""
_MAX_DIGITS = 18
HEX = b"0123456789abcdef"


class Header(NamedTuple):
    """``comm`` and ``event`` are "", and ids are None, if the line does not have them."""

    comm: str
    pid: int | None
    tid: int | None
    event: bytes = b""
    period: int = 1


def parse_thread(text: bytes) -> Header | None:
    """Parses the part of a header line before the time; None when there is no process id."""
    match = _PROCESS.match(text[:_MAX_HEADER] + b" ")
    if match is None or _TIME.search(match[0]):
        return None
    return _header(match[1], match[2], match[3])


def parse_header(line: bytes, *, loose: bool) -> Header | None:
    """Parses a header line of any shape; ``loose`` also accepts one without a process id, which may be blank."""
    header = parse_thread(line) if not line[:1].isspace() else None
    if header is None and loose:
        header = _parse_loose(line)
    match = _EVENT.search(line[-_MAX_HEADER:])
    if header is None or match is None or len(match[1]) > _MAX_DIGITS:
        return header
    return header._replace(event=match[2], period=int(match[1] or 0) or 1)


def split_sample(line: bytes) -> tuple[bytes, bytes] | None:
    """Header and frame of a sample without a stack, which perf prints on one line; None for any other line."""
    match = _FLAT.match(line) if line.endswith(b")") else None
    return (match[1], line[match.end() :]) if match else None


def _parse_loose(line: bytes) -> Header | None:
    """Parses any subset of -F's fields comm, pid/tid, [cpu], time:, period and event:, each followed by a space."""
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
    # A single number is the thread's, and 0/0 (swapper) counts as one, as in stackcollapse-perf.pl.
    if tid := int(second or 0):
        return Header(name, int(first), tid)
    return Header(name, None, int(first) if first else None)


def without_address(line: bytes) -> tuple[bytes, bytes] | None:
    """(function, module): all that `parse_frames` uses of a line of the usual form if addresses do not matter;
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
    """Whether it is the output of -F +brstack, +brstacksym or +brstackoff below the frames: ``FROM/TO/P/-/-/0`` and
    so on, with the flags of print_bstack_flags in builtin-script.c."""
    return b"/-/" in line and not line.startswith(b"\t") and _BRANCHES.search(line) is not None


def is_cut(lines: list[bytes]) -> bool:
    """Whether the last of ``lines``, which has no line end, is incomplete: it does not end like a frame."""
    *before, last = (line.rstrip(b"\r") for line in lines)
    frames = [line for line in before if line[:1].isspace()]
    return bool(last) and not last.endswith(b")") and (not frames or frames[-1].endswith(b")"))


def split_frame(line: bytes) -> tuple[bytes, bytes, bytes] | None:
    """(address, function with its offset, module) of a frame; None if the line is not a frame."""
    end = line.rfind(b")")
    start = _module_at(line, end)
    if start >= 0 and (match := _ADDRESS.match(line[:start])):
        return match[1], match[2] or _UNKNOWN, line[start + 2 : end]
    if match := _SHORT_FRAME.match(line):
        return match[1], match[2] or _UNKNOWN, _UNKNOWN
    return None


def _module_at(line: bytes, end: int) -> int:
    """Start of the parenthesis that closes at ``end``, including the space before it; -1 if there is none."""
    return line.rfind(b" (", 0, max(end - len(_DELETED) * line.endswith(_DELETED, 0, end), 0))


def inlined_frames(line: bytes, inliner: Inliner, *, context: bool) -> tuple[Frame, ...]:
    """The frames of one line according to addr2line, outermost first; empty if it has none. ``context`` adds
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
    """The frames of one line, outermost first: several if functions were inlined (``a->b``), none for a line that
    only repeats the process; None if the line is not a frame."""
    parts = split_frame(line)
    if parts is None:
        return None
    address, function, module = parts
    function = _OFFSET.sub(b"", function)
    if not function.strip():
        function = _UNKNOWN
    if function.startswith(b"(") and not function.startswith(_ANONYMOUS):
        return ()
    names = inlined_names(function)
    while names and not names[-1]:
        names.pop()
    path = module.decode(errors="surrogateescape")
    kind = kind_of_module(path)
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


def _unknown(address: bytes, module: bytes) -> bytes:
    known = b"unknown" if module == _UNKNOWN else module.removesuffix(_DELETED).rpartition(b"/")[2]
    return b"[%b <%b>]" % (known, address) if address else b"[%b]" % known


def _tidy(name: bytes, java: bool) -> bytes:
    """Removes arguments and quotes, and the L from ``Lorg/foo/Bar;.baz`` in a Java process."""
    name = without_arguments(name.replace(b";", b":")).replace(b'"', b"").replace(b"'", b"")
    return name[1:] if java and name.startswith(b"L") and b"/" in name else name
