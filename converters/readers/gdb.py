"""Stack dumps of all threads, one after another in one stream: ``thread apply all bt`` of gdb (also with ``full``),
pstack and gstack, which call it, and eu-stack of elfutils with any of its options.

Each stack counts as one sample, so several dumps form a profile. A frame is ``#N 0xADDR in function (arguments) at
file:line`` or ``#N 0xADDR function`` (print_frame in gdb/stack.c; print_frame in src/stack.c of elfutils); a thread
begins with ``Thread N (Thread 0x… (LWP TID) "name"):`` or ``TID TID:``, a process with ``PID PID - process`` or ends
with ``[Inferior 1 (process PID) detached]``. Stacks that the tool did not finish are counted.

A text counts as cut if it ends inside a line, if the numbers of gdb's threads, which count down to 1, end earlier, or
if only its last stack does not end where threads begin. That stack then counts only if it ends where stacks may end.

Names are those of stackcollapse-gdb.pl and stackcollapse-elfutils.pl of FlameGraph, with these differences: C++ names
with spaces are complete (the former cuts them at the third word); ``bt full`` does not cut a stack; a frame without a
name is ``[libfoo.so]`` or ``[unknown]`` instead of ``??``; additions by eu-stack -a, -c and -m, and versions of symbols
(``poll@@GLIBC_2.2.5``), are not part of the name; ``<signal handler called>`` is a frame with that name; a thread
without frames is not a sample.
"""

from __future__ import annotations

import re

from ..model import Frame, Labels, Module, Profile, ValueType
from ..model.losses import cut, frames_without
from ..names.cxx import arguments_at
from .base.options import ReadOptions
from .base.skipped import Skipped
from .base.source import Source
from .base.stack_tally import NotAFrame, StackTally, pieces

EXPECTED = "a frame of gdb or eu-stack: '#0  0xADDR in function (…)' or '#0  0xADDR function'"

_SNIFFED = 2000
_BEGIN = b"#0 "
_FRAME = re.compile(rb"#(\d{1,6}) +(?:(0x[0-9a-f]{1,16})(?: |\Z)(in )?)?")
_ACTIVATION = re.compile(rb"(?:- 1|   )(?: (?=\S)|\Z)")
_UNWINDER = re.compile(rb" \[(?:none|eh_frame|debug_frame|dwarf|ebl|inline)\]\Z")
_VERSION = re.compile(rb"(.)@@?[A-Z][\w.]{0,63}\Z", re.DOTALL)
"""The version of a symbol, as ld writes it into .symtab: ``poll@@GLIBC_2.2.5``."""
_MODULE = re.compile(rb"(?:\A| )- ([/\[].*)\Z", re.DOTALL)
_WHERE = re.compile(rb"\) (from|at) (.*)\Z", re.DOTALL)
_PLACE = re.compile(rb"(.*):(\d{1,9})\Z", re.DOTALL)
_PROCESS = re.compile(rb"PID (\d{1,10}) |\[Inferior \d+ \(process (\d{1,10})\)|Attaching to process (\d{1,10})")
_THREAD = re.compile(rb'TID (\d{1,10}):|Thread \S+ \(.*?\bLWP (\d{1,10})\)?(?: "(.*)")?(?:\)|:|\Z)', re.DOTALL)
_INNER = (b" ", b"\t", b"No locals.", b"No symbol table info", b"--Type <RET>", b"warning: ")
"""Prefixes of lines that may occur between frames."""
_CUT = (b"Backtrace stopped: ", b"(More stack frames", b"eu-stack: ")
"""Prefixes of lines that say why a stack ends too early."""
_HEADERS = (b"PID ", b"TID ", b"Thread ", b"[Inferior ", b"Attaching ", b"[", b"Using host", b"Detaching", b"0x")
_SHORT, _BAD, _HEADLESS = cut("short"), "lines not understood", frames_without("a beginning")
_CUT_DUMP = "dumps cut short at the end"
_OUTERMOST = frozenset({"_start", "clone", "clone3", "__clone", "__clone3"})
"""Outermost functions of threads; in gdb's output ``main`` is another one."""
_WHOLE = re.compile(rb"#\d+ +(?:.*\)(?: at .*:\d{1,9})?|0x[0-9a-f]{16} [^(]*)\Z", re.DOTALL)
"""A frame that looks complete."""
_NUMBER = re.compile(rb"^Thread (\d{1,6}) \(", re.MULTILINE)
_OPENING = (b"Thread ", b"TID ", b"PID ")
_UNKNOWN = (b"", b"??")
_MAX_FRAME = 1 << 14
_MAX_KEPT = 1 << 10
_MAX_FUNCTIONS = 1 << 17
_MAX_PLAIN = 1 << 8
_MAX_DUMP = 1 << 16
"""Maximum number of threads of one dump that wait for their process id."""


