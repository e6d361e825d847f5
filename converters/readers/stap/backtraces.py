"""SystemTap backtraces with counts, as printed by scripts with ``print_stack``/``print_ustack`` and ``\\t%d\\n``:
among them OpenResty's sample-bt, sample-bt-off-cpu and ngx-sample-lua-bt, with or without its resolve-inlines.

The frames, innermost first, are those of runtime/sym.c in SystemTap: `` 0xADDR : name+0x1/0x2 [module]``, with ``at
file:line`` before the module, without the module, without the name (`` 0xADDR [module+0x1/0x2]``), without the address.
The count follows on a line of its own. Kernel and user frames may follow each other.

Names are those of stackcollapse-stap.pl of FlameGraph, except for frames without a symbol: it prints
``0xADDR [module``, we ``[module+0x1]``, or ``[unknown]`` if there is no module, since addresses differ from process to
process (--addrs shows them). Other text in between, except stap's warnings, is counted here; the script makes frames of
it.
"""

from __future__ import annotations

import re

from ...model import Frame, Kind, Module, Profile
from ..base.counted import CountedStacks
from ..base.options import ReadOptions
from ..base.source import Source
from ..base.stack_tally import pieces

EXPECTED = "a frame of SystemTap: ' 0xADDR : name+0x1/0x2 [module]', or a line with its stack's count"

_SNIFFED = 200
_FRAME = re.compile(rb"\s*0x[0-9a-f]{4,16} +(?::\s+\S|\[\S)")
_ADDRESS = re.compile(rb"(0x[0-9a-f]{1,16})(?:\s+:\s+|\s+(?=\[)|\Z)")
_MODULE = re.compile(rb"\[([^\[\]]+)\](?: \(inexact\))?\Z")
_PLACE = re.compile(rb"(.*):(\d{1,9})\Z", re.DOTALL)
_OFFSET = re.compile(rb"\+0x[0-9a-f]+(?:/0x[0-9a-f]+)?\Z")
_KERNEL = re.compile(rb"0xffff[0-9a-f]{12}\Z")
_UNKNOWN = (b"", b"<unknown>")
_MAX_FRAME = 1 << 14


def sniff(head: bytes) -> bool:
    """Whether the first lines include a frame with its address."""
    return any(_FRAME.match(line) for line in head.splitlines()[:_SNIFFED])


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack. Raises StallscopeError."""
    stacks = CountedStacks(source.name, EXPECTED, lambda line: _parse(line, options.addrs))
    text = None
    for piece in pieces(source, b"\n\t"):
        if text is None:
            text = piece
            continue
        count, _, below = piece.partition(b"\n")
        if not stacks.add(text, count):
            stacks.add_lines(text)
            stacks.add_lines(count)
        text = below
    stacks.add_lines(text or b"")
    return stacks.profile(source, "SystemTap backtraces")


def _parse(line: bytes, addrs: bool) -> tuple[Frame, ...] | None:
    text = line.strip()
    if not text or text.startswith(b"WARNING: "):
        return ()
    if len(text) > _MAX_FRAME:
        return None
    address, file, number = b"", b"", b""
    if match := _ADDRESS.match(text):
        address, text = match[1], text[match.end() :]
    elif b" " in text and b"+0x" not in text:
        return None
    match = _MODULE.search(text)
    module = match[1] if match else b""
    name = text[: match.start()].rstrip() if match else text
    if module and not name:
        return (_nameless(module, address),)
    if module and (place := _PLACE.match(module)):  # resolve-inlines puts the source line there
        module, file, number = b"", place[1], place[2]
    function, separator, where = name.rpartition(b" at ")
    if separator and _OFFSET.search(function):
        place = _PLACE.match(where)
        name, file, number = function, place[1] if place else where, place[2] if place else b""
    name = _OFFSET.sub(b"", name)
    if name in _UNKNOWN:
        name = b"[unknown <%b>]" % address.removeprefix(b"0x") if addrs and address else b"[unknown]"
    home = Module(_text(module)) if module else None
    return (Frame(_text(name), _kind(address, module), home, file=_text(file), line=int(number or 0)),)


def _nameless(module: bytes, address: bytes) -> Frame:
    """A frame ``module+0x1/0x2``; the number after the slash is the module's size."""
    path, _, offset = module.partition(b"+0x")
    offset = offset.partition(b"/")[0]
    name = path.rpartition(b"/")[2] + (b"+0x" + offset if offset else b"")
    return Frame(f"[{_text(name)}]", _kind(address, path), Module(_text(path)))


def _kind(address: bytes, module: bytes) -> Kind:
    return "kernel" if module == b"kernel" or _KERNEL.match(address) else "native"


def _text(name: bytes) -> str:
    return name.decode(errors="surrogateescape")
