"""Evidence of each row of the verdicts as plain data: threads, places with their stacks, waits of the processes.

Texts are printable: the page shows them as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...base.text import printable
from ...facts.facts import Facts
from ...facts.identity import kernel_id, kernel_ids, shown_id
from ...facts.wait_kinds import CORE
from ...facts.wait_sums import Place
from ...model import Frame, Profile
from ...model.sites import Site
from ...rules.finding import Finding
from ...rules.place_kinds import kind_of_place
from ...rules.verdict import IDLE, KINDS
from ..over_time import OverTime
from ..process_verdicts import Ender, ProcessVerdict
from .groups import Groups

PIDS = 200
"""Ids of processes of a row."""
PLACES = 5
"""Places with their stacks."""
THREADS = 12
WAITS = 8
"""Waits of the processes of a row."""
SLICE_KINDS = 4
"""Kinds of time that are told of a slice."""
_NOWHERE = Site((), "")


def rows(profile: Profile, facts: Facts, groups: Groups) -> list[dict[str, Any]]:
    """A row for each group. Times in ns; null when not known."""
    waits, times = _waits(facts, groups), _times(profile, groups)
    return [{**_row(row, groups.labels[i]), "times": times[i], "waits": waits[i]} for i, row in enumerate(groups.rows)]


def _row(row: ProcessVerdict, label: str) -> dict[str, Any]:
    finding = row.verdict.finding if row.verdict and row.kind != IDLE else None
    return {
        "label": printable(label),
        "name": printable(row.name),
        "pids": [shown_id(pid) for pid in row.pids[:PIDS]],
        "number": len(row.pids),
        "kind": row.kind,
        "meaning": KINDS[row.kind],
        "share": row.share,
        "time": row.time,
        "on_cpu": row.on_cpu,
        "score": round(row.score),
        "place": [printable(frame) for frame in row.frames],
        "kernel": printable(row.kernel),
        "ender": row.ender and _ender(row.ender, row.waits),
        "rule": row.verdict.rule if row.verdict and row.kind != IDLE else "",
        "told": printable(row.told),
        "slices": _slices(row.over) if row.over else None,
        "finding": finding and _finding(finding),
    }


def _slices(over: OverTime) -> dict[str, Any]:
    """``parts``: of each slice, the kinds with most time and their ns, and the ns of all others."""
    series = over.series
    parts = []
    for i in range(series.number):
        times = sorted(((times[i], kind) for kind, times in series.kinds.items() if times[i]), reverse=True)
        parts.append([[kind, time] for time, kind in times[:SLICE_KINDS]] + _rest(times[SLICE_KINDS:]))
    return {
        "length": series.length,
        "first": series.first,
        "kinds": list(over.kinds),
        "parts": parts,
        "told": printable(over.told),
    }


def _rest(times: Sequence[tuple[int, str]]) -> list[list[Any]]:
    return [["others", sum(time for time, _ in times)]] if times else []


def _ender(ender: Ender, waits: int) -> dict[str, Any]:
    return {
        "name": printable(ender.name),
        "pids": kernel_ids(ender.pids)[:PIDS],
        "share": ender.time / waits,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "threads": [shown_id(tid) for _, tid in finding.threads[:THREADS]],
        "number": len(finding.threads),
        "time": finding.time,
        "count": finding.count,
        "max": finding.max,
        "runnable": finding.runnable,
        "samples": finding.samples,
        "places": [_place(place) for place in finding.places[:PLACES]],
        "runs_in": [printable(frame) for frame in finding.runs_in],
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        "state": place.state,
        "kind": kind_of_place(place),
        "frames": [printable(frame) for frame in place.site.frames],
        "kernel": printable(place.site.kernel),
        "call": printable(place.wait.call),
        "lock": printable(place.wait.lock),
        "stack": [frame_text(frame) for frame in place.stack],
    }


def frame_text(frame: Frame) -> str:
    """``read │ libc.so.6``, with the line if it is known. Printable."""
    where = f"{frame.file}:{frame.line}" if frame.file and frame.line else frame.file
    module = frame.module.path.rpartition("/")[2] if frame.module else ""
    return printable(" │ ".join(filter(None, (frame.name, where or module))))


def _times(profile: Profile, groups: Groups) -> list[dict[str, int]]:
    """Times of all threads of each group."""
    found = [{"threads": 0, "wall": 0, "on_cpu": 0, "runnable": 0, "blocked": 0} for _ in groups.rows]
    for times in profile.threads:
        group = groups.of(kernel_id(times.pid))
        if group < len(found):
            sums = found[group]
            sums["threads"] += times.count
            sums["wall"] += times.wall
            sums["on_cpu"] += times.on_cpu
            sums["runnable"] += times.runnable
            sums["blocked"] += sum(times.blocked.values())
    return found


def _waits(facts: Facts, groups: Groups) -> list[list[dict[str, Any]]]:
    """The longest waits of each group, by kind and place."""
    sums: list[dict[tuple[str, Site], list[int]]] = [defaultdict(lambda: [0, 0]) for _ in groups.rows]
    for (pid, _), places in facts.sums.items():
        group = groups.of(kernel_id(pid))
        if group >= len(sums):
            continue
        for place, total in places.items():
            key = kind_of_place(place), _NOWHERE if place.kind == CORE else place.site
            sums[group][key][0] += total.time
            sums[group][key][1] += total.count
    return [list(_longest(each)) for each in sums]


def _longest(sums: Mapping[tuple[str, Site], list[int]]) -> Iterator[dict[str, Any]]:
    for (kind, site), (time, count) in sorted(sums.items(), key=lambda entry: (-entry[1][0], entry[0]))[:WAITS]:
        where = " → ".join(site.frames) + (f" │ {site.kernel}" if site.kernel else "")
        yield {"kind": kind, "where": printable(where), "time": time, "count": count}