def sniff(head: bytes) -> bool:
    """Whether the first lines include an innermost frame."""
    return any(line.startswith(b"#0  ") and parse_frame(line, False) for line in head.splitlines()[:_SNIFFED])


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack and, depending on ``options``, process and thread. Raises StallscopeError."""
    dumps = _Dumps(source.name, options)
    parts = pieces(source, b"\n" + _BEGIN)
    text = next(parts)
    older, newer = b"", text
    piece: bytes | None = text[len(_BEGIN) :]
    if not text.startswith(_BEGIN):
        dumps.add_lines(text)
        piece = next(parts, None)
    if piece is not None:
        for following in parts:
            dumps.add(piece)
            older, newer, piece = newer, piece, following
        dumps.add_last(piece, b"%b\n%b" % (older, newer))
    profile = dumps.profile()
    dumps.skipped.check(source, bool(profile.samples), EXPECTED)
    return profile


class _Dumps:
    """Stacks by thread."""

    def __init__(self, name: str, options: ReadOptions) -> None:
        self.skipped = Skipped(name, EXPECTED)
        self._tally = StackTally(self._parse)
        self._known, self._weights = self._tally.known, self._tally.weights
        self._functions: dict[bytes, tuple[Frame, ...]] = {}
        """Line without number and address → its frames: there are far fewer such texts than whole lines."""
        self._options = options
        self._labelled = options.pid or options.tid
        self._pid = 0
        self._tid, self._thread = 0, b""
        self._dump: list[tuple[int, bytes, int]] = []
        """(thread id, thread name, stack) for a process whose id is not known yet."""
        self._plain: dict[bytes, int] = {}
        """Irrelevant texts between stacks → number of their lines."""
        self._bases: dict[tuple[int, int, bytes, bytes], int] = {}
        """(process, thread, name, process name) → number that their labels add to that of a stack."""
        self._line = 1

    def add(self, piece: bytes) -> None:
        """Adds a stack without its ``#0``, and the text up to the next one."""
        end = piece.find(b"\n", piece.rfind(b"\n#") + 1)
        text = piece if end < 0 else piece[:end]
        known = self._known(text)
        if known is None:
            try:
                known = self._tally.remember(text, self._tally.stack(_lines(text)))
            except NotAFrame:
                self._add_slowly(piece)
                return
        stack, breaks = known
        if self._labelled:
            self._count(stack)
        else:
            self._weights[stack] += 1
        self._line += breaks
        if end < 0:
            self._line += 1
            return
        below = piece[end:]
        lines = self._plain.get(below)
        if lines is None:
            self._add_below(below)
        else:
            self._line += lines

    def add_last(self, piece: bytes, above: bytes) -> None:
        """Adds the last piece of the text, which may be cut. ``above``: the two pieces before it."""
        lines = _lines(piece)
        inside = lines[-1]  # the last line if it has no line end, else b""
        if not inside:
            lines.pop()
        last = max(i for i, line in enumerate(lines) if line.startswith(b"#"))
        below = lines[last + 1 :]
        ended = any(not line or _is_header(line) or line.startswith(_CUT) for line in below)
        missing = _is_unfinished(b"%b\n#0 %b" % (above, piece))
        open_end = not ended and not self._is_whole(lines[last], partial=inside == lines[last])
        if open_end and (missing or inside or self._begin_as_threads()):
            self.skipped.add(_CUT_DUMP)
            return
        self.add(piece)
        if missing or (inside and ended and inside.startswith(_OPENING)):
            self.skipped.add(_CUT_DUMP)

    def _is_whole(self, line: bytes, *, partial: bool) -> bool:
        """Whether a stack may end with the frame of this line. ``partial``: the line has no line end."""
        frames = parse_frame(line, self._options.addrs)
        if not frames:
            return False
        name = frames[0].name
        if name[0] == "[" and not partial:
            return True
        if frames in self._tally.outermost() and not (partial and name.startswith("[unknown")):
            return True
        main = name == "main" and b" (" in line
        if not (main or name in _OUTERMOST):
            return False
        return not partial or (len(line) <= _MAX_FRAME and _WHOLE.match(line) is not None)

    def _begin_as_threads(self) -> bool:
        """Whether all stacks so far end where threads begin, as far as their outermost frames have names."""
        names = {frames[0].name for frames in self._tally.outermost()}
        return not names.isdisjoint(_OUTERMOST) and all(name in _OUTERMOST or name[0] == "[" for name in names)

    def _add_below(self, text: bytes) -> None:
        """Adds the text between two stacks; it is cached if it has no effect."""
        before = sum(self.skipped.counts.values())
        self.add_lines(text)
        if not self._labelled and len(text) < _MAX_PLAIN and sum(self.skipped.counts.values()) == before:
            if len(self._plain) >= _MAX_DUMP:
                self._plain.clear()
            self._plain[text] = text.count(b"\n") + 1

    def _add_slowly(self, piece: bytes) -> None:
        """Adds lines up to the one that ends the stack, then the rest."""
        numbers: list[int] = []
        lines = _lines(piece)
        for at, line in enumerate(lines):
            try:
                numbers.append(self._tally.lines[line])
            except NotAFrame:
                if not line or line.startswith(_HEADERS) or line.startswith(_CUT):
                    break
                self.skipped.add(_BAD, self._line + at)
        else:
            at = len(lines)
        self._line += at
        try:
            stack = self._tally.stack_of(tuple(numbers))
        except NotAFrame:
            self.skipped.add(_SHORT)
        else:
            if stack:
                self._count(stack)
        self.add_lines(b"\n".join(lines[at:]))

    def _count(self, stack: int) -> None:
        if not self._labelled:
            self._tally.weights[stack] += 1
            return
        self._dump.append((self._tid, self._thread, stack))
        if self._pid or len(self._dump) > _MAX_DUMP:
            self._commit()

    def _parse(self, line: bytes) -> tuple[Frame, ...] | None:
        words = line.split(None, 2)
        usual = len(words) == 3 and line[:1] == b"#" and words[0][1:].isdigit() and words[1].startswith(b"0x")
        if self._options.addrs or not usual or len(line) > _MAX_KEPT:
            return parse_frame(line, self._options.addrs)
        known = self._functions.get(words[2])
        if known is None and (known := parse_frame(line, addrs=False)):
            if len(self._functions) >= _MAX_FUNCTIONS:
                self._functions.clear()
            self._functions[words[2]] = known
        return known

    def add_lines(self, text: bytes) -> None:
        """Adds the text between two stacks."""
        for line in text.split(b"\n"):
            if line.startswith(_HEADERS):
                self._header(line)
            elif line.startswith(_CUT):
                self.skipped.add(_SHORT)
            elif line.startswith(b"#") and _FRAME.match(line):
                self.skipped.add(_HEADLESS, self._line)
            self._line += 1

    def _header(self, line: bytes) -> None:
        if not self._labelled or len(line) > _MAX_FRAME:
            return
        if match := _THREAD.match(line):
            self._tid, self._thread = int(match[1] or match[2]), match[3] or b""
        elif match := _PROCESS.match(line):
            ended = match[2]
            if not ended and self._dump:
                self._commit()
            self._pid = int(match[1] or ended or match[3])
            self._commit()
            if ended:
                self._pid = 0
            self._tid, self._thread = 0, b""

    def _commit(self) -> None:
        """Counts the stacks of a dump, whose process is now known or will remain unknown."""
        main = next((name for tid, name, _ in self._dump if name and tid == self._pid), b"")
        for tid, name, stack in self._dump:
            base = self._bases.get((self._pid, tid, name, main))
            if base is None:
                base = self._tally.labels(self._labels(tid, name, main))
                self._bases[self._pid, tid, name, main] = base
            self._tally.weights[stack + base] += 1
        self._dump = []

    def _labels(self, tid: int, name: bytes, process: bytes) -> Labels:
        labels: dict[str, str | int] = {}
        if self._pid:
            labels["pid"] = self._pid
        if process:
            labels["process"] = _text(process)
        if self._options.tid and tid:
            labels["tid"] = tid
            if name:
                labels["thread"] = _text(name)
        return tuple(sorted(labels.items()))

    def profile(self) -> Profile:
        """The result."""
        self._commit()
        profile = Profile([ValueType("samples", "count")], self._tally.samples(), title="stacks of all threads")
        self.skipped.tell(profile)
        return profile


