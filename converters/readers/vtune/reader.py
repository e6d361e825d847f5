"""VTune's call trees as CSV (delimiter comma, semicolon, tab or |): reports top-down, hotspots and callstacks.

    vtune -report top-down -call-stack-mode all -column="CPU Time:Self","Module" -format csv -csv-delimiter comma

The column "Function Stack" is the tree: one leading space per level, inside or outside of the quotation marks. Values
are the columns ":Self" (times become ns, sizes bytes, the rest counts); the CPU time comes first if there is one.
The root "Total" is left out. The report callstacks has a "Function" with its own time, followed by its stacks: callers
upwards, with a stack's time in its first row. It has no self column. Percentages are refused, because they cannot be
added up.
Sources: Intel's user guide (callstacks and top-down reports), stackcollapse-vtune.pl and -vtune-mc.pl of FlameGraph.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...base.errors import StallscopeError
from ...model import Frame, Kind, Module, Profile, Sample, Stack
from ..base.options import ReadOptions
from ..base.skipped import Skipped
from ..base.source import Source
from .rows import BAD, BLANK, MAX_DEPTH, NANOSECONDS, REMEDY, Columns, Rows, parse_header

EXPECTED = 'a row of VTune\'s CSV, as its header says: "Function Stack", "CPU Time:Self", "Module", …'

_HEADER_LINES = 20
_SNIFFED = 1 << 14
_MAX_STACKS = 1 << 15
_NOBODY = -3
"""Used instead of a frame if the field is empty."""
_STEP = 2_654_435_761
"""Difference between the numbers of paths; a frame's number is added to a path's. A prime, so that the low bits of
the sums differ: a dict uses these first."""
_KERNELS = ("vmlinux", "[vmlinux]", "[kernel.kallsyms]")
_BAD = "rows not understood"


def sniff(head: bytes) -> bool:
    """Whether one of the first lines is a header with a Function Stack."""
    lines = head[:_SNIFFED].decode("utf-8-sig", "replace").splitlines()[:_HEADER_LINES]
    return any(parse_header(line) is not None for line in lines)


def read(source: Source, _: ReadOptions) -> Profile:
    """One sample per path. Raises StallscopeError for a file without a header or without additive values."""
    chunks = _chunks(source)
    columns, line, rest = _find_header(chunks)
    if columns is None:
        source.fail(1, EXPECTED)
    if not columns.values:
        raise StallscopeError(f"{source.name} has no column with times, such as CPU Time:Self", REMEDY)
    report = (_Callstacks if columns.upwards else _Tree)(source.name, columns, line)
    report.add(rest)
    for lines in chunks:
        report.add(lines)
    profile = report.profile()
    report.skipped.check(source, bool(profile.samples), EXPECTED)
    return profile


def _chunks(source: Source) -> Iterator[list[str]]:
    """The lines, a few thousand at a time."""
    encoding = "utf-8-sig"
    for chunk in source.chunks():
        yield chunk.decode(encoding, "surrogateescape").splitlines()
        encoding = "utf-8"


def _find_header(chunks: Iterator[list[str]]) -> tuple[Columns | None, int, list[str]]:
    """The header, the number of the line after it, and the lines of its chunk from there on."""
    number = 1
    for lines in chunks:
        for i, line in enumerate(lines):
            number += 1
            if (columns := parse_header(line)) is not None:
                return columns, number, lines[i + 1 :]
            if number > _HEADER_LINES:
                return None, number, []
    return None, number, []


class _Report:
    """Rows, summed by path."""

    def __init__(self, name: str, columns: Columns, line: int) -> None:
        self.skipped = Skipped(name, EXPECTED)
        self._columns = columns
        self._rows = Rows(name, columns, self._parse)
        self._line = line
        """Number of the next row's line."""
        self._frames: dict[tuple[str, str, str], int] = {}
        self._numbers: dict[Frame, int] = {}
        self._paths: dict[int, int] = {}
        """Number of a path + number of a frame below it → number of the path to that frame: the next multiple of
        _STEP; 0 is the root."""
        self._sums: list[dict[int, float]] = [{} for _ in columns.values]
        """Sums by path, for each value; all have the same paths."""

    def add(self, lines: list[str]) -> None:
        """Adds the next rows."""
        raise NotImplementedError

    def _parse(self, fields: list[str]) -> tuple[int, int]:
        """See `Rows`."""
        raise NotImplementedError

    def profile(self) -> Profile:
        """The result."""
        types = [kind for _, kind in self._columns.values]
        profile = Profile(types, title="VTune")
        stacks = _Stacks(list(self._numbers), list(self._paths))
        self._paths = {}
        for path, *sums in zip(self._sums[0], *[each.values() for each in self._sums], strict=True):
            profile.samples.append(Sample(stacks[path], tuple(map(round, sums))))
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
        return paths.setdefault(path + frame, (len(paths) + 1) * _STEP)

    def _add(self, path: int, values: tuple[float, ...]) -> None:
        """Adds ``values``, not all of them 0, to the end of ``path``."""
        for sums, value in zip(self._sums, values, strict=True):
            sums[path] = sums.get(path, 0.0) + value


