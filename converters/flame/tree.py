"""Merges the samples of a profile into the tree that a flame graph draws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..base.errors import StallscopeError
from ..model import Frame, Kind, Profile, Sample, ValueType
from ..transforms.diff import is_differential
from ..transforms.labels import root_name
from ..writers.base.options import WriteOptions, value_index

NodeKind = Kind | Literal["root"]
"""``root`` is for nodes below the stacks: all, process, thread, or the values of other labels."""


_MAX_WHOLE = 1 << 63


class Key(NamedTuple):
    """Two frames of one parent with equal keys are the same node: call sites (addresses) are merged."""

    name: str
    kind: NodeKind
    module: str
    """Path of the module, "" when unknown."""


class Node(NamedTuple):
    """One box of the graph. ``start``, ``total`` and ``own`` are in the unit of the tree's value type."""

    depth: int
    """0 for the root."""
    key: Key
    start: int
    """Position of its left edge, relative to the left edge of the root."""
    total: int
    own: int
    """The part of ``total`` from samples that end here."""
    events: int
    """Sum of the count column, 0 when the profile has none."""
    delta: int = 0
    """Difference in a differential profile, after minus before, including hidden parts; else 0."""
    own_delta: int = 0
    """The part of ``delta`` from samples that end here."""
    label: str = ""
    """The value that the label passed to `build` has for most of ``total``."""


@dataclass(slots=True)
class Tree:
    """Nodes in pre-order (a node, then its children by name), the root first; no nodes when nothing has a value."""

    value_type: ValueType
    counted: str
    """The things counted by ``Node.events``: times, samples, objects; "" when they have no meaning."""
    nodes: list[Node]
    levels: int
    """Number of rows that the nodes take."""
    hidden: int
    """Number of branches left out because their total is below the limit."""
    differential: bool = False
    """Whether ``Node.delta`` is meaningful."""
    bands: list[int] = field(default_factory=list)
    """Number of rows of each root: several roots are stacked in the order of ``nodes``; `build` makes one."""
    timed: bool = False
    """Whether ``Node.start`` is a time (see `flame_chart.build`): roots then share one axis."""
    measured: int = 0
    """``total`` without the part that ``whole`` adds to it."""

    @property
    def total(self) -> int:
        """Total of all samples, hidden branches included; of a chart, the end of its axis."""
        return self.nodes[0].total if self.nodes else 0


def build(
    profile: Profile, options: WriteOptions, *, minimum: float = 0.0, label: str = "", whole: float = 0.0
) -> Tree:
    """The tree of one value column: all → process-PID (→ thread-TID, or the requested labels) → frames.

    ``options.reverse`` reverses this: all → innermost frame → … → process-PID. Branches with less than
    ``minimum`` (a share of the total, 0 to 1) are left out, counted in ``Tree.hidden``, and cost neither time nor
    memory beyond their first frame. Samples without a positive value are ignored. Differential profiles: what
    has no width is hidden too, but counts in its callers' ``Node.delta``. ``label`` names the label of ``Node.label``.
    ``whole`` is what the root stands for, if that is more than the total. With ``options.both``, ``Node.total`` and
    ``minimum`` refer to the larger one of after and before, so that new and vanished calls are included.
    Raises StallscopeError for a column that is missing or not a sum, and for a ``whole`` that is too small.
    """
    column = value_index(profile, options)
    deltas = _deltas(profile)
    counts = -1 if deltas else _count_column(profile, column)
    # A stack of thousands of frames comes from infinite recursion. This function is therefore not recursive, and
    # splits samples from the root down, so that only branches wide enough to be drawn exist.
    values = [max(sample.values[column], 0) for sample in profile.samples]
    weights = [sample.values[counts] for sample in profile.samples] if counts >= 0 else []
    others = [max(sample.values[1 - column], 0) for sample in profile.samples] if options.both and deltas else []
    marks = [str(sample.label(label) or "") for sample in profile.samples] if label else []
    members: Sequence[int] = [i for i, amount in enumerate(values) if amount > 0 or (deltas and deltas[i])]
    total = max(sum(values), sum(others))
    tree = Tree(
        profile.value_types[column], things(profile.value_types[counts]) if counts >= 0 else "", [], 0, 0, bool(deltas)
    )
    if not total:
        return tree
    tree.measured = total
    total = whole_of(whole, total)
    limit = max(minimum * total, 1)
    splitter = _Splitter(profile.samples, options)
    pending = [(_ALL, 0, -len(splitter.roots), members, total, 0)]
    while pending:
        key, depth, level, members, total, start = pending.pop()
        groups, ended = splitter.split(level, members)
        events = sum(map(weights.__getitem__, members)) if weights else 0
        delta = sum(map(deltas.__getitem__, members)) if deltas else 0
        own_delta = sum(map(deltas.__getitem__, ended)) if deltas else 0
        mark = _prevalent(marks, values, members) if marks else ""
        own = sum(map(values.__getitem__, ended))
        tree.nodes.append(Node(depth, key, start, total, own, events, delta, own_delta, mark))
        tree.levels = max(tree.levels, depth + 1)
        children = []
        for child in sorted(groups):
            part = sum(map(values.__getitem__, groups[child]))
            if others:
                part = max(part, sum(map(others.__getitem__, groups[child])))
            if part >= limit:
                children.append((child, depth + 1, level + 1, groups[child], part, start))
            else:
                tree.hidden += 1
            start += part
        pending.extend(reversed(children))
    tree.bands = [tree.levels]
    return tree


