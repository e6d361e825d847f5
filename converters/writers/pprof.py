"""pprof: the profile itself, with nothing left out."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

from .. import pprof
from ..model import Profile
from ..options import WriteOptions


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes gzip'd profile.proto; of the options only the title matters. Raises like `converters.pprof.save`."""
    pprof.save(replace(profile, title=options.title or profile.title), file)
