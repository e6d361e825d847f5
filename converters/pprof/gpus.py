"""GPUs in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ..model.gpus import REASONS, UNKNOWN, Gpu, GpuLimit

_MOST = 1 << 63


def decoded(entry: Any) -> Gpu:
    """The GPU that ``entry`` was made of, by `dataclasses.asdict`. ValueError for anything else."""
    names = {field.name for field in fields(Gpu)}
    if not isinstance(entry, dict) or entry.keys() != names or not isinstance(entry["name"], str):
        raise ValueError("GPU")
    numbers = [entry[name] for name in names - {"name", "limits"}]
    limits = entry["limits"]
    if not all(map(_is_number, numbers)) or not isinstance(limits, list) or len(limits) > len(REASONS):
        raise ValueError("figures of a GPU")
    return Gpu(**{**entry, "limits": [_limit(each) for each in limits]})


def _limit(entry: Any) -> GpuLimit:
    if not isinstance(entry, dict) or entry.keys() != {"reason", "samples"}:
        raise ValueError("limit of a GPU")
    if entry["reason"] not in REASONS.values() or not _is_number(entry["samples"]):
        raise ValueError("limit of a GPU")
    return GpuLimit(**entry)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and UNKNOWN <= value < _MOST
