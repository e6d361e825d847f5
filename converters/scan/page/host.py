"""The host of a page as plain data: pressure, interrupts, what is contended, threads made, pools, quotas, neighbours,
GPUs.

Texts are printable. Times are in ns, null is what is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...base.text import printable
from ...facts.contention import SECOND, Contention
from ...facts.identity import kernel_id, shown_id
from ...model import Profile
from ...model.gpus import UNKNOWN, Gpu
from ...model.neighbours import Neighbour
from ...model.pressure import HARD, SOFT, STOLEN, Interrupts
from ..contended import Contended
from ..gpus import Gpus
from ..host import Host, Made
from ..interrupted import Core
from ..report import Report
from .pools import pools_data

ROWS = 100
"""Rows of each table."""


def host_data(profile: Profile, report: Report) -> dict[str, Any]:
    """Tables of the host; empty ones are left out on the page."""
    host = report.host
    return {
        "pressure": [_pressure(each) for each in host.to_json()["pressure"] or ()],
        "taken": [_taken(each) for each in host.interrupts if not each.name and each.capacity],
        "sources": [[each.kind, printable(each.name), each.count] for each in host.interrupts if each.name][:ROWS],
        "cores": [_core(each) for each in host.cores[:ROWS]],
        "has_threads": bool(profile.core_threads),
        "contended": [_contended(each) for each in host.contended[:ROWS]],
        "outsiders": [printable(each) for each in host.outsiders],
        "made": [_made(each, host) for each in host.made[:ROWS]],
        "pools": pools_data(report.facts, ROWS),
        "quotas": list(_quotas(report.summary.contention))[:ROWS],
        "neighbours": [_neighbour(each, profile.duration_ns) for each in _busiest(profile.neighbours)[:ROWS]],
        "gpus": [_gpu(each, report.gpus) for each in report.gpus.gpus[:ROWS]],
        "gpu_lines": [printable(each) for each in report.gpus.lines()],
    }


def _pressure(each: dict[str, Any]) -> dict[str, Any]:
    return {
        "resource": each["resource"],
        "where": printable(each["cgroup"] or ""),
        "some": each["some_ns"],
        "full": each["full_ns"],
        "elapsed": each["elapsed_ns"],
    }


def _taken(each: Interrupts) -> list[Any]:
    """Kind, ns, number (null of stolen time), and the part of all cores' time."""
    return [each.kind, each.time, None if each.kind == STOLEN else each.count, each.time / each.capacity]


def _core(core: Core) -> dict[str, Any]:
    return {
        "core": core.number,
        "hard": core.times.get(HARD, 0),
        "soft": core.times.get(SOFT, 0),
        "stolen": core.times.get(STOLEN, 0),
        "capacity": core.capacity,
        "threads": [
            [
                printable(f"{each.process} / {each.thread} ({shown_id(each.tid)})"),
                each.time,
                core.taken(each.time),
            ]
            for each in core.threads
        ],
    }


def _contended(each: Contended) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "name": printable(each.name),
        "time": each.time,
        "count": each.count or None,
        "waiters": each.waiters,
        "factor": each.factor,
        "known_alone": each.known_alone,
        "alone": each.alone,
        "with_others": each.with_others,
        "inside": each.inside,
    }


def _made(each: Made, host: Host) -> dict[str, Any]:
    return {
        "name": printable(f"{each.process} ({shown_id(each.pid)})"),
        "began": each.began,
        "rate": each.began * SECOND / host.duration if host.duration else None,
        "ended": each.ended,
        "on_cpu": each.on_cpu,
        "runnable": each.runnable,
    }


def _quotas(found: Sequence[Contention]) -> Iterator[dict[str, Any]]:
    """Quotas of control groups, each once."""
    seen = set()
    for each in found:
        for limit in each.limits:
            if limit.cgroup not in seen:
                seen.add(limit.cgroup)
                yield {
                    "cgroup": printable(limit.cgroup),
                    "cores": limit.cores,
                    "stopped": limit.throttled_periods,
                    "periods": limit.periods,
                }


def _busiest(found: Sequence[Neighbour]) -> list[Neighbour]:
    return sorted(found, key=lambda each: (-each.on_cpu, each.pid))


def _neighbour(each: Neighbour, duration: int) -> dict[str, Any]:
    return {
        "name": printable(each.process),
        "pid": kernel_id(each.pid),
        "on_cpu": each.on_cpu,
        "used": each.on_cpu / duration if duration else None,
        "may": printable(each.cpus),
    }


def _gpu(gpu: Gpu, of: Gpus) -> dict[str, Any]:
    return {
        "who": printable(of.who(gpu)),
        "name": printable(gpu.name),
        "busy": _known(gpu.busy, 1000),
        "memory": _known(gpu.memory_used, 1),
        "of": _known(gpu.memory, 1),
        "clock": _known(gpu.clock, 1),
        "most": _known(gpu.clock_most, 1),
        "power": _known(gpu.power, 1000),
        "limit": _known(gpu.power_limit, 1000),
        "limits": [[printable(each.reason), each.samples / gpu.samples] for each in gpu.limits if gpu.samples],
    }


def _known(number: int, unit: int) -> float | None:
    return None if number == UNKNOWN else number / unit
