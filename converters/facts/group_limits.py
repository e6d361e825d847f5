"""Limits of control groups that a wait is for: that of memory where it waits for memory, that of the disk of a file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..base.text import json_text
from ..model.group_limits import MEMORY, OF_DISKS, GroupLimit
from ..model.wait_objects import DEVICE, FILE, FOLDER, LIMIT, SWAP, WaitObject
from . import thresholds


def limit_of(what: WaitObject, limits: Sequence[GroupLimit], pids: Collection[int]) -> GroupLimit | None:
    """The limit for which processes wait on this; None if they are in no group, or not all in one, that has reached it.
    ``pids``: the kernel's."""
    if what.kind in (LIMIT, SWAP):
        return memory_limit(limits, pids)
    if what.kind not in (FILE, FOLDER, DEVICE) or not what.device:
        return None
    return _of_all([limit for limit in limits if _holds_back(limit, what.device)], pids)


def memory_limit(limits: Sequence[GroupLimit], pids: Collection[int]) -> GroupLimit | None:
    """The limit of memory that was reached most, of those for all of these processes."""
    return _of_all([limit for limit in limits if limit.kind == MEMORY and limit.used], pids)


def _of_all(found: Sequence[GroupLimit], pids: Collection[int]) -> GroupLimit | None:
    of_all = [limit for limit in found if pids and limit.pids and set(pids).issubset(limit.pids)]
    return max(of_all, key=lambda limit: (limit.part_used, limit.used, limit.cgroup, limit.name), default=None)


def _holds_back(limit: GroupLimit, device: str) -> bool:
    return limit.kind in OF_DISKS and device in limit.devices and limit.part_used >= thresholds.DISK_LIMIT_REACHED


def limit_json(limit: GroupLimit) -> dict[str, Any]:
    """Plain data for ``json.dumps``."""
    return {
        "cgroup": json_text(limit.cgroup),
        "kind": limit.kind,
        "name": json_text(limit.name),
        "limit": limit.limit,
        "used": limit.used,
        "time_ns": limit.time,
        **({"devices": [json_text(device) for device in limit.devices]} if limit.devices else {}),
        "pids": limit.pids,
    }
