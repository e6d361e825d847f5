"""bpftrace's output for a map whose keys include stacks: ``@name[``, one frame per line, innermost first, the
other keys, ``]: VALUE``; and the same as JSON (-f json), one line per map.

Stacks and keys are in the order of the script, separated by ``, `` (src/output/text.cpp and json.cpp of bpftrace;
get_stack in src/bpftrace.cpp). The output does not say what a key means: text is taken as the process's name, a number
as its process id (with --pid) or its thread id (with --tid, which takes the second number, or the only one). If there
are several stacks, those that began at an entry point of the kernel become the innermost part, otherwise the first
one does. Only the first map with stacks is read unless another is requested by name (--event-filter @name). Maps called
@ns, @usecs and the like hold times, a map called @bytes holds sizes. Histograms, averages, and entries without a stack
are counted as lost.

stackcollapse-bpftrace.pl of FlameGraph differs: it keeps offsets (``read+12``), so that one function becomes many
frames, does not add up equal stacks, has a frame ``, `` between two stacks, and reads only unnamed maps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from ...base.errors import StallscopeError
from ...base.text import printable
from ...base.units import counted
from ...model import Labels, Profile, ValueType
from ..base.json_stream import is_cut
from ..base.options import ReadOptions
from ..base.skipped import Skipped
from ..base.source import Source
from ..base.stack_tally import MAX_DIGITS, NotAFrame, StackTally, pieces
from .frames import is_kernel, parse_frame

EXPECTED = "an entry of a map keyed by stacks: '@name[', frames one a line, ']: VALUE'"

_SNIFFED = 2000
_ENTRY = re.compile(rb"@\w*\[(?:\Z|.*(?:, ?\Z|\]:(?: -?\d|\Z)))")
_JSON = re.compile(rb'\s*\{"type": ?"\w+", ?"data": ?')
_SCALAR = re.compile(rb"\w*:(?: |\Z)")
_BUCKET = re.compile(rb"[\[(].*\|\Z")
_OTHER_MAP, _NO_STACK, _NO_SUM = "entries of other maps", "entries without a stack", "values other than sums"
_HISTOGRAM, _CUT, _BAD = "histograms", "entries cut short", "lines not understood"
_CUT_MESSAGE = "messages cut short at the end"
_PRINTED = "lines of other output"
_SKIPPED = {-1: _OTHER_MAP, -2: _NO_STACK}
_MAX_KEYS = 1 << 14
_MAX_MAPS = 100
_NANOSECONDS = {
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanoseconds"), 1),
    **dict.fromkeys(("us", "usec", "usecs", "microseconds"), 1_000),
    **dict.fromkeys(("ms", "msec", "msecs", "milliseconds"), 1_000_000),
}


def sniff(head: bytes) -> bool:
    """Whether it is bpftrace's JSON, or the first lines include an entry of a map."""
    return bool(_JSON.match(head)) or any(_ENTRY.match(line) for line in head.splitlines()[:_SNIFFED])


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack and process name; see the module for options.pid, tid, event. StallscopeError."""
    maps = _Maps(source.name, options)
    if _JSON.match(source.head):
        for chunk in source.chunks():
            *lines, last = chunk.split(b"\n")
            for line in lines:
                maps.add_json(line)
            if last:
                maps.add_json(last, whole=False)
        maps.tell_cut(source)
    else:
        entries = pieces(source, b"\n@")
        first = next(entries)
        if first.startswith(b"@"):
            maps.add([first[1:]])
        else:
            maps.begin(first)
        maps.add(entries)
    profile = maps.profile()
    maps.skipped.check(source, bool(profile.samples), EXPECTED)
    return profile


class _Maps:
    """The entries of one map."""

    def __init__(self, name: str, options: ReadOptions) -> None:
        self.skipped = Skipped(name, EXPECTED)
        self._tally = StackTally(lambda line: parse_frame(line, options.addrs))
        self._options = options
        self._wanted = b"@" + options.event.encode(errors="surrogateescape").lstrip(b"@") if options.event else b""
        self._kernel: dict[int, int] = {}
        """Number of a line → number of the same frame as a kernel frame."""
        self._others: set[bytes] = set()
        """Names of maps that are not read."""
        self._unread: dict[bytes, dict[str, int]] = {}
        """Name of a map → number of its unreadable entries by kind."""
        self._line = 1
        self._cut = False
        """Whether the last message of the JSON output is cut short."""

    def add(self, entries: Iterable[bytes]) -> None:
        """Adds entries, each without its ``@`` and with the text up to the next one."""
        remembered, weights = self._tally.known, self._tally.weights
        for piece in entries:
            text, found, value = piece.rpartition(b"]: ")
            if found and value.isdigit() and len(value) <= MAX_DIGITS:
                known = remembered(text) or self._learn(text)
                if known:
                    key, breaks = known
                    if key < 0:
                        self._skip(b"@" + text.partition(b"[")[0], _SKIPPED[key])
                    else:
                        weights[key] += int(value)
                    self._line += breaks + 1
                    continue
            self._add_slowly(piece)
            self._line += piece.count(b"\n") + 1

    def _learn(self, text: bytes) -> tuple[int, int] | None:
        name, found, keys = text.partition(b"[")
        try:
            key = self._find(name, keys, b", ") if found else -2
        except NotAFrame:
            return None
        return self._tally.remember(text, key)

    def _weigh(self, name: bytes, key: int, value: bytes) -> None:
        if key < 0:
            self._skip(name, _SKIPPED[key])
        else:
            self._tally.weights[key] += int(value)

    def _skip(self, name: bytes, kind: str) -> None:
        """Counts an entry of the map ``name`` that is not read."""
        self.skipped.add(kind)
        if kind != _OTHER_MAP and (name in self._unread or len(self._unread) < _MAX_MAPS):
            kinds = self._unread.setdefault(name, {})
            kinds[kind] = kinds.get(kind, 0) + 1

    def _find(self, name: bytes, text: bytes, separator: bytes) -> int:
        """The key for the text between the brackets, or one of _SKIPPED. Raises NotAFrame."""
        if b"\n" not in text and not text.startswith(b","):
            return -2
        name = b"@" + name
        self._wanted = self._wanted or name
        if name != self._wanted:
            if len(self._others) < _MAX_MAPS:
                self._others.add(name)
            return -1
        stacks: list[tuple[int, ...]] = []
        keys: list[bytes] = []
        get = self._tally.lines.__getitem__
        for part in text.split(b"\n,"):
            key, _, frames = part.partition(b"\n")
            keys += key[:_MAX_KEYS].split(separator)
            stacks.append(tuple(map(get, frames.split(b"\n"))) if frames else ())
        return self._tally.stack_of(self._joined(stacks)) + self._tally.labels(self._labels(keys))

    def _joined(self, stacks: list[tuple[int, ...]]) -> tuple[int, ...]:
        """Combines the stacks into one, innermost frame first."""
        frames = self._tally.lines.frames
        inner: tuple[int, ...] = ()
        outer: tuple[int, ...] = ()
        for stack in stacks:
            last = next(filter(None, reversed(stack)), 0)
            if last and is_kernel(frames[last][0]):
                inner += tuple(map(self._in_kernel, stack))
            else:
                outer += stack
        return inner + outer

    def _in_kernel(self, number: int) -> int:
        known = self._kernel.get(number)
        if known is None:
            lines = self._tally.lines
            known = lines.number(tuple(frame._replace(kind="kernel") for frame in lines.frames[number]))
            self._kernel[number] = known
        return known

    def _labels(self, keys: Iterable[bytes]) -> Labels:
        words = [word for key in keys if (word := key.strip(b", "))]
        names = [word for word in words if not word.isdigit()]
        numbers = [int(word) for word in words if word.isdigit() and len(word) <= MAX_DIGITS]
        labels: dict[str, str | int] = {}
        if names:
            labels["process"] = b", ".join(names).decode(errors="surrogateescape")
        if self._options.tid and numbers:
            labels["tid"] = numbers.pop(1 if len(numbers) > 1 else 0)
        if (self._options.pid or self._options.tid) and numbers:
            labels["pid"] = numbers[0]
        return tuple(sorted(labels.items()))

    def _add_slowly(self, piece: bytes) -> None:
        """Reads line by line: entries that are not sums, and other output between them."""
        lines = piece.split(b"\n")
        name = b"@" + lines[0].partition(b"[")[0].partition(b":")[0]
        if b"[" not in lines[0]:
            if _SCALAR.match(lines[0]):
                self._skip(name, _HISTOGRAM if lines[0].rstrip().endswith(b":") else _NO_STACK)
            else:
                self.skipped.add(_BAD, self._line)
            self._add_other(lines[1:])
            return
        end = next((i for i, line in enumerate(lines) if b"]: " in line or line.endswith(b"]:")), -1)
        if end < 0:
            self.skipped.add(_CUT, self._line)
            return
        text, _, value = b"\n".join(lines[: end + 1]).rpartition(b"]:")
        value = value.strip()
        if not value:
            self._skip(name, _HISTOGRAM)
        elif not value.isdigit():
            self._skip(name, _NO_SUM)
        elif len(value) <= MAX_DIGITS and (known := self._learn(text)):
            self._weigh(name, known[0], value)
        else:
            self.skipped.add(_BAD, self._line)
        self._add_other(lines[end + 1 :])

    def begin(self, text: bytes) -> None:
        """Reads the text before the first entry."""
        self._add_other(text.split(b"\n"))
        self._line += text.count(b"\n") + 1

    def _add_other(self, lines: list[bytes]) -> None:
        known = (b"Attach", b"^C", b"Lost ")
        printed = [line for line in lines if line.strip() and not line.startswith(known) and not _BUCKET.match(line)]
        if printed:
            self.skipped.add(_PRINTED, count=len(printed))

    def add_json(self, line: bytes, *, whole: bool = True) -> None:
        """Reads one message of the JSON output. ``whole`` is False for a last message without a line end."""
        try:
            message = (
                json.loads(line.decode(errors="surrogateescape"), object_pairs_hook=_Pairs) if line.strip() else None
            )
            self._add_message(message)
        except json.JSONDecodeError as error:
            self._cut = not whole and is_cut(error.doc, error.pos, error.msg)
            self.skipped.add(*((_CUT_MESSAGE,) if self._cut else (_BAD, self._line)))
        except (ValueError, RecursionError, NotAFrame):
            self.skipped.add(_BAD, self._line)
        self._line += 1

    def tell_cut(self, source: Source) -> None:
        """Raises StallscopeError, after all messages, if the last one is cut short and there is no other map."""
        if self._cut and not self._tally.weights and not self._unread:
            source.fail_cut(self._line - 1)

    def _add_message(self, message: Any) -> None:
        if not isinstance(message, _Pairs):
            if message is not None:
                raise ValueError
            return
        fields = dict(message)
        kind, data = fields.get("type"), fields.get("data")
        if kind == "lost_events" and isinstance(data, _Pairs):
            lost = dict(data).get("events")
            self.skipped.add("lost events", count=lost if isinstance(lost, int) else 1)
        if kind not in ("map", "hist", "stats", "tseries") or not isinstance(data, _Pairs):
            return
        for name, entries in data:
            if not isinstance(entries, _Pairs):
                self._skip(_key(name), _NO_STACK if kind == "map" else _HISTOGRAM if kind == "hist" else _NO_SUM)
                continue
            for keys, value in entries:
                self._add_pair(name, keys, value, kind)

    def _add_pair(self, name: str, keys: str, value: Any, kind: str) -> None:
        if kind == "hist":
            self._skip(_key(name), _HISTOGRAM)
            return
        digits = str(value).encode() if isinstance(value, int | str) else b""
        if not digits.isdigit() or len(digits) > MAX_DIGITS:
            self._skip(_key(name), _NO_SUM)
            return
        text = keys.encode(errors="surrogateescape")
        self._weigh(_key(name), self._find(_key(name)[1:], text, b","), digits)

    def profile(self) -> Profile:
        """The result."""
        name = self._wanted.decode(errors="surrogateescape")
        word = name.lstrip("@").lower()
        samples = self._tally.samples()
        if not samples:
            self._explain(name)
        kind = ValueType("samples", "count")
        if word in _NANOSECONDS:
            kind = ValueType("time", "nanoseconds")
            scale = _NANOSECONDS[word]
            samples = [sample._replace(values=(sample.values[0] * scale,)) for sample in samples]
        elif word == "bytes":
            kind = ValueType("bytes", "bytes")
        profile = Profile([kind], samples, title=f"bpftrace {name}".strip())
        self.skipped.tell(profile)
        return profile

    def _explain(self, name: str) -> None:
        """Raises a StallscopeError that says what the maps contain instead of stacks, if there are maps."""
        what = {
            map_name: ", ".join(counted(number, kind) for kind, number in kinds.items())
            for map_name, kinds in self._unread.items()
        }
        others = ", ".join(sorted(_shown(other) for other in self._others - {self._wanted}))
        choose = f"choose one of: {others}" if others else "key a map by stacks: @[kstack, ustack] = count()"
        if self._wanted in what:
            cause = f"the map {printable(name)} has no stacks that can be read: {what[self._wanted]}"
        elif self._options.event and not self._tally.weights and (self._others or what):
            cause = f"there is no map called {printable(name)}"
        elif what and not self._tally.weights:
            told = "; ".join(f"{_shown(other)}: {kinds}" for other, kinds in what.items())
            cause = f"no map has stacks that can be read: {told}"
        else:
            return
        raise StallscopeError(cause, choose, exit_code=2 if self._options.event else 1)


def _key(name: str) -> bytes:
    return b"@" + name.encode(errors="surrogateescape").lstrip(b"@")


def _shown(name: bytes) -> str:
    return printable(name.decode(errors="surrogateescape"))


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as pairs, because keys may repeat: two processes may have the same stack."""
