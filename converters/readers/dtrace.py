"""DTrace aggregations by stack: indented lines ``module`function+0x1``, innermost first, and the value below them.

Lines above a stack, less indented than its frames, are the other keys of the aggregation (``@[execname, pid,
ustack()]``): a name is the process, a number its id (used with --pid). ``stack()`` and ``ustack()`` may follow each
other. The command's own messages (``dtrace: description …``, the CPU and ID columns) are ignored; drops and histograms
are counted as lost.

Names are those of stackcollapse.pl of FlameGraph, with these differences: the script always leaves out the first three
lines; its other keys are innermost frames; in a C++ name it removes everything after the last ``(`` or ``<``, we only
the arguments; it removes an ``L`` from the front of every name, we only from Java's ``Lorg/foo``; an address without
a name is ``[module]`` or ``[unknown]`` here (--addrs shows it).
"""

from __future__ import annotations

import re

from ..model import Frame, Kind, Labels, Module, Profile
from ..names.cxx import inlined_names, without_arguments
from .base.counted import CountedStacks
from .base.options import ReadOptions
from .base.source import Source
from .base.stack_tally import pieces

EXPECTED = "a frame of DTrace: '  module`function+0x1', or a line with its stack's value"

_SNIFFED = 200
_PART = 20
"""Number of lines of which at least one is a frame with its module; Java's ``jstack`` output has few of them."""
_FRAME = re.compile(rb"[ \t]+[^\s`;]+`[^\s`;]")
_COUNT = re.compile(rb"[ \t]*-?\d+[ \t]*\Z")
_OFFSET = re.compile(rb"\+0x[0-9a-f]+\Z")
_ADDRESS = re.compile(rb"0x[0-9a-f]{1,16}\Z")
_PROBE = re.compile(rb"\s*\d+\s+\d+\s+\S*:\S*\s*\Z")
_DROPS = re.compile(rb"dtrace: (\d{1,18}) (?:\S+ )?drops?\b")
_KERNEL = (b"unix", b"genunix", b"kernel", b"mach_kernel")
_HISTOGRAM, _BAR = b"- Distribution -", b" |"
_MAX_FRAME = 1 << 14
_MAX_KEYS = 8
_MAX_DIGITS = 10


def sniff(head: bytes) -> bool:
    """Whether at least one in `_PART` of the first lines is a frame, and there is a count or a large number of
    frames."""
    lines = [line for line in head.splitlines()[:_SNIFFED] if line.strip()]
    frames = sum(map(bool, map(_FRAME.match, lines)))
    return frames * _PART >= max(len(lines), 1) and (any(map(_COUNT.match, lines)) or frames > _SNIFFED // 2)


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack, process name and, with options.pid, process. Raises StallscopeError."""
    stacks = CountedStacks(
        source.name, EXPECTED, lambda line: _parse(line, options.addrs), lambda lines: _keys(lines, options.pid)
    )
    for piece in pieces(source, b"\n\n"):
        text, _, count = piece.rpartition(b"\n")
        if not stacks.add(text, count.strip(), breaks=2):
            _add_slowly(stacks, piece)
            stacks.add_lines(b"")
    return stacks.profile(source, "DTrace stacks")


def _add_slowly(stacks: CountedStacks, piece: bytes) -> None:
    """Reads line by line: the command's messages, and histograms."""
    for line in piece.split(b"\n"):
        if _HISTOGRAM in line:
            stacks.drop("histograms")
        drops = _DROPS.match(line)
        if drops:
            stacks.skipped.add("drops", count=int(drops[1]))
        stacks.add_lines(b"" if drops or _HISTOGRAM in line or _BAR in line else line)


def _parse(line: bytes, addrs: bool = False) -> tuple[Frame, ...] | None:
    """The frames of a line: several if functions were inlined (``a->b``)."""
    text = line.strip()
    if _HISTOGRAM in text or _BAR in text or _DROPS.match(text):
        return None
    if not text or text.startswith(b"dtrace: ") or text.endswith(b"FUNCTION:NAME") or _PROBE.match(line):
        return ()
    if len(text) > _MAX_FRAME:
        return None
    text = _OFFSET.sub(b"", text)
    module, separator, function = text.rpartition(b"`")
    if _ADDRESS.match(function):
        text = b"[%b <%b>]" % (module or b"unknown", function[2:]) if addrs else b"[%b]" % (module or b"unknown")
    if b"::" in text:
        text = without_arguments(text)
    kind: Kind = "kernel" if separator and module in _KERNEL else "native"
    home = Module(module.decode(errors="surrogateescape")) if separator and module else None
    frames = []
    for i, name in enumerate(filter(None, inlined_names(text))):
        if name.startswith(b"L") and b"/" in name:
            name = name[1:]
        shown = name.replace(b";", b":").decode(errors="surrogateescape")
        frames.append(Frame(f"{shown}_[i]" if i else shown, "native" if i else kind, home))
    return tuple(frames) or None


def _keys(lines: list[bytes], pid: bool) -> tuple[int, Labels]:
    """(number of lines above the frames, their labels)."""
    names, number = [], b""
    at = 0
    for i, line in enumerate(lines[:_MAX_KEYS]):
        word = line.strip()
        if not word:
            at = i + 1
        elif b"`" in word or word.startswith(b"0x"):
            break
        elif not _parse(line):
            at = i + 1
        elif not word.isdigit() and not _is_above(line, lines[i + 1 :]):
            break
        else:
            name, digits = _name_and_number(word)
            names += [name] if name else []
            number = number or digits
            at = i + 1
    labels: dict[str, str | int] = {}
    if names:
        labels["process"] = b", ".join(names).decode(errors="surrogateescape")
    if pid and number and len(number) <= _MAX_DIGITS:
        labels["pid"] = int(number)
    return at, tuple(sorted(labels.items()))


def _name_and_number(word: bytes) -> tuple[bytes, bytes]:
    """Name and number of a process in a key; b"" for what it does not tell."""
    if word.isdigit():
        return b"", word
    *name, last = word.rsplit(None, 1)
    return (name[0], last) if name and last.isdigit() and len(last) <= _MAX_DIGITS else (word, b"")


def _is_above(line: bytes, below: list[bytes]) -> bool:
    """Whether ``line`` is less indented than the frame after it."""
    following = next((each for each in below if each.strip()), b"")
    return _indentation(line) < _indentation(following)


def _indentation(line: bytes) -> int:
    return len(line) - len(line.lstrip())
