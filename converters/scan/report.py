"""The report of a scan as plain data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..base.text import json_text
from ..facts import thresholds
from ..facts.facts import Facts
from ..facts.identity import kernel_ids
from ..facts.pools import pools_json, pools_of
from ..facts.teams import teams_json, teams_of
from ..model import Profile
from ..model.next_step import Whom
from ..phrases.sentences import Sentences
from ..rules.ranking import judge
from ..rules.straggler import told_as_late
from ..rules.stuck_ranks import polling_ranks
from ..summary.figures import Summary
from ..summary.judging import read
from ..summary.sharing import serialised
from ..summary.summarize import summarize
from . import nameless_code, over_time
from .cost import cost_json
from .gpus import Gpus, gpus_told
from .host import Host, host_of, sentences
from .jobs import Jobs, jobs_report
from .next_step import concerned, step_of_scan
from .outsiders import outsiders
from .process_verdicts import Ender, ProcessVerdict, process_verdicts
from .steps import Pace, paces, paces_json

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Report:
    """Report of a scan. Names and sentences are unescaped (hostile)."""

    summary: Summary
    processes: tuple[ProcessVerdict, ...]
    """Rows for all processes: those at work first, by what would be saved."""
    findings: tuple[str, ...]
    """Sentences on other troubles than those of the answer, the most important first."""
    host: Host
    """Facts on the host: what is short, and who waits for whom."""
    jobs: Jobs
    gpus: Gpus
    """GPUs as the driver tells of them, if it was asked."""
    facts: Facts = field(repr=False)
    """Facts of which the verdicts are made."""
    concerned: int = 0
    """Number of processes of which the first verdict tells; 0 if that is not known."""
    steps: Mapping[str, Sequence[Pace]] = field(default_factory=dict)
    """Steps of threads by function, if some were asked for; else those that were found, by place."""

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``json.dumps``. Times in ns, shares as fractions of 1, null when unknown."""
        return {
            "scan_version": SCHEMA_VERSION,
            "processes": [process_json(each) for each in self.processes],
            "jobs": self.jobs.to_json(),
            "gpus": self.jobs.gpus_json(),
            "steps": paces_json(self.steps),
            "teams": teams_json(self.facts.once(teams_of)),
            "pools": pools_json(self.facts.once(pools_of)),
            "concerned": self.concerned,
            "findings": [json_text(each) for each in self.findings],
            "nvml": self.gpus.to_json(),
            "host": self.host.to_json(),
            **cost_json(self.summary.comments),
            "summary": self.summary.to_json(),
        }


def report_of(profile: Profile, chosen: Whom | None = None, awake: Collection[int] = ()) -> Report:
    """The report of a profile of wall-clock time. ``chosen``: how the user chose the processes. ``awake``: see
    `process_verdicts`.

    StallscopeError like `summarize`.
    """
    known = read(profile)
    summary = summarize(profile, chosen, known)
    judgement = known.facts.once(judge)
    processes = tuple(process_verdicts(known.facts, awake, judgement.first))
    step = step_of_scan(summary.next_step, known.facts, judgement, processes)
    jobs = jobs_report(known.facts, told_as_late(summary.judged.verdicts))
    gpus = gpus_told(profile.gpus, jobs.gpus, jobs.names)
    concerns = concerned(judgement.first) if judgement.first else ()
    graph = known.facts.recorded.graph if known.facts.recorded else None
    steps = paces((*summary.steps, *profile.found_steps), known.facts, [each.job for each in jobs.reports])
    outside = outsiders(summary.shared, profile.duration_ns, [each.job for each in jobs.reports])
    host = host_of(profile, graph, summary.shared, outside, polling_ranks(judgement.verdicts))
    nameless = nameless_code.sentences(known.facts, concerns)
    told = (*outside, *_findings(known.facts, summary), *nameless, *sentences(host))
    findings = told[: thresholds.FINDINGS]
    return Report(
        replace(summary, next_step=step), processes, findings, host, jobs, gpus, known.facts, len(concerns), steps
    )


def _findings(facts: Facts, summary: Summary) -> tuple[str, ...]:
    """Sentences on what the answer does not tell, if it matters beside the first verdict."""
    judgement, words = facts.once(judge), Sentences(facts)
    told = (judgement.first, judgement.second)
    least = thresholds.WORTH * judgement.first.score if judgement.first else 0.0
    others = [each for each in judgement.verdicts if each not in told and each.score >= least]
    return (*serialised(summary.shared), *map(words.of, others))


def process_json(each: ProcessVerdict) -> dict[str, Any]:
    """Plain data of a row."""
    share = each.share
    return {
        "name": json_text(each.name),
        "pids": kernel_ids(each.pids),
        "kind": each.kind,
        "rule": each.verdict.rule if each.verdict else None,
        "time_ns": each.time,
        "share": None if share is None else round(share, 6),
        "on_cpu_ns": each.on_cpu,
        "score_ns": round(each.score),
        "frames": [json_text(frame) for frame in each.frames],
        "kernel_wait": json_text(each.kernel),
        "runs_in": [
            {"frames": [json_text(frame) for frame in frames], "samples": number}
            for frames, number in each.hot.places[: thresholds.VALUES_SHOWN]
        ],
        "samples": each.hot.samples,
        "ended_by": each.ender and _ender_json(each.ender, each.waits),
        "network": json_text(each.network) if each.network else None,
        "slices": over_time.to_json(each.over),
    }


def _ender_json(ender: Ender, waits: int) -> dict[str, Any]:
    return {"name": json_text(ender.name), "pids": kernel_ids(ender.pids), "time_ns": ender.time, "waits_ns": waits}