class _Stacks(dict[int, Stack]):
    """Path → its stack. Some stacks are cached, because others begin with them."""

    def __init__(self, frames: list[Frame], steps: list[int]) -> None:
        """``steps`` are the keys of `_Report._paths`."""
        super().__init__({0: ()})
        self._frames, self._steps = frames, steps

    def __missing__(self, path: int) -> Stack:
        frames: list[Frame] = []
        above = path
        while above not in self:
            above, frame = divmod(self._steps[above // _STEP - 1], _STEP)
            above *= _STEP
            frames.append(self._frames[frame])
        stack = (*self[above], *reversed(frames))
        if len(self) >= _MAX_STACKS:
            self.clear()
            self[0] = ()
        self[path] = stack
        return stack


def _known(field: str) -> str:
    text = field.strip()
    return "" if text.startswith("[Unknown") else text


class _Tree(_Report):
    """top-down and hotspots: a row's callers precede it, with fewer spaces."""

    def __init__(self, name: str, columns: Columns, line: int) -> None:
        super().__init__(name, columns, line)
        self._totals: set[int] = set()
        """Frames that are not functions if they are at the root."""
        self._above = [0] * (MAX_DEPTH + 1)
        """Paths above a row, by the row's number of spaces."""
        self._root, self._end = MAX_DEPTH, 0
        """Spaces of the last row at the root; ``_above`` is known for fewer spaces than ``_end``."""

    def _parse(self, fields: list[str]) -> tuple[int, int]:
        """Spaces and frame. See `Rows`."""
        text = fields[self._columns.tree]
        spaces = len(text) - len(text.lstrip(" "))
        if spaces >= MAX_DEPTH:
            raise ValueError("too deep")
        frame = self._frame(text, fields)
        module = self._columns.module
        if text.strip() == "Total" and not (0 <= module < len(fields) and _known(fields[module])):
            self._totals.add(frame)
        return spaces, frame

    def add(self, lines: list[str]) -> None:
        """See `_Report`."""
        above, root, end, paths = self._above, self._root, self._end, self._paths
        sums, *others = self._sums
        for spaces, frame, values in map(self._rows.__getitem__, lines):
            if root < spaces < end:
                key = above[spaces] + frame
                path = paths.get(key)
                if path is None:
                    path = paths[key] = (len(paths) + 1) * _STEP
            elif frame < 0:
                if frame == BAD:
                    self._skip(lines)
                continue
            elif spaces <= root:
                root = spaces
                path = 0 if frame in self._totals else self._below(0, frame)
            else:
                above[end : spaces + 1] = [above[end - 1]] * (spaces + 1 - end)
                path = self._below(above[spaces], frame)
            end = spaces + 2
            above[spaces + 1] = path
            if values:
                sums[path] = sums.get(path, 0.0) + values[0]
                for each, value in zip(others, values[1:], strict=True) if others else ():
                    each[path] = each.get(path, 0.0) + value
        self._root, self._end = root, end
        self._line += len(lines)

    def _skip(self, lines: list[str]) -> None:
        """Counts a bad row, and finds the first one's place."""
        line = 0
        if _BAD not in self.skipped.counts:
            line = self._line + [self._rows[line][1] for line in lines].index(BAD)
        self.skipped.add(_BAD, line)


class _Callstacks(_Report):
    """callstacks: a function with its time, then callers, innermost first; a stack's time is in its first row."""

    def __init__(self, name: str, columns: Columns, line: int) -> None:
        super().__init__(name, columns, line)
        self._function = _NOBODY
        self._zeros = self._left = (0.0,) * len(columns.values)
        """``_left`` is the part of the function's time that its stacks have not accounted for yet."""
        self._stack: list[int] = []
        self._time: tuple[float, ...] = ()

    def _parse(self, fields: list[str]) -> tuple[int, int]:
        """Frames of the function and of the caller; one of them may be _NOBODY. See `Rows`."""
        function, caller = fields[self._columns.function].strip(), fields[self._columns.tree].strip()
        if not function and not caller:
            raise ValueError("a caller of nothing")
        frames = [self._frame(name, fields) if name else _NOBODY for name in (function, caller)]
        return frames[0], frames[1]

    def add(self, lines: list[str]) -> None:
        """See `_Report`."""
        for i, (function, caller, values) in enumerate(map(self._rows.__getitem__, lines)):
            if function != _NOBODY and caller not in (BLANK, BAD):
                self._end_function()
                self._function, self._left = function, values or self._zeros
            if caller >= 0 and self._function != _NOBODY:
                if values or not self._stack:
                    self._end_stack()
                    self._time = values
                    if values and function == _NOBODY:
                        self._left = tuple([max(a - b, 0.0) for a, b in zip(self._left, values, strict=True)])
                if len(self._stack) < MAX_DEPTH:
                    self._stack.append(caller)
            elif caller == BAD or caller >= 0:
                self.skipped.add(_BAD, self._line + i)
        self._line += len(lines)

    def _end_stack(self) -> None:
        if any(self._time):
            path = 0
            for frame in (*reversed(self._stack), self._function):
                path = self._below(path, frame)
            self._add(path, self._time)
        self._stack, self._time = [], ()

    def _end_function(self) -> None:
        self._end_stack()
        half = 0.0005 * NANOSECONDS  # times are printed to the millisecond: less is rounding
        left = tuple([value if value > half else 0.0 for value in self._left])
        if self._function != _NOBODY and any(left):
            self._add(self._below(0, self._function), left)
        self._function = _NOBODY

    def profile(self) -> Profile:
        """See `_Report`."""
        self._end_function()
        return super().profile()
