"""VTune's call trees as CSV, comma, semicolon, tab or | between the fields: reports top-down, hotspots and callstacks.

    vtune -report top-down -call-stack-mode all -column="CPU Time:Self","Module" -format csv -csv-delimiter comma

The column "Function Stack" is the tree: one leading space per level, inside or outside of the quotation marks. Values
are the columns ":Self" (times become ns, sizes bytes, the rest counts), the first being the CPU time if there is one.
The root "Total" is left out. In the report callstacks there are a "Function" with its own time, then its stacks:
callers upwards, a stack's time standing in its first row, no self column. Percentages cannot be added up: they are
refused.
Sources: Intel's user guide (callstacks and top-down reports), stackcollapse-vtune.pl and -vtune-mc.pl of FlameGraph.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import StallscopeError
from ..model import Frame, Kind, Module, Profile, Sample, ValueType
from .options import ReadOptions
from .skipped import Skipped
from .source import Source

EXPECTED = 'a row of VTune\'s CSV, as its header says: "Function Stack", "CPU Time:Self", "Module", …'

_TREE, _FUNCTION, _MODULE, _FILE = "function stack", "function", "module", "source file"
_DELIMITERS = (",", ";", "\t", "|")
_HEADER_LINES = 20
_SNIFFED = 1 << 14
_MAX_DEPTH = 10_000
_MAX_CACHED = 1 << 16
_MAX_TEXT = 1 << 9
_KERNELS = ("vmlinux", "[vmlinux]", "[kernel.kallsyms]")
_MAX_COLUMNS = 16
_NUMBER = re.compile(r"(-?\d{1,18}(?:\.\d{0,18})?(?:[eE][-+]?\d{1,2})?)\s*(s|ms|us|%)?\Z")
_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_MAX_VALUE = float(1 << 62)
_NANOSECONDS = 1_000_000_000
_BAD = "rows not understood"
_REMEDY = 'export it again: -report top-down -column="CPU Time:Self","Module" -format csv'


def sniff(head: bytes) -> bool:
    """Whether one of the first lines is a header with a Function Stack."""
    lines = head[:_SNIFFED].decode("utf-8-sig", "replace").splitlines()[:_HEADER_LINES]
    return any(_header(line) is not None for line in lines)


def read(source: Source, _: ReadOptions) -> Profile:
    """One sample per path. Raises StallscopeError for a file without a header or without values that add up."""
    lines = _lines(source)
    columns = None
    for number, line in lines:
        if (columns := _header(line)) is not None or number >= _HEADER_LINES:
            break
    if columns is None:
        source.fail(1, EXPECTED)
    if not columns.values:
        raise StallscopeError(f"{source.name} has no column with times, such as CPU Time:Self", _REMEDY)
    report = _Callstacks(source.name, columns) if columns.upwards else _Tree(source.name, columns)
    for number, line in lines:
        if line.strip():
            report.add(line, number)
    profile = report.profile()
    report.skipped.check(source, bool(profile.samples), EXPECTED)
    return profile


def _lines(source: Source) -> Iterator[tuple[int, str]]:
    number = 0
    for chunk in source.chunks():
        for line in chunk.decode("utf-8-sig" if not number else "utf-8", "surrogateescape").splitlines():
            number += 1
            yield number, line


class _Columns(NamedTuple):
    """Where the fields of a row are; -1 for one that there is not."""

    delimiter: str
    tree: int
    function: int
    module: int
    file: int
    values: list[tuple[int, ValueType]]

    @property
    def upwards(self) -> bool:
        """Whether it is the report callstacks: the tree holds callers."""
        return 0 <= self.function < self.tree


def _header(line: str) -> _Columns | None:
    delimiter = max(_DELIMITERS, key=line.count)
    names = [name.strip() for name in _split(line, delimiter)]
    known = [name.lower() for name in names]
    if _TREE not in known or delimiter not in line:
        return None

    def index(name: str) -> int:
        return known.index(name) if name in known else -1

    columns = _Columns(delimiter, index(_TREE), index(_FUNCTION), index(_MODULE), index(_FILE), [])
    suffix = "" if columns.upwards else ":self"
    wanted = [i for i, name in enumerate(known) if _is_value(name, suffix)][:_MAX_COLUMNS]
    wanted.sort(key=lambda i: known[i] != f"cpu time{suffix}")
    columns.values.extend((i, _value_type(names[i][: len(names[i]) - len(suffix)])) for i in wanted)
    return columns


def _is_value(name: str, suffix: str) -> bool:
    """Of callstacks only times can be told from other columns by their names."""
    return name.endswith(suffix) if suffix else bool(re.fullmatch(r"[\w ]*time(:[\w ]+)*", name))


def _value_type(name: str) -> ValueType:
    lower = name.lower()
    if "time" in lower.split(":")[0].split():
        return ValueType(name, "nanoseconds")
    return ValueType(name, "bytes" if "size" in lower.split() else "count")


def _split(line: str, delimiter: str) -> list[str]:
    """The fields; quotation marks count at the beginning of one, after its spaces, which are kept."""
    if '"' not in line:
        return line.split(delimiter)
    indent = line[: len(line) - len(line.lstrip(" "))]
    name, mark, rest = line[len(indent) + 1 :].partition('"')
    if line[len(indent)] == '"' and mark and '"' not in rest and rest[:1] == delimiter:
        return [indent + name, *rest[1:].split(delimiter)]
    fields = next(csv.reader([line[len(indent) :]], delimiter=delimiter, skipinitialspace=True), [""])
    return [indent + fields[0], *fields[1:]]


class _Report:
    """Rows, added up by path."""

    def __init__(self, name: str, columns: _Columns) -> None:
        self.skipped = Skipped(name, EXPECTED)
        self._name = name
        self._columns = columns
        self._values = [(i, _Values(name, kind)) for i, kind in columns.values]
        self._frames: dict[tuple[str, str, str], int] = {}
        self._numbers: dict[Frame, int] = {}
        self._paths: dict[tuple[int, int], int] = {}
        """(number of a path, number of a frame below it) → number of the path to that frame; 0 is the root."""
        self._sums: dict[int, list[float]] = {}

    def add(self, line: str, number: int) -> None:
        """One row."""
        try:
            fields = _split(line, self._columns.delimiter)
            values = [known[fields[i]] for i, known in self._values]
            self.add_row(fields, values)
        except (csv.Error, IndexError, ValueError):
            self.skipped.add(_BAD, number)

    def add_row(self, fields: list[str], values: list[float]) -> None:
        """IndexError or ValueError for a row that does not fit."""
        raise NotImplementedError

    def profile(self) -> Profile:
        """What was added up."""
        types = [kind for _, kind in self._columns.values]
        profile = Profile(types, title="VTune")
        frames, steps = list(self._numbers), list(self._paths)
        for path, sums in self._sums.items():
            stack: list[Frame] = []
            while path:
                path, frame = steps[path - 1]
                stack.append(frames[frame])
            profile.samples.append(Sample(tuple(reversed(stack)), tuple(map(round, sums))))
        self.skipped.tell(profile)
        return profile

    def _frame(self, name: str, fields: list[str]) -> int:
        """The number of the row's frame."""
        module, file, count = self._columns.module, self._columns.file, len(fields)
        key = (name.strip(), fields[module] if 0 <= module < count else "", fields[file] if 0 <= file < count else "")
        number = self._frames.get(key)
        if number is None:
            place, path = _known(key[1]), _known(key[2])
            kind: Kind = "kernel" if place in _KERNELS else "native"
            frame = Frame(key[0] or "[unknown]", kind, Module(place) if place else None, file=path)
            number = self._frames[key] = self._numbers.setdefault(frame, len(self._numbers))
        return number

    def _below(self, path: int, frame: int) -> int:
        """The number of the path to ``frame`` below ``path``."""
        paths = self._paths
        return paths.setdefault((path, frame), len(paths) + 1)

    def _add(self, path: int, values: list[float]) -> None:
        if any(values):
            sums = self._sums.get(path)
            if sums is None:
                self._sums[path] = values.copy()
                return
            for i, value in enumerate(values):
                sums[i] += value


