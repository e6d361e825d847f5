"""Contents of the tables: functions by their own share, calls from the outside in and from the inside out, threads."""

from __future__ import annotations

import os.path
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...base.errors import StallscopeError
from ...base.text import printable
from ...base.units import BILLIONTHS, plural, share, time_scale
from ...flame.tree import Key, Node, Tree, build
from ...model import Frame, Labels, Profile
from ...phrases.remarks import worded
from ...transforms.diff import is_differential
from ...transforms.labels import root_name
from ..base.options import WriteOptions, said_to_be_missing, value_index
from ..colors.hues import LABELS
from ..svg.text import human

_CUTOFF = 0.005
_AFTER, _BEFORE = 0, 1
"""Columns of a differential profile."""
FORMS = ("functions", "top-down", "bottom-up", "threads", "steps")
_USUAL = FORMS[:3]
"""Tables that are written if none is requested."""
_HEADINGS = {
    "functions": "Functions",
    "top-down": "Top-down: callers above what they call",
    "bottom-up": "Bottom-up: functions above what calls them",
    "threads": "Threads",
    "steps": "Steps",
}
_NANOSECONDS = {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}


class Row(NamedTuple):
    """One line: ``cells`` are formatted numbers; ``name`` is printable, indented according to its depth."""

    cells: list[str]
    name: str
    origin: str
    """Kind and library, "" if the rows have only numbers; of a thread, its top function."""


@dataclass(slots=True)
class Table:
    """One form of the table."""

    form: str
    heading: str
    columns: list[str]
    """Headings of the cells."""
    rows: list[Row]
    left_out: str
    """Description of what is left out, "" for nothing."""
    names: tuple[str, str] = ("function", "in")
    """Headings of names and origins."""
    lines: tuple[str, ...] = ()
    """Printable text instead of columns and rows."""


class _Sums(NamedTuple):
    """Sums of one function: now, and in a differential profile before (else 0)."""

    own: int
    total: int
    own_before: int
    total_before: int
    charged: int = 0
    """Change of ``own``, for a function of a program including what the kernel did for it."""


def tables(profile: Profile, options: WriteOptions) -> Iterator[Table]:
    """The forms requested by ``options``, in the order of `FORMS`. Raises StallscopeError."""
    column = value_index(profile, options)
    whole = max(_total(profile, 0), _total(profile, 1)) if is_differential(profile) else _total(profile, column)
    write = _amounts(whole, options.unit or profile.value_types[column].unit)
    for form in FORMS:
        if form == options.form or (not options.form and form in _USUAL):
            if form == "functions":
                yield _functions(profile, options, whole, write)
            elif form == "threads":
                yield _threads(profile, options, whole, write)
            elif form == "steps":
                yield _steps(profile, options)
            else:
                yield _calls(profile, options, form, write)


def _total(profile: Profile, column: int) -> int:
    return sum(max(sample.values[column], 0) for sample in profile.samples)


def _amounts(largest: int, unit: str) -> Callable[[int], str]:
    """Formats values: all times in one unit, so that they can be compared by eye."""
    factor = _NANOSECONDS.get(unit)
    if factor is None:
        return lambda value: f"-{human(-value, unit)}" if value < 0 else human(value, unit)
    scale = time_scale(largest * factor)

    def amount(value: int) -> str:
        if not value:
            return "0"
        size = abs(value) * factor
        return ("-" if value < 0 else "") + scale.text(scale.steps([size])[0], size)

    return amount


def _functions(profile: Profile, options: WriteOptions, whole: int, write: Callable[[int], str]) -> Table:
    changed = is_differential(profile)
    sums = _by_function(profile, value_index(profile, options), changed)
    least = _cutoff(options) * whole
    kept = {key: each for key, each in sums.items() if max(each.total, each.total_before) >= max(least, 1)}
    # What changed is looked for in programs: the kernel's functions come after theirs.
    ordered = sorted(kept, key=lambda key: (changed and key.kind == "kernel", *_weight(kept[key], changed), key))
    ordered = ordered[: options.rows]
    rows = []
    for key in ordered:
        own, total, own_before, total_before, _ = kept[key]
        if changed:
            cells = _change(own_before, own, write) + _change(total_before, total, write)
        else:
            cells = [write(own), share(own, whole), write(total), share(total, whole)]
        rows.append(Row(cells, printable(key.name), _origin(key)))
    columns = ["self", "", "total", ""]
    if changed:
        columns = ["self before", "after", "change", "total before", "after", "change"]
    left = len(sums) - len(rows)
    return Table("functions", _HEADINGS["functions"], columns, rows, f"{plural(left, 'more function')}" if left else "")


