"""The columns of VTune's CSV, and the meaning of its rows, cached by their text."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

from ...base.errors import StallscopeError
from ...model import ValueType

_TREE, _FUNCTION, _MODULE, _FILE = "function stack", "function", "module", "source file"
_DELIMITERS = (",", ";", "\t", "|")
_MAX_COLUMNS = 16
_NUMBER = re.compile(r"(-?\d{1,18}(?:\.\d{0,18})?(?:[eE][-+]?\d{1,2})?)\s*(s|ms|us|%)?\Z")
_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_MAX_VALUE = float(1 << 62)
_MAX_VALUES = 1 << 16
_MAX_DIGITS = 9
_MAX_TEXT = 6
"""Longer numbers do not repeat often enough to be cached."""
_MAX_CACHED = 64 << 20
"""Limit of the cached text in bytes: whole rows, and rows without their values."""
NANOSECONDS = 1_000_000_000
BAD, BLANK = -1, -2
"""Used as the second number of a row that is invalid, or of an empty line."""
MAX_DEPTH = 10_000
NOWHERE = MAX_DEPTH + 1
"""Used as the first number of BAD and BLANK rows; in rows of a tree this number is less than MAX_DEPTH."""
REMEDY = 'export it again: -report top-down -column="CPU Time:Self","Module" -format csv'


class Columns(NamedTuple):
    """Indices of the fields of a row; -1 for a missing one."""

    delimiter: str
    number: int
    """Number of columns."""
    tree: int
    function: int
    module: int
    file: int
    values: list[tuple[int, ValueType]]
    text: str
    """Text of the header."""

    @property
    def upwards(self) -> bool:
        """Whether it is the report callstacks, whose tree consists of callers."""
        return 0 <= self.function < self.tree


def parse_header(line: str) -> Columns | None:
    """The columns that a header names; None if the line is not a header with a Function Stack."""
    delimiter = max(_DELIMITERS, key=line.count)
    try:
        names = [name.strip() for name in _split(line, delimiter)]
    except csv.Error:
        return None
    known = [name.lower() for name in names]
    if _TREE not in known or delimiter not in line:
        return None

    def index(name: str) -> int:
        return known.index(name) if name in known else -1

    columns = Columns(delimiter, len(names), index(_TREE), index(_FUNCTION), index(_MODULE), index(_FILE), [], line)
    suffix = "" if columns.upwards else ":self"
    wanted = [i for i, name in enumerate(known) if _is_value(name, suffix)][:_MAX_COLUMNS]
    wanted.sort(key=lambda i: known[i] != f"cpu time{suffix}")
    columns.values.extend((i, _value_type(names[i][: len(names[i]) - len(suffix)])) for i in wanted)
    return columns


def _is_value(name: str, suffix: str) -> bool:
    """Whether a column has values. In callstacks only times can be distinguished from other columns by their names."""
    return name.endswith(suffix) if suffix else bool(re.fullmatch(r"[\w ]*time(:[\w ]+)*", name))


def _value_type(name: str) -> ValueType:
    lower = name.lower()
    if "time" in lower.split(":")[0].split():
        return ValueType(name, "nanoseconds")
    return ValueType(name, "bytes" if "size" in lower.split() else "count")


def _split(line: str, delimiter: str) -> list[str]:
    """The fields. A quotation mark counts only at the start of a field, after leading spaces, which are kept."""
    if '"' not in line:
        return line.split(delimiter)
    indent = line[: len(line) - len(line.lstrip(" "))]
    name, mark, rest = line[len(indent) + 1 :].partition('"')
    if line[len(indent)] == '"' and mark and '"' not in rest and rest[:1] == delimiter:
        return [indent + name, *rest[1:].split(delimiter)]
    fields = next(csv.reader([line[len(indent) :]], delimiter=delimiter, skipinitialspace=True), [""])
    return [indent + fields[0], *fields[1:]]


Row = tuple[int, int, tuple[float, ...]]
"""Two numbers whose meaning depends on the report, and the values; no values if all are 0."""


class Rows(dict[str, Row]):
    """Text of a row → its meaning.

    Most rows of a tree have no time of their own and repeat unchanged in other threads' trees: they are cached as a
    whole. The other rows are cached without their values.
    """

    def __init__(self, name: str, columns: Columns, parse: Callable[[list[str]], tuple[int, int]]) -> None:
        """``parse`` makes the two numbers from the fields of a row. IndexError or ValueError if they are invalid."""
        super().__init__()
        self._delimiter, self._header = columns.delimiter, columns.text
        self._parse = parse
        self._values = [(i, _Values(name, kind)) for i, kind in columns.values]
        first = min(i for i, _ in columns.values)
        self._cuts = columns.number - first
        self._pieces = [(i - first + 1, known) for i, known in self._values]
        """Positions of the values among the pieces from cutting a row from the right."""
        wanted = {piece for piece, _ in self._pieces}
        self._others: Callable[[list[str]], Any] = itemgetter(*(i for i in range(self._cuts + 1) if i not in wanted))
        self._known: dict[Any, tuple[int, int]] = {}
        """Numbers of known rows, by the pieces that are not values."""
        self._is_indented = columns.tree == 0
        """Whether leading spaces of a row add to its first number, and mean nothing else."""
        self._cached = 0

    def __missing__(self, line: str) -> Row:
        text = line.lstrip(" ") if self._is_indented else line
        pieces = text.rsplit(self._delimiter, self._cuts)
        try:
            first, second = self._known[self._others(pieces)]
            first += len(line) - len(text)
            if first >= MAX_DEPTH:
                raise ValueError("too deep")
            if len(self._pieces) == 1:
                piece, numbers = self._pieces[0]
                values: tuple[float, ...] = (numbers[pieces[piece]],)
            else:
                values = tuple([numbers[pieces[piece]] for piece, numbers in self._pieces])
        except (KeyError, IndexError, ValueError):
            first, second, values = self._read(line, len(line) - len(text), pieces)
        if any(values):
            return first, second, values
        self._make_room(len(line))
        row = self[line] = first, second, ()
        return row

    def _read(self, line: str, indent: int, pieces: list[str]) -> Row:
        if not line.strip() or line == self._header:  # the next report begins
            return NOWHERE, BLANK, ()
        try:
            fields = _split(line, self._delimiter)
            values = tuple([numbers[fields[i]] for i, numbers in self._values])
            first, second = self._parse(fields)
        except (csv.Error, IndexError, ValueError):
            return NOWHERE, BAD, ()
        if self._is_cut_well(fields, " " * indent, pieces):
            self._make_room(len(line))
            self._known[self._others(pieces)] = first - indent, second
        return first, second, values

    def _is_cut_well(self, fields: list[str], indent: str, pieces: list[str]) -> bool:
        """Whether other numbers in place of the values would be found in the same way."""
        if len(pieces) <= self._cuts:
            return False
        pieces, fields = pieces.copy(), fields.copy()
        for n, ((piece, _), (field, _)) in enumerate(zip(self._pieces, self._values, strict=True)):
            pieces[piece] = fields[field] = f"{n}.5"
        try:
            return _split(indent + self._delimiter.join(pieces), self._delimiter) == fields
        except csv.Error:
            return False

    def _make_room(self, size: int) -> None:
        self._cached += size + 300
        if self._cached > _MAX_CACHED:
            self.clear()
            self._known.clear()
            self._cached = size


class _Values(dict[str, float]):
    """Text of a field → its value, 0 if empty. Raises ValueError if it is not a value, StallscopeError for a share."""

    def __init__(self, name: str, kind: ValueType) -> None:
        super().__init__()
        self._name = name
        self._scale = NANOSECONDS if kind.unit == "nanoseconds" else 1
        self._is_time = kind.unit == "nanoseconds"

    def __missing__(self, field: str) -> float:
        if len(field) <= _MAX_DIGITS and field[:1] != "." and field.replace(".", "", 1).isdecimal():
            value = float(field) * self._scale
        else:
            value = self._parse(field.strip())
        if len(field) <= _MAX_TEXT:
            if len(self) >= _MAX_VALUES:
                self.clear()
            self[field] = value
        return value

    def _parse(self, text: str) -> float:
        match = _NUMBER.match(text or "0")
        if match is None:
            raise ValueError(text)
        if match[2] == "%":
            raise StallscopeError(f"{self._name} has percentages, which cannot be added up", REMEDY)
        value = float(match[1])
        if self._is_time:
            value *= _SECONDS[match[2] or ""] * NANOSECONDS
        if not 0 <= value < _MAX_VALUE:
            raise ValueError(text)
        return value
