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
        self._frames: dict[tuple[str, str, str], Frame] = {}
        self._sums: dict[tuple[Frame, ...], list[float]] = {}

    def add(self, line: str, number: int) -> None:
        """One row."""
        try:
            fields = _split(line, self._columns.delimiter)
            values = [self._value(fields[i], kind) for i, kind in self._columns.values]
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
        for stack, sums in self._sums.items():
            profile.samples.append(Sample(stack, tuple(round(value) for value in sums)))
        self.skipped.tell(profile)
        return profile

    def _value(self, text: str, kind: ValueType) -> float:
        """0 for an empty field."""
        text = text.strip()
        if not text:
            return 0.0
        match = _NUMBER.match(text)
        if match is None:
            raise ValueError(text)
        if match[2] == "%":
            raise StallscopeError(f"{self._name} has percentages, which cannot be added up", _REMEDY)
        value = float(match[1])
        if kind.unit == "nanoseconds":
            value *= _SECONDS[match[2] or ""] * _NANOSECONDS
        if not 0 <= value < _MAX_VALUE:
            raise ValueError(text)
        return value

    def _frame(self, name: str, fields: list[str]) -> Frame:
        module, file = self._field(fields, self._columns.module), self._field(fields, self._columns.file)
        key = (name.strip(), module, file)
        frame = self._frames.get(key)
        if frame is None:
            kind: Kind = "kernel" if module in _KERNELS else "native"
            home = Module(module) if module else None
            frame = self._frames[key] = Frame(key[0] or "[unknown]", kind, home, file=file)
        return frame

    def _field(self, fields: list[str], index: int) -> str:
        text = fields[index].strip() if 0 <= index < len(fields) else ""
        return "" if text.startswith("[Unknown") else text

    def _add(self, stack: tuple[Frame, ...], values: list[float]) -> None:
        if any(values):
            sums = self._sums.setdefault(stack, [0.0] * len(values))
            for i, value in enumerate(values):
                sums[i] += value


class _Tree(_Report):
    """top-down and hotspots: a row's callers stand above it, with fewer spaces."""

    def __init__(self, name: str, columns: _Columns) -> None:
        super().__init__(name, columns)
        self._path: list[tuple[int, Frame | None]] = []
        """(spaces, frame) from the root to the last row; None for the root that is no function."""

    def add_row(self, fields: list[str], values: list[float]) -> None:
        """See `_Report`."""
        text = fields[self._columns.tree]
        spaces = len(text) - len(text.lstrip(" "))
        while self._path and self._path[-1][0] >= spaces:
            self._path.pop()
        if len(self._path) >= _MAX_DEPTH:
            raise ValueError("too deep")
        frame = self._frame(text, fields)
        is_total = not self._path and frame.name == "Total" and frame.module is None
        self._path.append((spaces, None if is_total else frame))
        self._add(tuple(frame for _, frame in self._path if frame is not None), values)


class _Callstacks(_Report):
    """callstacks: a function with its time, then callers, innermost first; a stack's time stands in its first row."""

    def __init__(self, name: str, columns: _Columns) -> None:
        super().__init__(name, columns)
        self._function: Frame | None = None
        self._left: list[float] = []
        """What the stacks of the function have not told yet of its time."""
        self._stack: list[Frame] = []
        self._values: list[float] = []

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
            self._values = values
            if not function:
                self._left = [max(left - value, 0.0) for left, value in zip(self._left, values, strict=True)]
        if len(self._stack) < _MAX_DEPTH:
            self._stack.append(self._frame(caller, fields))

    def _end_stack(self) -> None:
        if self._stack and self._function is not None:
            self._add((*reversed(self._stack), self._function), self._values)
        self._stack, self._values = [], []

    def _end_function(self) -> None:
        self._end_stack()
        if self._function is not None:
            half = 0.0005 * _NANOSECONDS  # Times are printed to the millisecond: less is rounding.
            self._add((self._function,), [left if left > half else 0.0 for left in self._left])
        self._function = None

    def profile(self) -> Profile:
        """See `_Report`."""
        self._end_function()
        return super().profile()
