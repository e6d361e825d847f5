"""A comparison of two runs as text and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from ...base.text import json_text, printable
from ...base.units import duration, plural
from ...facts import thresholds
from ...phrases.jobs import percent
from . import locks, steps
from .changes import Change
from .comparing import Comparison
from .first import answer, caveat, place, who
from .intervals import Key
from .judgement import verdict
from .locks import LockChange
from .moved import Moved
from .verdicts import Held, Pair

SCHEMA_VERSION = 2
_NOT_HELD = ("not held up", "not there")


def show(comparison: Comparison, file: TextIO) -> None:
    """Writes the comparison for a person, in at most 40 lines."""
    from ...summary.terminal import encodable

    text = "".join(f"{line}\n" for line in lines(comparison))
    file.write(encodable(text, file.encoding))
    file.flush()


def lines(comparison: Comparison) -> Iterator[str]:
    """Lines of the report, escaped. What does not fit is in the JSON, and on the page."""
    first = [each for each in (answer(comparison), caveat(comparison)) if each]
    yield from first
    yield ""
    top = [*sides(comparison), *numbers(comparison)[: thresholds.COMPARED_NUMBERS]]
    yield from top
    room = thresholds.COMPARED_LINES - len(first) - len(top) - 1
    for head, rows in _tables(comparison):
        if rows and room > 2:
            shown = rows[: room - 2]
            yield from ("", head, *shown)
            room -= len(shown) + 2


def _tables(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """Heads and rows, the most important first."""
    rows = [row for change in comparison.steps[: thresholds.COMPARED_NUMBERS] for row in steps.step_rows(change)]
    yield "Steps", [f"{one:>8} {other:>8} {more:>8}  {text}" for one, other, more, text in rows]
    yield _change_table(comparison)
    yield "Locks (not tested), with the mean wait", list(map(_lock_line, comparison.locks[: thresholds.COMPARED_MOVED]))
    verdicts = verdict_lines(comparison)[: thresholds.COMPARED_VERDICTS]
    yield "Verdicts that differ (not tested), with the share of their threads' time", verdicts
    for head, moved in (("Functions that run", comparison.functions), ("Calls", comparison.calls)):
        told = list(map(_moved_line, moved[: thresholds.COMPARED_MOVED]))
        yield f"{head} (not tested)", told


def verdict_lines(comparison: Comparison) -> list[str]:
    """A line for each process whose verdicts differ, escaped."""
    return [_pair_line(each) for each in comparison.verdicts if each.differs]


def numbers(comparison: Comparison) -> list[str]:
    """A line for each name of which there are more or fewer processes, escaped."""
    rows = comparison.processes
    return [f"{who(row.process, row.rank)}: {plural(row.before, 'process')} before, {row.after} after" for row in rows]


def sides(comparison: Comparison) -> Iterator[str]:
    """A line on how much there is of each side."""
    given = zip(("Before", "after"), comparison.runs, comparison.sliced, comparison.durations, strict=True)
    told = (f"{when}: {_runs(runs, sliced)}, {duration(length)}" for when, runs, sliced, length in given)
    yield f"{'; '.join(told)}. Times are s of threads per s of the trace."


def _runs(number: int, sliced: int) -> str:
    """``3 runs``; ``3 runs (2 with slices)`` if some are old captures, or of other commands."""
    return plural(number, "run") + (f" ({sliced} with slices)" if sliced < number else "")


def range_name(comparison: Comparison) -> str:
    """Name of what the `ranges` are of."""
    return "Runs" if are_of_runs(comparison) else "Slices"


def are_of_runs(comparison: Comparison) -> bool:
    """Whether the `ranges` are those of runs: there are several on each side."""
    return min(comparison.sliced) > 1


def ranges(each: Change, *, of_runs: bool) -> list[str]:
    """Least and greatest rate of a run, or a slice, before and after."""
    pairs = [(min(side.runs), max(side.runs)) if of_runs else side[1:] for side in (each.before, each.after)]
    return [f"{lowest:.2f}-{highest:.2f}" for lowest, highest in pairs]


def _change_table(comparison: Comparison) -> tuple[str, list[str]]:
    head = f"{'Before':>8} {'After':>8} {'Change':>8}"
    changes = comparison.changes[: thresholds.COMPARED_ROWS]
    if comparison.judged:
        return f"{head} {'±':>6}  {'Test':<21} What", list(map(_judged_line, changes))
    name, of_runs = range_name(comparison), are_of_runs(comparison)
    rows = [[_rates(each), *ranges(each, of_runs=of_runs), what(each.key)] for each in changes]
    return f"{head}  {name + ' before':<14} {name + ' after':<13} What", [
        f"{rates}  {before:<14} {after:<13} {text}" for rates, before, after, text in rows
    ]


def _judged_line(each: Change) -> str:
    margin = f"{each.welch.margin:.2f}" if each.welch else ""
    return f"{_rates(each)} {margin:>6}  {verdict(each.chance, is_change=each.is_change):<21} {what(each.key)}"


def _rates(each: Change) -> str:
    return f"{each.before.rate:8.2f} {each.after.rate:8.2f} {each.difference:+8.2f}"


def _moved_line(each: Moved) -> str:
    return f"{each.before:8.2f} {each.after:8.2f} {each.difference:+8.2f}  {whose(each)}"


def _lock_line(change: LockChange) -> str:
    before, after, more, mean, now, text = locks.row(change)
    return f"{before:>8} {after:>8} {more:>8}  {text}, {mean}, now {now}"


def whose(each: Moved) -> str:
    """``train (rank 3): matmul``, escaped."""
    return f"{who(each.process, each.rank)}: {printable(each.name)}"


def _pair_line(each: Pair) -> str:
    before, after = each.before, each.after
    name = who(each.process, each.rank)
    if before and after and each.is_same:
        told = _part(before), _part(after)
        if told[0] == told[1]:
            told = _rate(before), _rate(after)
        return f"  {name}: {_where(after)}, {told[0]}, now {told[1]}"
    said = [
        f"{_where(held)}, {_part(held)}" if held and held.rate else _NOT_HELD[held is None] for held in (before, after)
    ]
    return f"  {name}: {said[0]}; now {said[1]}"


def _part(held: Held) -> str:
    """Share of the time of the threads that are held up, or the time where that is not known."""
    return _rate(held) if held.share is None else percent(held.share)


def _rate(held: Held) -> str:
    return f"{held.rate:.2f} s per s"


def _where(held: Held) -> str:
    where = place(held.frames, held.kernel)
    return held.kind + (f" in {where}" if where else "")


def what(key: Key) -> str:
    """``train (rank 3): io in main → save │ folio_wait_bit``, escaped."""
    where = place(key.frames, key.kernel)
    return f"{who(key.process, key.rank)}: {key.kind}" + (f" in {where}" if where else "")


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Plain data for ``json.dumps``. Rates are s per s of the trace; null is what is not known."""
    return {
        "compare_version": SCHEMA_VERSION,
        "durations_ns": list(comparison.durations),
        "intervals": list(comparison.intervals),
        "runs": list(comparison.runs),
        "sliced": list(comparison.sliced),
        "judged": comparison.judged,
        "tested": comparison.tested,
        "changes": [_change_json(each) for each in comparison.changes],
        "verdicts": [_pair_json(each) for each in comparison.verdicts],
        "functions": [_moved_json(each) for each in comparison.functions],
        "locks": [each.to_json() for each in comparison.locks],
        "calls": [_moved_json(each) for each in comparison.calls],
        "steps": [each.to_json() for each in comparison.steps],
        "processes": [{**each._asdict(), "process": json_text(each.process)} for each in comparison.processes],
    }


def _change_json(each: Change) -> dict[str, Any]:
    return {
        "process": json_text(each.key.process),
        "rank": each.key.rank,
        "kind": each.key.kind,
        "frames": [json_text(frame) for frame in each.key.frames],
        "kernel": json_text(each.key.kernel),
        "before": each.before.rate,
        "after": each.after.rate,
        "runs": [list(each.before.runs), list(each.after.runs)],
        "slices": [list(each.before[1:]), list(each.after[1:])],
        "margin": each.welch and each.welch.margin,
        "chance": each.chance,
        "is_change": each.is_change,
    }


def _pair_json(each: Pair) -> dict[str, Any]:
    return {
        "process": json_text(each.process),
        "rank": each.rank,
        "before": each.before and _held_json(each.before),
        "after": each.after and _held_json(each.after),
        "differs": each.differs,
    }


def _held_json(held: Held) -> dict[str, Any]:
    frames = [json_text(frame) for frame in held.frames]
    return {**held._asdict(), "frames": frames, "kernel": json_text(held.kernel)}


def _moved_json(each: Moved) -> dict[str, Any]:
    return {**each._asdict(), "process": json_text(each.process), "name": json_text(each.name)}