def _lines(piece: bytes) -> list[bytes]:
    lines = piece.split(b"\n")
    lines[0] = b"#0 " + lines[0]
    return lines


def _is_header(line: bytes) -> bool:
    return line.startswith(_HEADERS) or any(header.startswith(line) for header in _HEADERS)


def _is_unfinished(text: bytes) -> bool:
    """Whether the end of the text shows that threads are missing: gdb counts them down to 1."""
    headers = list(_NUMBER.finditer(text))
    if not headers:
        return False
    if b"\n#" not in text[headers[-1].end() :]:
        return True
    numbers = [int(header[1]) for header in headers[-2:]]
    return len(numbers) > 1 and numbers[0] == numbers[1] + 1 and numbers[1] > 1


def parse_frame(line: bytes, addrs: bool) -> tuple[Frame, ...] | None:
    """The frame of one line, () for a line between frames, None for any other."""
    if line.startswith(_INNER):
        return ()
    line = line[:_MAX_FRAME].rstrip()
    match = _FRAME.match(line)
    if match is None:
        return None
    address, rest = match[2] or b"", line[match.end() :]
    if address and not match[3]:
        return (_elfutils_frame(rest, address, addrs),)
    start = arguments_at(rest, before=b" ")
    name, where = (rest, b"") if start < 0 else (rest[: start - 1], rest[start:])
    if not name or (start < 0 and not name.startswith(b"<")):
        return None
    return (_located(name, address, addrs, where),)