def whole_of(whole: float, total: int) -> int:
    """``whole`` if given, else ``total``. StallscopeError (exit code 2) if it is less than ``total`` or too large."""
    if not whole:
        return total
    if not total <= whole <= _MAX_WHOLE:
        cause = f"the whole width cannot stand for {whole:g}: there is {total:,}"
        raise StallscopeError(cause, f"choose {total:,} to {_MAX_WHOLE:.3g}", exit_code=2)
    return round(whole)


def _prevalent(marks: Sequence[str], values: Sequence[int], members: Sequence[int]) -> str:
    sums: defaultdict[str, int] = defaultdict(int)
    for i in members:
        sums[marks[i]] += values[i]
    return max(sorted(sums), key=sums.__getitem__)


_ALL = Key("all", "root", "")


class _Splitter:
    """Splits samples by their frame at one level; negative levels are the roots, -1 the innermost of them."""

    def __init__(self, samples: list[Sample], options: WriteOptions) -> None:
        self._stacks: list[tuple[Frame | Key, ...]] = [sample.stack for sample in samples]
        self._keys: dict[int, Key] = {}
        self.roots = roots(samples, options.per_thread, options.roots)
        if options.reverse:
            tips = list(zip(*reversed(self.roots), strict=True)) or [()] * len(samples)
            self._stacks = [(*stack[::-1], *tip) for stack, tip in zip(self._stacks, tips, strict=True)]
            self.roots = []

    def split(self, level: int, members: Sequence[int]) -> tuple[dict[Key, list[int]], list[int]]:
        """Samples by the node in which they continue, and the samples that end before this level."""
        if level < 0:
            column = self.roots[level]
            by_root: defaultdict[Key, list[int]] = defaultdict(list)
            for i in members:
                by_root[column[i]].append(i)
            return by_root, []
        stacks = self._stacks
        ended = []
        # By identity first: readers share equal frames, and hashing one costs more than everything else.
        by_frame: defaultdict[int, list[int]] = defaultdict(list)
        for i in members:
            stack = stacks[i]
            if len(stack) > level:
                by_frame[id(stack[level])].append(i)
            else:
                ended.append(i)
        groups: dict[Key, list[int]] = {}
        for identity, part in by_frame.items():
            key = self._keys.get(identity)
            if key is None:
                key = self._keys[identity] = _key(stacks[part[0]][level])
            if key in groups:
                groups[key] += part
            else:
                groups[key] = part
        return groups, ended


def _key(frame: Frame | Key) -> Key:
    if isinstance(frame, Key):
        return frame
    return Key(frame.name, frame.kind, frame.module.path if frame.module else "")


def roots(samples: list[Sample], per_thread: bool, labels: Sequence[str] | None = None) -> list[list[Key]]:
    """The nodes below the stacks, outermost first: for each level, one key per sample.

    The levels are ``labels`` (see `WriteOptions.roots`), without those that no sample has.
    """
    if labels is None:
        labels = ("process", "thread") if per_thread else ("process",)
    columns = [_root_column(samples, label) for label in labels]
    return [column for column in columns if column]


def _root_column(samples: list[Sample], label: str) -> list[Key]:
    """One key like ``python3-4711`` per sample; [] when no sample has the label."""
    # By identity, as above: samples share their labels.
    known: dict[int, Key] = {}
    column = []
    for sample in samples:
        key = known.get(id(sample.labels))
        if key is None:
            key = known[id(sample.labels)] = Key(root_name(sample.labels, label), "root", "")
        column.append(key)
    if not any(key.name for key in known.values()):
        return []
    missing = Key(f"[unknown {label}]", "root", "")
    return [key if key.name else missing for key in column]


def _deltas(profile: Profile) -> list[int]:
    """Differences, after minus before, of all samples; [] unless the profile is differential."""
    if not is_differential(profile):
        return []
    return [sample.values[0] - sample.values[1] for sample in profile.samples]


def _count_column(profile: Profile, column: int) -> int:
    """The column with the counts for the drawn column; -1 when there is none.

    It is the only column of counts, or else the one whose name begins the same: inuse_objects for inuse_space.
    """
    counts = [
        i
        for i, value_type in enumerate(profile.value_types)
        if i != column and value_type.unit == "count" and value_type.aggregate == "sum"
    ]
    what, _, measure = profile.value_types[column].name.rpartition("_")
    if what and measure:
        alike = [i for i in counts if profile.value_types[i].name.startswith(f"{what}_")]
        sums = [value_type for value_type in profile.value_types if value_type.aggregate == "sum"]
        if alike or len(sums) > 2:
            return alike[0] if alike else -1
    return counts[0] if len(counts) == 1 else -1


def things(value_type: ValueType) -> str:
    """The things that a value of unit "count" counts, in the plural: samples; objects for inuse_objects; times."""
    name = value_type.name.rpartition("_")[2]
    return "times" if name in ("", "count") else name
