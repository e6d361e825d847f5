"""The groups of processes of a page: a row of the report each, and which of them a process is in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...facts.identity import kernel_id, kernel_ids, shown_id
from ..process_verdicts import ProcessVerdict
from ..report import Report

OTHERS = "others"
"""Label of processes that no row of the report is about: threads of the kernel, and those that are not known."""


@dataclass(frozen=True)
class Groups:
    """Groups in the order of the report. Labels and names are hostile."""

    rows: tuple[ProcessVerdict, ...]
    labels: tuple[str, ...]
    """Label of each group, each once."""
    by_pid: dict[int, int]
    """Index of the group, by the kernel's pid."""
    names: dict[int, str]
    """Names of processes with their scripts and ranks, by the kernel's pid."""
    ranks: dict[int, int]
    """Ranks of processes in their job, by the kernel's pid."""

    def of(self, pid: object) -> int:
        """Index of the group of a process; the number of groups if it is in none."""
        return self.by_pid.get(pid, len(self.rows)) if isinstance(pid, int) else len(self.rows)

    def label(self, pid: object) -> str:
        """Label of the group of a process."""
        group = self.of(pid)
        return self.labels[group] if group < len(self.labels) else OTHERS


def groups_of(report: Report) -> Groups:
    """The groups of a report."""
    rows = report.processes
    by_pid: dict[int, int] = {}
    for i, row in enumerate(rows):
        for pid in kernel_ids(row.pids):
            by_pid.setdefault(pid, i)
    ranks = {kernel_id(pid): rank for pid, rank in report.facts.ranks.items()}
    names = {
        pid: f"{each.name} [rank {ranks[pid]}]" if pid in ranks else each.name
        for each in report.summary.processes
        for pid in kernel_ids(each.pids)
    }
    return Groups(rows, tuple(_labels(rows)), by_pid, names, ranks)


def _labels(rows: Sequence[ProcessVerdict]) -> list[str]:
    """``2 × train: lock``, ``train (7): lock``; with a number if that is not the only one."""
    wanted = []
    for row in rows:
        one = len(row.pids) == 1
        who = f"{row.name} ({shown_id(row.pids[0])})" if one else f"{len(row.pids):,} × {row.name}"
        wanted.append(f"{who}: {row.kind}")
    times = Counter(wanted)
    seen: Counter[str] = Counter()
    labels = []
    for text in wanted:
        seen[text] += 1
        labels.append(f"{text} ({seen[text]})" if times[text] > 1 else text)
    return labels
