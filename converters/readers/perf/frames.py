"""Frames in the output of ``perf script``, cached by the text of their lines.

With ``-F +srcline``, perf prints the source line below each frame (sample__fprintf_callchain in
tools/perf/util/evsel_fprintf.c of Linux). `join_places` appends it to the frame's line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...model import Frame
from ..base.options import ReadOptions
from .lines import inlined_frames, is_branch_stack, parse_frames, parse_thread, without_address

if TYPE_CHECKING:
    from .inline import Inliner

BAD, EMPTY = 0, 1
"""Numbers of a line that is not a frame, and of a line without frames."""

JOINT = b"\r  "
"""Separates a frame from its source line once they are joined."""
_MAX_LINES = 1 << 18
_PLACE = rb"  (?! )(?:[^\n]*:\d{1,9}|[^\n]*\[[0-9a-f]{1,16}\])(?: \(inlined\))?"
"""``FILE:LINE``, ``??:0``, or ``MODULE[ADDRESS]`` if the source is unknown (tools/perf/util/srcline.c)."""
_IS_PLACE = re.compile(_PLACE + rb"\r?\Z")
_BELOW = re.compile(rb"(?m)^(\t[^\n]*)\n(?=" + _PLACE + rb"\r?(?:\n|\Z))  ")
_split_addresses = re.compile(rb"\n\t *[0-9a-f]{1,16} ").split
_split_offsets = re.compile(rb"\+0x[0-9a-f]{1,16} \((?=[^\n]*\)\r?\n)").split
"""Twice as fast as ``re.sub``."""
_FILE = re.compile(rb"(.*[^:?].*):(\d{1,9})\Z", re.DOTALL)
_INLINED = b" (inlined)"


class Mixed(Exception):
    """A line among the frames is not a frame: the sample has to be read line by line."""


def join_places(text: bytes) -> bytes:
    """``text`` with each source line moved to the end of the frame above it, after `JOINT`."""
    return _BELOW.sub(rb"\1" + JOINT, text)


def without_places(text: bytes) -> bytes:
    """``text`` with 0 instead of its frames' addresses and offsets, for use if these do not matter."""
    text = b"\n\t               0 ".join(_split_addresses(text))
    return b"+0x0 (".join(_split_offsets(text))


class Frames:
    """The frames of lines by number; equal combinations of frames have one number."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.inliner = _inliner() if options.inline else None
        self.frames: list[tuple[Frame, ...]] = [(), ()]
        """Frames by the number of their text, outermost first."""
        self.joined = False
        """Whether lines may have a source line after a `JOINT`."""
        self.plain = True
        """Whether each line so far has had one frame."""
        self._numbers: dict[tuple[Frame, ...], int] = {}

    def close(self) -> None:
        """Ends the programs that find inlined functions."""
        if self.inliner:
            self.inliner.close()

    def number(self, frames: tuple[Frame, ...]) -> int:
        """The number of these frames of one line."""
        self.plain = self.plain and len(frames) == 1
        if not frames:
            return EMPTY
        number = self._numbers.get(frames)
        if number is None:
            number = self._numbers[frames] = len(self.frames)
            self.frames.append(frames)
        return number


def _inliner() -> Inliner:
    from .inline import Inliner  # its imports take longer than reading a small input

    return Inliner()


class FrameLines(dict[bytes, int]):
    """Text of a line → number of its frames in ``frames``. Raises Mixed for a line that is not a frame."""

    def __init__(self, frames: Frames, *, java: bool) -> None:
        """``java``: tidy names like those of a Java process."""
        super().__init__()
        self.functions: dict[tuple[bytes, bytes], int] = {}
        """(function, module) → number: there are far fewer of these than addresses."""
        self._frames = frames
        self._java = java

    def __missing__(self, line: bytes) -> int:
        if not line:
            number = self._frames.number(())
        elif not line[:1].isspace() and (line[:1] == b"#" or parse_thread(line)):
            raise Mixed
        else:
            number = self.parse(line)
            if number == BAD:
                raise Mixed
        if len(self) >= _MAX_LINES:
            self.clear()
        self[line] = number
        return number

    def parse(self, line: bytes) -> int:
        """The number for a line that is not cached; BAD if it is not a frame."""
        options = self._frames.options
        place = b""
        if self._frames.joined:
            line, _, place = line.partition(JOINT)
            line = line.rstrip(b"\r")
            if place.endswith(_INLINED):
                line, place = line + _INLINED, place.removesuffix(_INLINED)
        key = None if options.addrs or options.inline or place else without_address(line)
        if key and (known := self.functions.get(key)) is not None:
            return known
        if is_branch_stack(line) or (line.startswith(b"  ") and _IS_PLACE.match(line)):
            return BAD
        frames = self._parse(line.rstrip(b"\r"))
        if frames is None:
            return BAD
        if place and frames and (match := _FILE.match(place)):
            file = match[1].decode(errors="surrogateescape")
            frames = (*frames[:-1], frames[-1]._replace(file=file, line=int(match[2])))
        number = self._frames.number(frames)
        if key and frames:
            self.functions[key] = number
        return number

    def _parse(self, line: bytes) -> tuple[Frame, ...] | None:
        options, inliner = self._frames.options, self._frames.inliner
        frames = inlined_frames(line, inliner, context=options.context) if inliner else None
        return frames or parse_frames(line, addrs=options.addrs, java=self._java)
