"""Merges the samples of a profile into the tree that a flame graph draws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .model import Frame, Kind, Profile, Sample, ValueType
from .options import WriteOptions, value_index

NodeKind = Kind | Literal["root"]
"""``root`` is what stands under the stacks: all, process, thread."""


class Key(NamedTuple):
    """What makes two frames of one parent the same node: call sites (addresses) are merged."""

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
    """Where its left edge lies, counted from the left edge of the root."""
    total: int
    own: int
    """The part of ``total`` of the samples that end here."""
    events: int
    """Sum of the count column, 0 when the profile has none."""


@dataclass(slots=True)
class Tree:
    """Nodes in pre-order (a node, then its children by name), the root first; no nodes when nothing has a value."""

    value_type: ValueType
    counted: bool
    """Whether ``Node.events`` means anything."""
    nodes: list[Node]
    levels: int
    """Number of rows that the nodes take."""
    hidden: int
    """Branches that were left out because their total is under the limit."""

    @property
    def total(self) -> int:
        """Total of all samples, hidden branches included."""
        return self.nodes[0].total if self.nodes else 0


def build(profile: Profile, options: WriteOptions, *, minimum: float = 0.0) -> Tree:
    """The tree of one value column: all → process-PID (→ thread-TID, if asked for) → frames.

    Branches with less than ``minimum`` (a share of the total, 0 to 1) are left out, counted in
    ``Tree.hidden``, and cost neither time nor memory beyond their first frame. Samples without a
    positive value are ignored. Raises StallscopeError for a column that is not there or is no sum.
    """
    column = value_index(profile, options)
    counts = _count_column(profile, column)
    # A stack of thousands of frames is somebody's infinite recursion: hence no recursion here, and
    # the samples are split from the root down, so that only branches wide enough to be drawn exist.
    values = [sample.values[column] for sample in profile.samples]
    weights = [sample.values[counts] for sample in profile.samples] if counts >= 0 else []
    members: Sequence[int] = [i for i, amount in enumerate(values) if amount > 0]
    total = sum(values[i] for i in members)
    tree = Tree(profile.value_types[column], counts >= 0, [], 0, 0)
    if not members:
        return tree
    limit = minimum * total
    splitter = _Splitter(profile.samples, options.per_thread)
    pending = [(_ALL, 0, -len(splitter.roots), members, total, 0)]
    while pending:
        key, depth, level, members, total, start = pending.pop()
        groups, ended = splitter.split(level, members)
        events = sum(map(weights.__getitem__, members)) if weights else 0
        tree.nodes.append(Node(depth, key, start, total, sum(map(values.__getitem__, ended)), events))
        tree.levels = max(tree.levels, depth + 1)
        children = []
        for child in sorted(groups):
            part = sum(map(values.__getitem__, groups[child]))
            if part >= limit:
                children.append((child, depth + 1, level + 1, groups[child], part, start))
            else:
                tree.hidden += 1
            start += part
        pending.extend(reversed(children))
    return tree


_ALL = Key("all", "root", "")


class _Splitter:
    """Splits samples by their frame at one level; negative levels are the roots, -1 the innermost of them."""

    def __init__(self, samples: list[Sample], per_thread: bool) -> None:
        self._stacks = [sample.stack for sample in samples]
        self._keys: dict[Frame, Key] = {}
        columns = [_root_column(samples, "process", "pid")]
        if per_thread:
            columns.append(_root_column(samples, "thread", "tid"))
        self.roots = [column for column in columns if column]

    def split(self, level: int, members: Sequence[int]) -> tuple[dict[Key, list[int]], list[int]]:
        """Samples by the node that they continue in, and the samples that end before this level."""
        if level < 0:
            column = self.roots[level]
            by_root: defaultdict[Key, list[int]] = defaultdict(list)
            for i in members:
                by_root[column[i]].append(i)
            return by_root, []
        stacks = self._stacks
        ended = []
        # By identity first: readers share equal frames, and to hash one costs more than all the rest.
        by_frame: defaultdict[int, list[int]] = defaultdict(list)
        for i in members:
            stack = stacks[i]
            if len(stack) > level:
                by_frame[id(stack[level])].append(i)
            else:
                ended.append(i)
        groups: dict[Key, list[int]] = {}
        for part in by_frame.values():
            key = self._key(stacks[part[0]][level])
            if key in groups:
                groups[key] += part
            else:
                groups[key] = part
        return groups, ended

    def _key(self, frame: Frame) -> Key:
        key = self._keys.get(frame)
        if key is None:
            key = Key(frame.name, frame.kind, frame.module.path if frame.module else "")
            self._keys[frame] = key
        return key


def _root_column(samples: list[Sample], name: str, number: str) -> list[Key]:
    """One key like ``python3-4711`` per sample, made of two labels; [] when no sample has either."""
    known: dict[object, Key] = {}
    column = []
    for sample in samples:
        key = known.get(sample.labels)
        if key is None:
            key = Key(_root_name(sample.label(name), sample.label(number)), "root", "")
            known[sample.labels] = key
        column.append(key)
    if not any(key.name for key in known.values()):
        return []
    missing = Key(f"[unknown {name}]", "root", "")
    return [key if key.name else missing for key in column]


def _root_name(name: str | int | None, number: str | int | None) -> str:
    root = "" if name is None else str(name)
    return root if number is None else f"{root or '[unknown]'}-{number}"


def _count_column(profile: Profile, column: int) -> int:
    """The column that counts events, beside the one that is drawn; -1 when there is none."""
    for i, value_type in enumerate(profile.value_types):
        if i != column and value_type.unit == "count" and value_type.aggregate == "sum":
            return i
    return -1
