"""Number of processes that were scanned, in words."""

from __future__ import annotations

from ..base.units import count, plural
from ..facts.identity import kernel_id
from ..model.remarks import Joined
from .report import Report


def scanned(report: Report) -> str:
    """``2 processes, and 1 for which they wait, with 9 threads``"""
    known = [kernel_id(pid) for each in report.processes for pid in each.pids]
    joining = {each.pid for each in report.summary.comments if isinstance(each, Joined)}
    joined = sum(pid in joining for pid in known)
    chosen = len(known) - joined
    threads = f"with {plural(report.summary.times.threads, 'thread')}"
    if not joined or chosen <= 0:
        return f"{plural(len(known), 'process')} {threads}"
    who = "it waits" if chosen == 1 else "they wait"
    return f"{plural(chosen, 'process')}, and {count(joined)} for which {who}, {threads}"
