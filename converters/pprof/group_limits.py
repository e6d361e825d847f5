"""Limits of control groups in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ..model.group_limits import KINDS, MOST_DEVICES, MOST_PIDS, GroupLimit

_MOST = 1 << 64
_MOST_PID = 1 << 32


def decoded(entry: Any) -> GroupLimit:
    """The limit that ``entry`` was made of, by `dataclasses.asdict`. ValueError for anything else."""
    names = {field.name for field in fields(GroupLimit)}
    if not isinstance(entry, dict) or entry.keys() != names or entry["kind"] not in KINDS:
        raise ValueError("limit of a control group")
    devices, pids = entry["devices"], entry["pids"]
    if not isinstance(devices, list) or not isinstance(pids, list):
        raise ValueError("limit of a control group")
    is_known = len(devices) <= MOST_DEVICES and len(pids) <= MOST_PIDS
    texts = all(isinstance(text, str) for text in (*devices, entry["cgroup"], entry["name"]))
    numbers = all(_is_number(entry[name], _MOST) for name in ("limit", "used", "time"))
    if not is_known or not texts or not numbers or not all(_is_number(pid, _MOST_PID) for pid in pids):
        raise ValueError("figures of a limit")
    return GroupLimit(**entry)


def _is_number(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most
