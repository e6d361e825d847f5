"""GPUs as the driver tells of them in a scan, with the ranks and processes that have them open; the cost of asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.text import json_text
from ..base.units import duration, plural, share
from ..facts import thresholds
from ..facts.gpus import GpuUse
from ..facts.identity import shown_id
from ..model.gpus import IDLE, UNKNOWN, Gpu, GpuLimit

_USERS = 2
"""Ranks or processes of a GPU that are named."""


@dataclass(frozen=True)
class Gpus:
    """GPUs of a scan with their users. Names are unescaped (hostile)."""

    gpus: Sequence[Gpu] = ()
    """GPUs as the driver tells of them; () if it was not asked."""
    uses: Mapping[int, GpuUse] = field(default_factory=dict)
    """Processes that have them open, by minor."""
    names: Mapping[int, str] = field(default_factory=dict)
    """Names of processes that are no ranks, by pid."""

    def to_json(self) -> dict[str, Any] | None:
        """Plain data: shares as fractions of 1, null for what the driver does not tell; None if it was not asked."""
        if not self.gpus:
            return None
        return {
            "calls": sum(each.calls for each in self.gpus),
            "time_ns": sum(each.call_time for each in self.gpus),
            "longest_ns": max(each.call_most for each in self.gpus),
            "failed": sum(each.failed for each in self.gpus),
            "silent_ns": max(each.silent for each in self.gpus),
            "gpus": [self._gpu_json(each) for each in self.gpus],
        }

    def _gpu_json(self, gpu: Gpu) -> dict[str, Any]:
        use = self.uses.get(gpu.minor)
        return {
            "gpu": _known(gpu.minor),
            "name": json_text(gpu.name),
            "ranks": [rank.number for rank in use.ranks] if use else [],
            "samples": gpu.samples,
            "busy": _part(gpu.busy),
            "memory_busy": _part(gpu.copying),
            "memory_used_bytes": _known(gpu.memory_used),
            "memory_bytes": _known(gpu.memory),
            "clock_mhz": _known(gpu.clock),
            "clock_most_mhz": _known(gpu.clock_most),
            "power_mw": _known(gpu.power),
            "power_limit_mw": _known(gpu.power_limit),
            "limited_by": {each.reason: each.samples for each in gpu.limits},
        }

    def lines(self) -> list[str]:
        """Sentences, at most two: the GPU whose clocks are limited most, and what was asked, at which cost."""
        if not self.gpus:
            return []
        return [*self._limited(), self._asked()]

    def _limited(self) -> list[str]:
        found = [(limit, gpu) for gpu in self.gpus if (limit := _most(gpu))]
        found = [each for each in found if each[0].samples >= thresholds.GPU_LIMITED * each[1].samples]
        if not found:
            return []
        limit, gpu = max(found, key=lambda each: each[0].samples / each[1].samples)
        others = f" So are those of {plural(len(found) - 1, 'other GPU')}." if len(found) > 1 else ""
        busy = f"{share(gpu.busy, 1000)} busy, " if gpu.busy != UNKNOWN else ""
        return [
            f"{self.who(gpu)}: {busy}clocks limited by {limit.reason} for {share(limit.samples, gpu.samples)} of the "
            f"samples.{others}"
        ]

    def who(self, gpu: Gpu) -> str:
        """``GPU 3 (rank 3)``: with the ranks, or processes, that have it open."""
        number = str(gpu.minor) if gpu.minor != UNKNOWN else "of unknown number"
        use = self.uses.get(gpu.minor)
        if use and use.ranks:
            users = [f"rank {rank.number}" for rank in use.ranks]
        else:
            users = [f"{self.names.get(pid, 'pid')} {shown_id(pid)}" for pid in (use.others if use else ())]
        more = f" and {len(users) - _USERS} more" if len(users) > _USERS else ""
        return f"GPU {number} ({', '.join(users[:_USERS])}{more})" if users else f"GPU {number}"

    def _asked(self) -> str:
        busy = sorted(each.busy for each in self.gpus if each.busy != UNKNOWN)
        spread = f", {share(busy[0], 1000)} to {share(busy[-1], 1000)} busy" if busy else ""
        calls, time = sum(each.calls for each in self.gpus), sum(each.call_time for each in self.gpus)
        longest, silent = max(each.call_most for each in self.gpus), max(each.silent for each in self.gpus)
        failed = sum(each.failed for each in self.gpus)
        cost = f"{plural(calls, 'call')} in {duration(time)}, the longest {duration(longest)}" if calls else "no answer"
        errors = f", {failed} failed" if failed else ""
        hangs = f" It has not answered for {duration(silent)}." if silent else ""
        return f"The driver tells of {plural(len(self.gpus), 'GPU')}{spread} ({cost}{errors}).{hangs}"


def gpus_told(gpus: Sequence[Gpu], uses: Sequence[GpuUse], names: Mapping[int, str] | None) -> Gpus:
    """The GPUs of a profile. ``uses``: who has them open. ``names``: those of processes that are no ranks."""
    return Gpus(gpus, {each.minor: each for each in uses}, names or {})


def _most(gpu: Gpu) -> GpuLimit | None:
    """The limit that held most often; an idle GPU is not limited."""
    return max((each for each in gpu.limits if each.reason != IDLE), key=lambda each: each.samples, default=None)


def _known(number: int) -> int | None:
    return None if number == UNKNOWN else number


def _part(number: int) -> float | None:
    return None if number == UNKNOWN else number / 1000