def _cutoff(options: WriteOptions) -> float:
    """The share of the total below which functions and calls are left out."""
    return options.min_share or _CUTOFF


def _weight(sums: _Sums, changed: bool) -> tuple[int, int]:
    """Sort key, the most important first."""
    if changed:
        return -abs(sums.charged), -abs(sums.total - sums.total_before)
    return -sums.own, -sums.total


def _change(before: int, after: int, write: Callable[[int], str]) -> list[str]:
    delta = after - before
    return [write(before), write(after), f"+{write(delta)}" if delta > 0 else write(delta)]


def _by_function(profile: Profile, column: int, changed: bool) -> dict[Key, _Sums]:
    """Sums of each function; a function that calls itself counts once in a stack."""
    columns = (0, 1) if changed else (column,)
    keys: dict[Frame, Key] = {}
    own: defaultdict[Key, list[int]] = defaultdict(lambda: [0, 0])
    total: defaultdict[Key, list[int]] = defaultdict(lambda: [0, 0])
    charged: defaultdict[Key, int] = defaultdict(int)
    for sample in profile.samples:
        if not sample.stack:
            continue
        for frame in sample.stack:
            if frame not in keys:
                keys[frame] = Key(frame.name, frame.kind, frame.module.path if frame.module else "")
        path = {keys[frame] for frame in sample.stack}
        leaf = keys[sample.stack[-1]]
        if changed:
            user = next((keys[frame] for frame in reversed(sample.stack) if frame.kind != "kernel"), leaf)
            for key in {leaf, user}:
                charged[key] += max(sample.values[_AFTER], 0) - max(sample.values[_BEFORE], 0)
        for side, i in enumerate(columns):
            if (value := sample.values[i]) > 0:
                own[leaf][side] += value
                for key in path:
                    total[key][side] += value
    # In a differential profile 0 is after and 1 before.
    return {key: _Sums(own[key][0], total[key][0], own[key][1], total[key][1], charged[key]) for key in total}


def _calls(profile: Profile, options: WriteOptions, form: str, write: Callable[[int], str]) -> Table:
    bottom_up = form == "bottom-up"
    ways = replace(options, reverse=bottom_up, roots=() if bottom_up else options.roots, both=True)
    tree = build(profile, ways, minimum=_cutoff(options))
    shown = _largest(tree.nodes, options.rows)
    rows = [_call(node, tree, write) for node in _widest_first(shown)]
    columns = ["before", "after", "change"] if tree.differential else ["total", "", "self"]
    left = len(tree.nodes) - len(shown)
    parts = []
    if left:
        parts.append(plural(left, "more row"))
    if tree.hidden:
        parts.append(f"{plural(tree.hidden, 'call')} under {100 * _cutoff(options):g} %")
    return Table(form, _HEADINGS[form], columns, rows, " and ".join(parts))


def _largest(nodes: list[Node], most: int) -> list[Node]:
    """The ``most`` nodes with the highest totals: they are connected, because no node is larger than its caller."""
    order = sorted(range(len(nodes)), key=lambda i: (-nodes[i].total, i))
    return [nodes[i] for i in sorted(order[:most])]


def _widest_first(nodes: list[Node]) -> Iterator[Node]:
    """Pre-order, with siblings sorted by their totals."""
    children: dict[int, list[int]] = {}
    path: list[int] = []
    for i, node in enumerate(nodes):
        del path[node.depth :]
        if path:
            children.setdefault(path[-1], []).append(i)
        path.append(i)
    pending = [0] if nodes else []
    while pending:
        i = pending.pop()
        yield nodes[i]
        pending.extend(sorted(children.get(i, ()), key=lambda child: (nodes[child].total, -child)))


def _call(node: Node, tree: Tree, write: Callable[[int], str]) -> Row:
    if tree.differential:
        after = node.total + min(node.delta, 0)
        cells = _change(after - node.delta, after, write)
    else:
        cells = [write(node.total), share(node.total, tree.total), write(node.own)]
    return Row(cells, "  " * node.depth + printable(node.key.name), "")


