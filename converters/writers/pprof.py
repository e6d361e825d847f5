"""pprof: the complete profile."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

from .. import pprof
from ..model import Profile
from .base.options import WriteOptions


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes gzip'd profile.proto; the title is the only option used. Raises like `converters.pprof.save`."""
    pprof.save(replace(profile, title=options.title or profile.title), file)
