"""Packs the samples of a profile for the HTML page: a prefix tree that the script unpacks.

The block is zlib data (DecompressionStream's "deflate") of, all little endian:

    u32             size in bytes of the JSON that follows, padded with spaces to a multiple of 8 less 4
    JSON            see `_about` and `_functions`
    f64[V][STACKS]  the values of the distinct stacks, one column after another
    u32[STACKS]     how many frames a stack has in common with the one before it
    u32[STACKS]     how many frames it adds
    u32[NODES]      the functions of the added frames, each a node of the tree, in pre-order
    u8[NODES]       if colours show a label of the samples (`about.byNode`): the class of each node
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import compress
from operator import add
from typing import Any

from ...base.text import printable
from ...flame.gone import undrawn
from ...flame.tree import Key, Node, Tree, roots
from ...model import Frame, Profile, Sample
from ...phrases.remarks import worded
from ...transforms.diff import is_differential
from ..base.options import WriteOptions, said_to_be_missing, value_index
from ..colors.hues import LABELS
from ..colors.palette import Palette
from ..svg.text import human

_LEVEL = 6
_ALL = Key("all", "root", "")

_Ids = tuple[int, ...]
_Sums = defaultdict[str, int]
"""Chosen value, by the value of a label."""


@dataclass(slots=True)
class _Forest:
    """Distinct stacks, sorted, with their common parts."""

    keys: list[Key]
    values: list[array[float]]
    shared: array[int]
    added: array[int]
    nodes: array[int]
    own: list[int]
    """Chosen value of the stacks that end with each key."""
    marks: list[str]
    """Value of the palette's label that accounts for most of the chosen value of the stacks of each key."""
    node_marks: list[str]
    """Value of the palette's label that accounts for most of each node; empty without a label."""


def pack(profile: Profile, options: WriteOptions, palette: Palette) -> bytes:
    """Packs all columns that are sums; samples without any positive value are left out. Raises StallscopeError."""
    chosen = value_index(profile, options)
    columns = [i for i, value_type in enumerate(profile.value_types) if value_type.aggregate == "sum"]
    forest = _forest(profile, options, columns, columns.index(chosen), palette.label)
    functions, classes = _functions(forest, Tree(profile.value_types[chosen], "", [], 0, 0), palette)
    by_node = _node_classes(forest, palette, classes)
    about = {
        **_about(profile, options, columns),
        **functions,
        "classes": list(classes),
        "byNode": len(by_node) > 0,
        "value": columns.index(chosen),
        "stacks": len(forest.shared),
        "nodes": len(forest.nodes),
    }
    head = json.dumps(about, separators=(",", ":")).encode()
    head += b" " * (-(4 + len(head)) % 8)
    blocks: list[array[Any]] = [*forest.values, forest.shared, forest.added, forest.nodes, by_node]
    packer = zlib.compressobj(_LEVEL)
    parts = [packer.compress(len(head).to_bytes(4, "little") + head)]
    parts += [packer.compress(_bytes(block)) for block in blocks]
    return b"".join([*parts, packer.flush()])


def _bytes(numbers: array[Any]) -> bytes:
    if sys.byteorder == "big":
        numbers = array(numbers.typecode, numbers)
        numbers.byteswap()
    return numbers.tobytes()


def _about(profile: Profile, options: WriteOptions, columns: list[int]) -> dict[str, Any]:
    """Data shown around the graph."""
    unit = options.unit or profile.value_types[value_index(profile, options)].unit
    without_width = undrawn(profile, options, lambda value: human(value, unit))
    notes = [without_width, *options.notes, *worded(profile.comments)]
    lost, is_warning = said_to_be_missing(profile, options)
    return {
        "title": printable(options.title or profile.title or "Flame graph"),
        "subtitle": printable(options.subtitle),
        "host": printable(profile.host),
        "start": profile.start_ns // 1_000_000,
        "duration": profile.duration_ns,
        "samples": len(profile.samples),
        "lost": [printable(lost), is_warning],
        "notes": [printable(note) for note in notes if note],
        "values": [[printable(name), printable(unit)] for name, unit in _values(profile, options, columns)],
        "differential": is_differential(profile),
        "inverted": options.inverted,
    }


def _values(profile: Profile, options: WriteOptions, columns: list[int]) -> Iterator[tuple[str, str]]:
    chosen = value_index(profile, options)
    for i in columns:
        value_type = profile.value_types[i]
        yield value_type.name, options.unit or value_type.unit if i == chosen else value_type.unit