class _Values(dict[str, float]):
    """Text of a field → its value, 0 for an empty one. Raises ValueError for no value, StallscopeError for a share."""

    def __init__(self, name: str, kind: ValueType) -> None:
        super().__init__()
        self._name = name
        self._is_time = kind.unit == "nanoseconds"

    def __missing__(self, field: str) -> float:
        text = field.strip()
        match = _NUMBER.match(text or "0")
        if match is None:
            raise ValueError(text)
        if match[2] == "%":
            raise StallscopeError(f"{self._name} has percentages, which cannot be added up", _REMEDY)
        value = float(match[1])
        if self._is_time:
            value *= _SECONDS[match[2] or ""] * _NANOSECONDS
        if not 0 <= value < _MAX_VALUE:
            raise ValueError(text)
        if len(field) <= _MAX_TEXT:
            if len(self) >= _MAX_CACHED:
                self.clear()
            self[field] = value
        return value


def _known(field: str) -> str:
    text = field.strip()
    return "" if text.startswith("[Unknown") else text


class _Tree(_Report):
    """top-down and hotspots: a row's callers stand above it, with fewer spaces."""

    def __init__(self, name: str, columns: _Columns) -> None:
        super().__init__(name, columns)
        self._path: list[tuple[int, int]] = []
        """(spaces, number of the path) from the root to the last row; 0 for the root that is no function."""

    def add_row(self, fields: list[str], values: list[float]) -> None:
        """See `_Report`."""
        text = fields[self._columns.tree]
        spaces = len(text) - len(text.lstrip(" "))
        around = self._path
        while around and around[-1][0] >= spaces:
            around.pop()
        if len(around) >= _MAX_DEPTH:
            raise ValueError("too deep")
        is_total = not around and text.strip() == "Total" and not self._has_module(fields)
        path = 0 if is_total else self._below(around[-1][1] if around else 0, self._frame(text, fields))
        around.append((spaces, path))
        self._add(path, values)

    def _has_module(self, fields: list[str]) -> bool:
        return 0 <= self._columns.module < len(fields) and bool(_known(fields[self._columns.module]))


