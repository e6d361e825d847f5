"""pprof: profile.proto from any source, compressed or not; see `converters.pprof`."""

from __future__ import annotations

import io

from .. import pprof
from ..base.errors import StallscopeError
from ..model import Profile
from .base.options import ReadOptions
from .base.source import Source

_VARINTS, _LENGTHS = (9, 10, 12, 14), (1, 2, 3, 4, 5, 6, 7, 8, 11, 13)
_TAGS = bytes([field << 3 for field in _VARINTS] + [field << 3 | 2 for field in _LENGTHS])
"""First bytes that a message Profile (profile.proto) can have."""
_TEXT = bytes([9, 10, 12, 13, 27, *range(32, 256)])


def sniff(head: bytes) -> bool:
    """Whether the first bytes are a field of message Profile, and not text."""
    return head[:1] in _TAGS and bool(head[:64].translate(None, _TEXT))


def read(source: Source, _: ReadOptions) -> Profile:
    """Everything in the file. Raises StallscopeError."""
    data = source.read_all(pprof.DEFAULT_LIMIT)
    try:
        return pprof.load(io.BytesIO(data), limit=pprof.DEFAULT_LIMIT)
    except StallscopeError as error:
        raise StallscopeError(f"{source.name}: {error.cause}", error.remedy, exit_code=error.exit_code) from error
