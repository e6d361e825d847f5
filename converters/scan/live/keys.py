"""Keys in the bytes that a terminal sends.

Sequences: those of xterm (ctlseqs, "PC-Style Function Keys"), which the Linux console, tmux and screen send, too.
"""

from __future__ import annotations

import codecs
import re

from .state import BACKSPACE, DOWN, END, ENTER, ESCAPE, HOME, PAGE_DOWN, PAGE_UP, UP

_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)", re.DOTALL)
_OPEN = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|O)?")
_NAMES = {
    b"A": UP,
    b"B": DOWN,
    b"H": HOME,
    b"F": END,
    b"5~": PAGE_UP,
    b"6~": PAGE_DOWN,
    b"1~": HOME,
    b"4~": END,
    b"7~": HOME,
    b"8~": END,
}
_CONTROLS = {"\r": ENTER, "\n": ENTER, "\x7f": BACKSPACE, "\x08": BACKSPACE}
LONGEST = 4_096
"""Bytes of what may be the begin of a key."""


def keys(data: bytes, *, is_all: bool) -> tuple[list[str], bytes]:
    """The keys, and the bytes at the end that are the begin of one. ``is_all``: no more bytes follow soon, so that an
    escape is the key. Sequences without a meaning are left out."""
    found: list[str] = []
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    place = 0
    while place < len(data):
        if data[place] != 0x1B:
            char = decoder.decode(data[place : place + 1])
            place += 1
            if char:
                found += [_CONTROLS.get(each, each) for each in char]
        elif match := _SEQUENCE.match(data, place):
            place = match.end()
            found += [_NAMES[match[0][2:]]] if match[0][2:] in _NAMES else []
        elif not is_all and _OPEN.fullmatch(data, place) and len(data) - place < LONGEST:
            return found, data[place:]
        else:
            found.append(ESCAPE)
            place += 1
    pending = decoder.getstate()[0]
    return found, pending if not is_all else b""