def _threads(profile: Profile, options: WriteOptions, whole: int, write: Callable[[int], str]) -> Table:
    """Total of each thread, and the function with its largest own value."""
    changed = is_differential(profile)
    by_thread = _by_thread(profile, value_index(profile, options), changed)
    least = max(_cutoff(options) * whole, 1)
    kept = [name for name, each in by_thread.items() if max(each.total, each.before) >= least]
    rows = []
    for name in sorted(kept, key=lambda name: (-max(by_thread[name].total, by_thread[name].before), name)):
        each = by_thread[name]
        top = max(each.own, key=lambda key: (each.own[key], key), default=None)
        cells = _change(each.before, each.total, write) if changed else [write(each.total), share(each.total, whole)]
        told = f"{share(each.own[top], each.total)} {printable(top.name)}" if top else "-"
        origin = f" [{_origin(top)}]" if top and _origin(top) else ""
        rows.append(Row(cells, printable(name), told + origin))
    columns = ["before", "after", "change"] if changed else ["total", ""]
    left = len(by_thread) - len(rows[: options.rows])
    left_out = plural(left, "more thread") if left else ""
    names = "thread", "top function, its own share of the thread"
    return Table("threads", _HEADINGS["threads"], columns, rows[: options.rows], left_out, names)


@dataclass(slots=True)
class _Thread:
    total: int
    before: int
    own: defaultdict[Key, int]
    """Own value by function."""


def _by_thread(profile: Profile, column: int, changed: bool) -> dict[str, _Thread]:
    """Sums by thread name. StallscopeError (exit code 2) if the profile names none."""
    labels = {sample.labels for sample in profile.samples}
    names = {
        each: _thread_name(each, several=len({root_name(one, "process") for one in labels}) > 1) for each in labels
    }
    if not any(root_name(each, "thread") for each in labels):
        remedy = "perf script -F +tid records them; --form functions needs none"
        raise StallscopeError("the input names no threads", remedy, exit_code=2)
    threads: dict[str, _Thread] = {}
    for sample in profile.samples:
        thread = threads.setdefault(names[sample.labels], _Thread(0, 0, defaultdict(int)))
        value = max(sample.values[_AFTER if changed else column], 0)
        thread.total += value
        thread.before += max(sample.values[_BEFORE], 0) if changed else 0
        if sample.stack and value:
            frame = sample.stack[-1]
            thread.own[Key(frame.name, frame.kind, frame.module.path if frame.module else "")] += value
    return threads


def _thread_name(labels: Labels, *, several: bool) -> str:
    """Begins with the process if there are ``several``."""
    thread, process = root_name(labels, "thread"), root_name(labels, "process")
    return f"{process}: {thread or '[unknown]'}" if several and process else thread or process or "[unknown]"


def _steps(profile: Profile, options: WriteOptions) -> Table:
    """The tables of the summary. StallscopeError (exit code 2) if the profile has no steps."""
    if not profile.steps:
        remedy = "trace-wall --step FILE:FUNCTION -o run.pb.gz records them"
        raise StallscopeError("the input has no steps", remedy, exit_code=2)
    from ...summary.steps_table import text_of

    return Table("steps", _HEADINGS["steps"], [], [], "", lines=tuple(text_of(profile.steps, options.rows)))


def _origin(key: Key) -> str:
    return printable(", ".join(part for part in (LABELS.get(key.kind, ""), os.path.basename(key.module)) if part))


def summary(profile: Profile, options: WriteOptions) -> list[str]:
    """Lines above the tables: the amount, what is missing, and notes."""
    column = value_index(profile, options)
    value_type = profile.value_types[column]
    unit = options.unit or value_type.unit
    lines = []
    if options.subtitle:
        lines.append(options.subtitle)
    elif is_differential(profile) and unit == BILLIONTHS:
        lines.append("shares of what is before, and of what is after")
    elif is_differential(profile):
        lines.append(f"{human(_total(profile, 1), unit)} before, {human(_total(profile, 0), unit)} after")
    else:
        lines.append(f"{human(_total(profile, column), unit)} {value_type.name}".strip())
    lines.append(said_to_be_missing(profile, options)[0])
    return [printable(line) for line in (*lines, *options.notes, *worded(profile.comments)) if line]