def _functions(forest: _Forest, tree: Tree, palette: Palette) -> tuple[dict[str, Any], dict[str, int]]:
    """Columns by function: name, class, kind (-1: a root) and module (-1: none), and the meanings of the classes; and
    the classes with their numbers."""
    modules: dict[str, int] = {"": -1}
    classes: dict[str, int] = {}
    kinds = list(LABELS)
    columns: dict[str, list[Any]] = {"names": [], "css": [], "kinds": [], "modules": []}
    # The palettes colour nodes of a tree: make one node per function for them.
    rows = zip(forest.keys, forest.own, forest.marks, strict=True)
    tree.nodes = [Node(1, key, 0, 0, own, 0, label=mark) for key, own, mark in rows]
    for node in tree.nodes:
        key = node.key
        columns["names"].append(printable(key.name))
        columns["css"].append(classes.setdefault(palette.css_class(node), len(classes)))
        columns["kinds"].append(kinds.index(key.kind) if key.kind in LABELS else -1)
        columns["modules"].append(modules.setdefault(key.module, len(modules) - 1))
    root = Node(0, _ALL, 0, 0, 0, 0)
    tree.nodes.insert(0, root)  # where palettes expect it
    about = {
        **columns,
        "root": palette.css_class(root),
        "paths": [printable(path) for path in modules if path],
        "labels": list(LABELS.values()),
        "legend": [[css_class, printable(label)] for css_class, label in palette.legend(tree)],
    }
    return about, classes


def _node_classes(forest: _Forest, palette: Palette, classes: dict[str, int]) -> array[int]:
    """The class of each node, if a label decides: a function can be in different states in different stacks."""
    known: dict[tuple[int, str], int] = {}
    found = array("B")
    for key, mark in zip(forest.nodes, forest.node_marks, strict=False):
        if (key, mark) not in known:
            css_class = palette.css_class(Node(1, forest.keys[key], 0, 0, 0, 0, label=mark))
            known[key, mark] = classes.setdefault(css_class, len(classes))
        found.append(known[key, mark])
    return found


def _forest(profile: Profile, options: WriteOptions, columns: list[int], chosen: int, label: str) -> _Forest:
    """One row per distinct stack: children are in the order of their keys, as in `flame.build`."""
    kept = [any(sample.values[i] > 0 for i in columns) for sample in profile.samples]
    levels = [list(compress(level, kept)) for level in roots(profile.samples, options.per_thread, options.roots)]
    samples = list(compress(profile.samples, kept))
    rows, keys = _ids(samples, levels)
    if options.reverse:
        rows = (row[::-1] for row in rows)
    merged: dict[_Ids, tuple[int, ...]] = {}
    marks: list[_Sums] = [defaultdict(int) for _ in keys]
    by_row: defaultdict[_Ids, _Sums] = defaultdict(lambda: defaultdict(int))
    for sample, row in zip(samples, rows, strict=True):
        values = tuple([max(sample.values[i], 0) for i in columns])
        merged[row] = tuple(map(add, merged[row], values)) if row in merged else values
        if label:
            mark = str(sample.label(label) or "")
            by_row[row][mark] += values[chosen]
            for key in set(row):
                marks[key][mark] += values[chosen]
    forest = _Forest(
        keys,
        [array("d") for _ in columns],
        array("I"),
        array("I"),
        array("I"),
        [0] * len(keys),
        list(map(_most, marks)),
        [],
    )
    previous: _Ids = ()
    for row in sorted(merged):
        shared = _in_common(previous, row)
        forest.shared.append(shared)
        forest.added.append(len(row) - shared)
        forest.nodes.extend(row[shared:])
        for column, value in zip(forest.values, merged[row], strict=True):
            column.append(value)
        if row:
            forest.own[row[-1]] += merged[row][chosen]
        previous = row
    if label:
        forest.node_marks = _node_marks(forest, [by_row[row] for row in sorted(merged)])
    return forest


def _node_marks(forest: _Forest, stacks: list[_Sums]) -> list[str]:
    """Value that accounts for most of each node. ``stacks``: the sums by value of each stack."""
    sums: list[_Sums] = []
    path: list[_Sums] = []
    for shared, added, mine in zip(forest.shared, forest.added, stacks, strict=True):
        del path[shared:]
        for _ in range(added):
            sums.append(defaultdict(int))
            path.append(sums[-1])
        for node in path:
            for mark, value in mine.items():
                node[mark] += value
    return list(map(_most, sums))


def _most(sums: dict[str, int]) -> str:
    return max(sorted(sums), key=sums.__getitem__, default="")


def _in_common(one: _Ids, other: _Ids) -> int:
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    return shared


def _ids(samples: list[Sample], levels: list[list[Key]]) -> tuple[Iterable[_Ids], list[Key]]:
    """A tuple of indices of keys per sample; the keys are sorted, so the tuples sort like the keys.

    ``levels`` are the nodes below the stacks, with one key per sample each.
    """
    # By identity first: readers share equal frames, and hashing one costs more than everything else.
    frames: dict[int, Frame] = {}
    for sample in samples:
        frames.update(zip(map(id, sample.stack), sample.stack, strict=True))
    by_frame = {frame: _key(frame) for frame in frames.values()}
    keys = sorted({*by_frame.values(), *(key for level in levels for key in level)})
    rank = {key: i for i, key in enumerate(keys)}
    by_id = {identity: rank[by_frame[frame]] for identity, frame in frames.items()}
    rows: Iterable[_Ids] = (tuple(map(by_id.__getitem__, map(id, sample.stack))) for sample in samples)
    if levels:
        under = zip(*([rank[key] for key in level] for level in levels), strict=True)
        rows = (below + stack for below, stack in zip(under, rows, strict=True))
    return rows, keys


def _key(frame: Frame) -> Key:
    return Key(frame.name, frame.kind, frame.module.path if frame.module else "")
