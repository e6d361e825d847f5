"""The data of a page: a report and its profile as plain data for ``json.dumps``. Texts are printable."""

from __future__ import annotations

from typing import Any

from ...base.text import printable
from ...model import Profile
from ...phrases.next_steps import tells
from ...phrases.remarks import worded
from ..report import Report
from . import evidence, tables
from .groups import Groups
from .host import host_data
from .jobs import jobs_data
from .meetings import meetings_data
from .steps import steps_data

VERSION = 1


def page_data(profile: Profile, report: Report, groups: Groups) -> dict[str, Any]:
    """Times in ns, shares as fractions of 1, null when not known. ``groups``: those of ``report``."""
    summary = report.summary
    step = summary.next_step
    cpus: frozenset[int] = frozenset().union(*(each.cpus for each in summary.contention))
    return {
        "version": VERSION,
        "host": printable(summary.host),
        "start": summary.start_ns // 1_000_000,
        "duration": summary.duration_ns,
        "threads_number": summary.times.threads,
        "processes_number": sum(len(each.pids) for each in report.processes),
        "cores_number": len(cpus),
        "on_cpu": summary.times.on_cpu,
        "runnable": summary.times.runnable,
        "wall": summary.times.wall,
        "findings": [printable(each) for each in report.findings],
        "next": step and [printable(step.command), printable(tells(step))],
        "rows": evidence.rows(profile, report.facts, groups),
        "jobs": jobs_data(report.jobs),
        "meetings": meetings_data(report),
        "steps": steps_data(report),
        "machine": host_data(profile, report),
        "matrix": tables.matrix(summary.blocking, groups.names),
        "locks": tables.locks(summary.locks),
        "calls": tables.calls((*summary.calls, *summary.inner_calls)),
        "shared": tables.shared(summary.shared),
        "cores": tables.cores(summary),
        "threads": tables.threads(profile, groups.names),
        "lost": tables.losses(profile.lost),
        "counted": bool(profile.lost),
        "notes": [printable(each) for each in worded(summary.comments)],
        "samples": len(profile.samples),
    }
