"""An interval as the process that has the terminal gets it: plain data, with the evidence of each verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...base.units import duration, share
from ...facts import thresholds
from ...facts.facts import Facts
from ...facts.identity import kernel_id, shown_id
from ...facts.wait_kinds import CORE
from ...facts.wait_sums import Thread
from ..conditions.holding import told
from ..cost import cost_notes
from ..process_verdicts import Ender, ProcessVerdict
from ..watch.line import Interval, stamp

LAST = b"\n"
"""Message after the last interval, in place of an object."""


@dataclass(frozen=True)
class LiveRow:
    """Row for processes of one name. Texts are unescaped (hostile)."""

    name: str
    pids: list[int]
    kind: str
    share: float | None
    cores: float
    score: float
    where: str
    """Function in which they are held up, or run."""
    ended: str
    """Process or device that ends their waits, and how much of them."""
    told: str
    """The verdict as a sentence."""
    rule: str
    stack: list[str]
    """Functions of the program, the outermost first."""
    kernel: list[str]
    """Functions of the kernel, the outermost first."""
    threads: list[list[str]]
    """Name, thread id, and the shares of running, runnable and blocked time, and where it mostly waits."""
    more_threads: int


@dataclass(frozen=True)
class Message:
    """Interval on the screen. Texts are unescaped (hostile)."""

    time: str
    length: str
    head: str
    """Numbers of what was scanned."""
    answer: list[str]
    rows: list[LiveRow]
    notes: list[str]
    """Notes on what was kept, why nothing was, and what was lost."""


def message_of(interval: Interval) -> dict[str, Any]:
    """Plain data for ``json.dumps``, which `read` takes."""
    summary, facts = interval.report.summary, interval.report.facts
    rows = interval.report.processes
    number = sum(len(each.pids) for each in rows)
    on_cpu = sum(each.on_cpu for each in rows) / interval.length if interval.length else 0.0
    head = f"{number} processes, {summary.times.threads} threads, {on_cpu:.2f} cores used"
    threads = _by_process(facts)
    made = [_row(each, facts, threads, interval.length) for each in rows[: thresholds.LIVE_PROCESSES]]
    notes = [f"when: {told(interval.holding)}"] if interval.holding else []
    notes += [f"kept {each}" for each in interval.kept]
    notes += [*interval.notes, *([f"lost: {', '.join(interval.losses())}"] if interval.missing else [])]
    notes += cost_notes(summary.comments)
    message = Message(stamp(interval.began), duration(interval.length), head, list(summary.answer), made, notes)
    return asdict(message)


def read(data: dict[str, Any]) -> Message:
    """The message that `message_of` has made."""
    return Message(**{**data, "rows": [LiveRow(**each) for each in data["rows"]]})


def _by_process(facts: Facts) -> dict[int, list[Thread]]:
    found: dict[int, list[Thread]] = defaultdict(list)
    for thread in facts.threads:
        found[thread[0]].append(thread)
    return found


def _row(each: ProcessVerdict, facts: Facts, threads: dict[int, list[Thread]], length: int) -> LiveRow:
    own = [thread for pid in each.pids for thread in threads[pid]]
    own.sort(key=lambda thread: (thread[0] != thread[1], -facts.threads[thread].on_cpu, thread))
    shown = own[: thresholds.LIVE_THREADS]
    return LiveRow(
        each.name,
        [kernel_id(pid) for pid in each.pids],
        each.kind,
        each.share,
        each.on_cpu / length if length else 0.0,
        each.score,
        " → ".join([*each.frames[-1:], *([each.kernel] if each.kernel else [])]),
        _ended(each.ender, each.waits),
        each.told,
        each.verdict.rule if each.verdict else "",
        *_stack(each),
        list(map(list, _threads(shown, facts))),
        len(own) - len(shown),
    )


def _ended(ender: Ender | None, waits: int) -> str:
    if ender is None:
        return ""
    pids = f" (pid {', '.join(map(shown_id, ender.pids))})" if 0 < len(ender.pids) <= thresholds.PIDS_SHOWN else ""
    return f"{ender.name}{pids}: {share(ender.time, waits)} of the waits"


def _stack(each: ProcessVerdict) -> tuple[list[str], list[str]]:
    """Functions of the program and of the kernel where most of the time is."""
    finding = each.verdict.finding if each.verdict else None
    if not (finding and finding.places):
        return list(each.frames), []
    stack = finding.places[0].stack
    kernel = [frame.name for frame in stack if frame.kind == "kernel"]
    program = [frame.name for frame in stack if frame.kind != "kernel"]
    return program[-thresholds.LIVE_STACK :], kernel[-thresholds.LIVE_STACK :]


def _threads(threads: Sequence[Thread], facts: Facts) -> Iterator[tuple[str, ...]]:
    for thread in threads:
        times = facts.threads[thread]
        blocked = sum(times.blocked.values())
        parts = (share(time, times.wall) for time in (times.on_cpu, times.runnable, blocked))
        waits = {place: total.time for place, total in facts.waits_of(thread).items() if place.kind != CORE}
        most = max(waits, key=lambda place: (waits[place], place), default=None)
        where = " → ".join([*most.site.frames[-1:], *([most.site.kernel] if most.site.kernel else [])]) if most else ""
        yield times.thread, shown_id(thread[1]), *parts, where
