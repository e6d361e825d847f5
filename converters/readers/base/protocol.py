"""The interface of a reader, which is a module with these functions. `registry` lists all readers."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ...model import Profile
from .options import ReadOptions
from .source import Source


class Reader(Protocol):
    """Reads one format."""

    def sniff(self, head: bytes, /) -> bool:
        """Whether an input that begins with these bytes (unpacked, at most `source.HEAD`) has this format."""

    def read(self, source: Source, options: ReadOptions, /) -> Profile:
        """The profile of the whole input.

        Raises StallscopeError, and nothing else, for an input that it cannot read. Skipped items are counted in
        ``Profile.lost``, and a comment names the first skipped line (`skipped.Skipped`).
        """


@runtime_checkable
class ReaderInParts(Reader, Protocol):
    """A reader whose text several processes can read in parts (`parallel`)."""

    SEPARATOR: bytes
    """A part may end after these bytes: the text after them does not refer to the text before them."""


@runtime_checkable
class ReaderOfContext(ReaderInParts, Protocol):
    """A reader for which the beginning of the input determines how the rest is read."""

    def settled(self, head: bytes, options: ReadOptions, /) -> ReadOptions:
        """The options for every part, completed from the input's first bytes."""
