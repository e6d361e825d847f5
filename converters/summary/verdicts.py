"""Verdicts as plain data, for ``--json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import singledispatch
from typing import Any, NamedTuple

from ..base.text import json_text
from ..facts import thresholds
from ..facts.group_limits import limit_json
from ..facts.identity import is_sum, kernel_id, kernel_ids, life_of
from ..facts.wait_objects import on_json
from ..facts.wait_sums import Place, Thread
from ..model import Stack, ThreadTimes
from ..model.group_limits import GroupLimit
from ..model.locks import LockThread, LockTimes
from ..model.processes import CpuLimit
from ..rules.busy import Busy
from ..rules.finding import Finding
from ..rules.pool_anew import Pool
from ..rules.processes_anew import Started
from ..rules.verdict import Verdict


class Judged(NamedTuple):
    """Verdicts, the most important first, and the threads that they are on."""

    verdicts: tuple[Verdict, ...]
    threads: Mapping[Thread, ThreadTimes]

    def to_json(self) -> list[dict[str, Any]]:
        """Times in ns, shares as fractions of 1, null when unknown. Names are hostile."""
        return [self._verdict(verdict) for verdict in self.verdicts]

    def _verdict(self, verdict: Verdict) -> dict[str, Any]:
        return {
            "rule": verdict.rule,
            "kind": verdict.kind,
            "time_ns": verdict.time,
            "confidence": round(verdict.confidence, 4),
            "score_ns": round(verdict.score),
            "pids": kernel_ids(verdict.pids),
            "subject": (subject := _subject(verdict)) and self._finding(subject),
            "cause": verdict.cause and self._finding(verdict.cause),
            "effect": verdict.effect and self._finding(verdict.effect),
            "evidence": evidence_json(verdict.detail),
        }

    def _finding(self, finding: Finding) -> dict[str, Any]:
        return {
            "does": finding.kind,
            "time_ns": finding.time,
            "share": round(finding.time / finding.wall, 6) if finding.wall else None,
            "runnable_ns": finding.runnable,
            "waits": finding.count,
            "max_ns": finding.max,
            "samples": finding.samples,
            "threads": [self._thread(thread) for thread in finding.threads[: thresholds.VERDICT_THREADS]],
            "more_threads": max(len(finding.threads) - thresholds.VERDICT_THREADS, 0),
            "on": on_json(finding.on),
            "places": [_place_json(place) for place in finding.places],
        }

    def _thread(self, thread: Thread) -> dict[str, Any]:
        times = self.threads[thread]
        pid, tid = thread
        named = {"process": json_text(times.process), "thread": json_text(times.thread)}
        if is_sum(tid):
            return {**named, "pid": kernel_id(pid), "tid": 0, "count": times.count}
        lives = {"life": life_of(tid)} if life_of(tid) > 1 else {}
        return {**named, "pid": kernel_id(pid), "tid": kernel_id(tid), **lives}


def _subject(verdict: Verdict) -> Finding | None:
    """Threads that it is on. The verdict on running threads has the time of all groups, and names the first."""
    return verdict.detail.groups[0] if isinstance(verdict.detail, Busy) else verdict.finding


@singledispatch
def evidence_json(_: object) -> Any:
    """The figures of a rule as plain data, fields by name. Left out is what other parts of the output tell: findings,
    and the figures of processes, locks and the GIL."""
    return None


@evidence_json.register
def _(number: int) -> Any:
    return number


@evidence_json.register
def _(number: float) -> Any:
    return round(number, 6)


@evidence_json.register
def _(text: str) -> Any:
    return json_text(text)


@evidence_json.register
def _(lock: LockTimes) -> Any:
    return {"name": json_text(lock.name), "kind": lock.kind, "pid": lock.pid}


@evidence_json.register
def _(limit: GroupLimit) -> Any:
    return limit_json(limit)


@evidence_json.register(Pool)
@evidence_json.register(Started)
@evidence_json.register(CpuLimit)
@evidence_json.register(LockThread)
def _(part: Any) -> Any:
    return _fields_json({field.name: getattr(part, field.name) for field in fields(part)})


@evidence_json.register
def _(members: tuple) -> Any:  # type: ignore[type-arg]
    if hasattr(members, "_asdict"):
        return _fields_json(members._asdict())
    return [found for each in members if (found := evidence_json(each)) is not None]


@evidence_json.register
def _(members: set) -> Any:  # type: ignore[type-arg]
    return sorted(filter(None, map(evidence_json, members)))


def _fields_json(named: Mapping[str, object]) -> dict[str, Any]:
    told = ((name, evidence_json(value)) for name, value in named.items())
    return {name: value for name, value in told if value is not None}


NOT_JUDGED = Judged((), {})


def stack_json(stack: Stack) -> list[dict[str, Any]]:
    """All frames, outermost first; without what is not known of them."""
    return [
        {
            "function": json_text(frame.name),
            **({"module": json_text(frame.module.path)} if frame.module else {}),
            **({"file": json_text(frame.file)} if frame.file else {}),
            **({"line": frame.line} if frame.line else {}),
        }
        for frame in stack
    ]


def _place_json(place: Place) -> dict[str, Any]:
    wait = place.wait
    return {
        "state": json_text(place.state),
        "frames": [json_text(frame) for frame in place.site.frames],
        "kernel_wait": json_text(place.site.kernel),
        "call": json_text(wait.call),
        "lock": json_text(wait.lock),
        "stack": stack_json(place.stack),
    }


def thresholds_json() -> dict[str, Any]:
    """All numbers that rules compare with, by name."""
    return {name.lower(): {"value": float(each), "unit": each.unit} for name, each in thresholds.table().items()}
