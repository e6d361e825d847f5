"""The jobs of a scan: how the times of their ranks compare, who is late, and who has which GPU open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.text import json_text, printable
from ..base.units import count, plural
from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.gpus import GpuUse, are_usual, gpus_of, without_gpu
from ..facts.identity import kernel_id, shown_id
from ..facts.jobs import Job, Rank, jobs_of
from ..facts.ranks import named
from ..facts.wait_functions import COLLECTIVE
from ..phrases.jobs import alike, job_name, percent, rank_name, straggler, unlike
from ..rules.rank_states import RUNNABLE, RUNNING, RankStates, RankTimes, states_of
from ..rules.straggler import Straggler, straggler_of
from ..summary.tables import table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

HEADS = {RUNNING: "Running", RUNNABLE: "Queued", COLLECTIVE: "Ranks"}
"""Heads of columns; those of other kinds are the kinds."""


@dataclass(frozen=True)
class JobReport:
    """A job, the times of its ranks, and who is late. Names are hostile."""

    program: str
    """Name of the processes."""
    states: RankStates
    late: Straggler | None
    is_told: bool = False
    """Whether the answer says who is late."""

    @property
    def job(self) -> Job:
        return self.states.job

    @property
    def title(self) -> str:
        """Words for the job; who is late, if somebody is."""
        name = job_name(self.job, self.program)
        if self.late:
            return f"{name}. {straggler(self.late)}"
        if any(self.states.far()):
            return f"{name}. Nobody is late."
        return f"{name}, {unlike(self.states) or alike(self.states)}"

    def in_order(self) -> list[tuple[Rank, RankTimes, bool]]:
        """Ranks with their times, and whether they stand out: those first that are farthest from the median."""
        middle, _ = self.states.bar() or (0.0, 0.0)
        rows = list(zip(self.job.ranks, self.states.times, self.states.far(), strict=True))
        return sorted(rows, key=lambda row: (not row[2], -abs(row[1].own - middle) if row[2] else 0, row[0].number))

    def columns(self) -> list[str]:
        """Kinds that are shown, those with most time first, with those in which the late ranks differ."""
        kinds = list(self.states.medians())
        most = {kind: max(each.share(kind) for each in self.states.times) for kind in kinds}
        beside = [kind for kind in kinds if kind not in HEADS and most[kind] >= thresholds.SIGNIFICANT]
        if self.late and self.late.excess.kind in beside:
            beside.sort(key=lambda kind: kind != self.late.excess.kind)  # type: ignore[union-attr]  # it is there
        return [*HEADS, *beside[: thresholds.RANK_COLUMNS]]


@dataclass(frozen=True)
class Jobs:
    """Jobs and GPUs of a scan."""

    reports: tuple[JobReport, ...] = ()
    gpus: tuple[GpuUse, ...] = ()
    without_gpu: tuple[Rank, ...] = ()
    names: dict[int, str] | None = None
    """Names of the processes that have a GPU open and are no ranks, by pid."""

    @property
    def are_gpus_usual(self) -> bool:
        """Whether each GPU is open in one process."""
        return are_usual(self.gpus, [each.job for each in self.reports])

    def to_json(self) -> list[dict[str, Any]]:
        """Plain data for ``json.dumps``: a job each. Times in ns, shares as fractions of 1."""
        return [_job_json(each) for each in self.reports]

    def gpus_json(self) -> list[dict[str, Any]]:
        """A GPU each, with the processes that have it open."""
        names = self.names or {}
        return [
            {
                "gpu": each.minor,
                "ranks": [{"rank": rank.number, "pid": kernel_id(rank.pid)} for rank in each.ranks],
                "others": [{"name": json_text(names.get(pid, "")), "pid": kernel_id(pid)} for pid in each.others],
            }
            for each in self.gpus
        ]


def jobs_report(facts: Facts, told: Straggler | None = None) -> Jobs:
    """The jobs of a profile. ``told``: who is late, if an answer has said so."""
    jobs = jobs_of(facts)
    reports = []
    for job in jobs:
        states = states_of(facts, job)
        late = straggler_of(facts, states)
        is_told = late is not None and late == told
        reports.append(JobReport(facts.name_of_pid(job.ranks[0].pid), states, late, is_told))
    gpus = gpus_of(facts, jobs)
    names = {pid: facts.name_of_pid(pid) for each in gpus for pid in each.others}
    return Jobs(tuple(reports), gpus, without_gpu(jobs), names)


def blocks(jobs: Jobs) -> Iterator[RenderableType]:
    """The jobs on a screen: a line each; a table of the ranks of the first one in which somebody stands out. What an
    answer has said is not said again."""
    from rich.text import Text

    has_table = False
    for each in jobs.reports[: thresholds.JOBS_SHOWN]:
        yield Text()
        yield Text(printable(f"{job_name(each.job, each.program)}:" if each.is_told else each.title))
        if any(each.states.far()) and not has_table:
            yield _table(each)
            has_table = True
    if (rest := len(jobs.reports) - thresholds.JOBS_SHOWN) > 0:
        yield Text(f"and {plural(rest, 'job')} more (--json has them)")
    yield from (Text(printable(line)) for line in gpu_lines(jobs))


def _table(report: JobReport) -> Table:
    kinds, medians = report.columns(), report.states.medians()
    made = table(*(HEADS.get(kind, kind) for kind in kinds), last="Rank (shares of its time; * stands out)")
    rows = report.in_order()
    for rank, times, is_far in rows[: thresholds.RANK_ROWS]:
        mark = "*" if is_far else ""
        workers = f", {plural(len(rank.workers), 'worker')}" if rank.workers else ""
        cells = [percent(times.share(kind)) if times.wall else "-" for kind in kinds]
        made.add_row(*cells, f"{printable(rank_name(rank))}{workers}{mark}", style="bold" if is_far else "")
    rest = len(rows) - thresholds.RANK_ROWS
    more = f" ({count(rest)} more: --json)" if rest > 0 else ""
    made.add_row(
        *(percent(medians.get(kind, 0.0)) for kind in kinds), f"median of {count(len(rows))}{more}", style="dim"
    )
    return made


def gpu_lines(jobs: Jobs) -> list[str]:
    """``GPU 3: rank 3 (pid 4711), dcgm (pid 900)``, if anything is unusual; GPUs that the same have open share one."""
    if not jobs.gpus or jobs.are_gpus_usual:
        return []
    groups: dict[object, list[GpuUse]] = {}
    for each in jobs.gpus:
        groups.setdefault((each.others, each.ranks if len(each.ranks) != 1 else 1), []).append(each)
    lines = [_gpu_line(members, jobs.names or {}) for members in groups.values()]
    if jobs.without_gpu:
        lines.insert(0, f"No GPU open: {', '.join(map(rank_name, jobs.without_gpu[: thresholds.PIDS_SHOWN]))}")
    rest = len(lines) - thresholds.GPU_LINES
    return [
        *lines[: thresholds.GPU_LINES],
        *([f"and {plural(rest, 'line')} more on GPUs (--json)"] if rest > 0 else []),
    ]


def _gpu_line(members: Sequence[GpuUse], names: dict[int, str]) -> str:
    numbers = named([each.minor for each in members], {each.minor: each.minor for each in members}).partition(" ")[2]
    ranks = {rank.pid: rank.number for each in members for rank in each.ranks}
    is_one_each = len(members) > 1 and all(len(each.ranks) == 1 for each in members)
    whom = [named(ranks, ranks) + (" (one each)" if is_one_each else "")] if ranks else []
    if len(ranks) == 1:
        whom = [rank_name(rank._replace(gpus="")) for each in members for rank in each.ranks][:1]
    whom += [f"{names.get(pid, '')} (pid {shown_id(pid)})" for pid in members[0].others[: thresholds.NAMES_LISTED]]
    rest = len(members[0].others) - thresholds.NAMES_LISTED
    more = f" and {count(rest)} more" if rest > 0 else ""
    return f"GPU{'s' if len(members) > 1 else ''} {numbers}: open in {', '.join(whom)}{more}"


def _job_json(report: JobReport) -> dict[str, Any]:
    job, launcher = report.job, report.job.launcher
    return {
        "program": json_text(report.program),
        "size": job.size or None,
        "launcher": launcher and {"name": json_text(launcher.process), "pid": launcher.pid},
        "evidence": list(job.evidence),
        "told": json_text(report.title),
        "medians": {kind: round(part, _DIGITS) for kind, part in report.states.medians().items()},
        "ranks": [
            _rank_json(rank, times, far)
            for rank, times, far in zip(job.ranks, report.states.times, report.states.far(), strict=True)
        ],
        "straggler": report.late and _late_json(report.late),
    }


def _rank_json(rank: Rank, times: RankTimes, is_far: bool) -> dict[str, Any]:
    return {
        "rank": rank.number,
        "pid": kernel_id(rank.pid),
        "rank_source": rank.source,
        "gpus": json_text(rank.gpus),
        "workers": [kernel_id(pid) for pid in rank.workers],
        "wall_ns": times.wall,
        "kinds_ns": dict(sorted(times.kinds.items())),
        "own": round(times.own, _DIGITS),
        "outlier": is_far,
        "ended_by_ns": {str(kernel_id(pid)): time for pid, time in sorted(times.ended_by.items())},
    }


def _late_json(late: Straggler) -> dict[str, Any]:
    excess = late.excess
    return {
        "ranks": [rank.number for rank in late.late],
        "waits": round(late.waits, _DIGITS),
        "others_wait": round(late.others_wait, _DIGITS),
        "kind": excess.kind,
        "share": round(excess.share, _DIGITS),
        "usual": round(excess.usual, _DIGITS),
        "frames": [json_text(frame) for frame in excess.frames],
        "ended": None if late.ended is None else round(late.ended, _DIGITS),
        "for_lock": late.for_lock,
    }


_DIGITS = 6