def _located(name: bytes, address: bytes, addrs: bool, text: bytes) -> Frame:
    """A frame of gdb; ``text`` is the part after its name."""
    where = _WHERE.search(text[max(text.rfind(b") "), 0) :])
    if where is None or where[1] == b"from":
        return _frame(name, address, addrs, where[2] if where else b"")
    place = _PLACE.match(where[2])
    file, line = (place[1], int(place[2])) if place else (where[2], 0)
    return _frame(name, address, addrs)._replace(file=_text(file), line=line)


def _elfutils_frame(text: bytes, address: bytes, addrs: bool) -> Frame:
    """A frame from eu-stack's text after the address."""
    if match := _ACTIVATION.match(text):
        text = text[match.end() :]
    text = _UNWINDER.sub(b"", text)
    match = _MODULE.search(text)
    name, module = (text[: match.start()], match[1]) if match else (text, b"")
    return _frame(_VERSION.sub(rb"\1", name.strip()), address, addrs, module)


def _frame(name: bytes, address: bytes, addrs: bool, module: bytes = b"") -> Frame:
    if name in _UNKNOWN:
        shown = module.rpartition(b"/")[2] or b"unknown"
        name = b"[%b <%b>]" % (shown, address.removeprefix(b"0x")) if addrs and address else b"[%b]" % shown
    return Frame(_text(name), "native", Module(_text(module)) if module else None)


def _text(name: bytes) -> str:
    return name.decode(errors="surrogateescape")