class _Callstacks(_Report):
    """callstacks: a function with its time, then callers, innermost first; a stack's time stands in its first row."""

    def __init__(self, name: str, columns: _Columns) -> None:
        super().__init__(name, columns)
        self._function: int | None = None
        self._left: list[float] = []
        """What the stacks of the function have not told yet of its time."""
        self._stack: list[int] = []
        self._time: list[float] = []

    def add_row(self, fields: list[str], values: list[float]) -> None:
        """See `_Report`."""
        function, caller = fields[self._columns.function].strip(), fields[self._columns.tree].strip()
        if function:
            self._end_function()
            self._function, self._left = self._frame(function, fields), values
        if not caller or self._function is None:
            if not function:
                raise ValueError("a caller of nothing")
            return
        if any(values) or not self._stack:
            self._end_stack()
            self._time = values
            if not function:
                self._left = [max(left - value, 0.0) for left, value in zip(self._left, values, strict=True)]
        if len(self._stack) < _MAX_DEPTH:
            self._stack.append(self._frame(caller, fields))

    def _end_stack(self) -> None:
        if self._stack and self._function is not None:
            path = 0
            for frame in (*reversed(self._stack), self._function):
                path = self._below(path, frame)
            self._add(path, self._time)
        self._stack, self._time = [], []

    def _end_function(self) -> None:
        self._end_stack()
        if self._function is not None:
            half = 0.0005 * _NANOSECONDS  # Times are printed to the millisecond: less is rounding.
            self._add(self._below(0, self._function), [left if left > half else 0.0 for left in self._left])
        self._function = None

    def profile(self) -> Profile:
        """See `_Report`."""
        self._end_function()
        return super().profile()
