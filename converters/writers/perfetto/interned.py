"""Interned data, to which events refer by number: names, states, stacks and their frames.

Fields are those of InternedData (protos/perfetto/trace/interned_data/ of google/perfetto) and of Frame, Callstack and
Mapping (profiling/profile_common.proto): numbers begin with 1, a stack begins with its outermost frame, and a frame
with a mapping must have an address.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...base.text import printable
from ...model import Frame, Module, Stack
from ...model.samples import Kind
from . import wire

_CATEGORIES, _NAMES, _ANNOTATION_NAMES, _ANNOTATION_STRINGS = 1, 2, 3, 29
_FUNCTIONS, _FRAMES, _STACKS = 5, 6, 7
_BUILD_IDS, _PATHS, _SOURCES, _MAPPINGS = 16, 17, 18, 19
_IID, _TEXT = 1, 2
_FUNCTION, _MAPPING, _ADDRESS, _SOURCE, _LINE, _KIND = 2, 3, 4, 5, 6, 7
_FRAME_IDS = 2
_BUILD_ID, _END, _PATH = 2, 5, 7
_KINDS: dict[Kind, int] = {"native": 1, "kernel": 2, "python": 3, "jit": 4}
"""Frame.Kind; viewers that do not know it skip it."""
_SIZE = 1 << 18
"""Approximate size of a message, in bytes."""


class Interned:
    """Assigns numbers, and makes the messages that define them."""

    def __init__(self) -> None:
        self._texts: dict[int, dict[str, int]] = {}
        self._mappings: dict[Module, int] = {}
        self._frames: dict[Frame, int] = {}
        self._by_identity: dict[int, bytes] = {}
        self._stacks = 0
        self._pieces: list[bytes] = []

    def category(self, name: str) -> int:
        """Number of an event category."""
        return self._text(_CATEGORIES, name)

    def event(self, name: str) -> int:
        """Number of an event's name."""
        return self._text(_NAMES, name)

    def annotation(self, name: str) -> int:
        """Number of an annotation's name."""
        return self._text(_ANNOTATION_NAMES, name)

    def value(self, text: str) -> int:
        """Number of an annotation's value."""
        return self._text(_ANNOTATION_STRINGS, text)

    def stack(self, stack: Stack) -> int:
        """A new number, even for a stack seen before: the caller avoids duplicates."""
        self._stacks += 1
        known = self._by_identity
        frames = b"".join([known[id(frame)] if id(frame) in known else self._frame(frame) for frame in stack])
        self._add(_STACKS, wire.number(_IID, self._stacks) + frames)
        return self._stacks

    def messages(self) -> Iterator[bytes]:
        """All data, in parts; each refers only to itself and to earlier parts."""
        piece: list[bytes] = []
        size = 0
        for each in self._pieces:
            piece.append(each)
            size += len(each)
            if size > _SIZE:
                yield b"".join(piece)
                piece, size = [], 0
        yield b"".join(piece)

    def _add(self, field: int, message: bytes) -> None:
        self._pieces.append(wire.text(field, message))

    def _text(self, field: int, text: str) -> int:
        known = self._texts.setdefault(field, {})
        number = known.get(text)
        if number is None:
            number = known[text] = len(known) + 1
            self._add(field, wire.number(_IID, number) + wire.text(_TEXT, printable(text)))
        return number

    def _frame(self, frame: Frame) -> bytes:
        """A value of Callstack.frame_ids. Relies on the frame's identity: the caller's stacks keep it alive."""
        number = self._frames.get(frame)
        if number is None:
            number = self._frames[frame] = len(self._frames) + 1
            parts = [wire.number(_IID, number), wire.number(_FUNCTION, self._text(_FUNCTIONS, frame.name))]
            if frame.module is not None and frame.address:
                parts.append(wire.number(_MAPPING, self._mapping(frame.module)))
                parts.append(wire.number(_ADDRESS, frame.address))
            if frame.file:
                parts.append(wire.number(_SOURCE, self._text(_SOURCES, frame.file)))
            if frame.line:
                parts.append(wire.number(_LINE, frame.line))
            if frame.kind in _KINDS:
                parts.append(wire.number(_KIND, _KINDS[frame.kind]))
            self._add(_FRAMES, b"".join(parts))
        encoded = self._by_identity[id(frame)] = wire.number(_FRAME_IDS, number)
        return encoded

    def _mapping(self, module: Module) -> int:
        """The file as if it were mapped at address 0: addresses of frames are relative to their file."""
        number = self._mappings.get(module)
        if number is None:
            number = self._mappings[module] = len(self._mappings) + 1
            parts = [wire.number(_IID, number), wire.number(_PATH, self._text(_PATHS, module.path))]
            if module.size:
                parts.append(wire.number(_END, module.size))
            if module.build_id:
                parts.append(wire.number(_BUILD_ID, self._build_id(module.build_id)))
            self._add(_MAPPINGS, b"".join(parts))
        return number

    def _build_id(self, digits: str) -> int:
        """The only interned text that is bytes; text that is not hex is used unchanged."""
        known = self._texts.setdefault(_BUILD_IDS, {})
        number = known.get(digits)
        if number is None:
            number = known[digits] = len(known) + 1
            try:
                value = bytes.fromhex(digits)
            except ValueError:
                value = printable(digits).encode()
            self._add(_BUILD_IDS, wire.number(_IID, number) + wire.text(_TEXT, value))
        return number
