"""The interface of a writer, which is a module with this function. `registry` lists all writers."""

from __future__ import annotations

from typing import BinaryIO, Protocol

from ...model import Profile
from .options import WriteOptions


class Writer(Protocol):
    """Writes one format."""

    def write(self, profile: Profile, file: BinaryIO, options: WriteOptions, /) -> None:
        """Writes the whole profile, which stays unchanged.

        Names are hostile: the writer escapes them for its format. It includes the losses if the format allows.
        Raises StallscopeError when the profile cannot be written in this format, and OSError from ``file``.
        """
