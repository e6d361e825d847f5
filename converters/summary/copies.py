"""Copies of memory, as data for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.text import json_text
from ..facts.identity import kernel_id, life_of
from ..model.copies import Copies


def to_json(copies: Sequence[Copies]) -> list[dict[str, Any]]:
    """An entry per function, process and direction. Times in ns, null when not known."""
    return [
        {
            "name": json_text(each.name),
            "library": json_text(each.library),
            "process": json_text(each.process),
            "pid": kernel_id(each.pid) or None,
            "pid_life": life_of(each.pid),
            "direction": each.direction,
            "async": each.is_async,
            "count": each.count,
            "bytes": each.bytes,
            "unknown_size_count": each.unknown,
            "total_ns": each.total,
            "on_cpu_ns": each.total - each.blocked - each.runnable,
            "blocked_ns": each.blocked,
            "runnable_ns": each.runnable,
            "bytes_per_second": each.bandwidth,
        }
        for each in copies
    ]
