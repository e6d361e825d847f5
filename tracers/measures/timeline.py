"""The timeline: every switch, wake-up, creation and exit, one by one, with the stacks of waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from .protocol import Measure

LIMIT = 2_000_000
"""Maximum number of events kept."""
BUFFER = 64 << 20
"""Bytes for events not yet read, for all cores together."""


@dataclass(frozen=True)
class Timeline(Measure):
    """Keeps ``limit`` events, the ``newest`` or the ``first``."""

    name: ClassVar[str] = "timeline"
    limit: int = LIMIT
    kept: Literal["newest", "first"] = "newest"
    every_switch: bool = field(default=False, kw_only=True)
    """The whole host is traced."""
    buffer_bytes: int = field(default=BUFFER, kw_only=True)
