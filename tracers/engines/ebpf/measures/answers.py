"""Programs that answer questions about calls and events, in the kernel: their maps, and what they have counted."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .....converters.base.errors import StallscopeError
from .....converters.base.units import plural
from ....expressions.asked import Ask, Asked, Bound, formatted, number, plain
from ....expressions.check import STRING
from ....expressions.plan import PLACES, Plan, TooMuch, is_text, plan
from ....expressions.source import PRINTS_PER_SECOND, Loss, MapNumber, Resume, names, saved_size, source
from ....kernel.bpfmap import RingBuffer
from ....kernel.bpfobject import Object
from ....kernel.bytecode import Kind, OwnMap, Program, load, with_maps
from ....measures.questions import Compile, Line

_KINDS = 256
"""Functions whose arguments differ: half of the entries of call_questions of bpf/include/asked_calls.bpf.h; of events,
as many as the maps of bpf/events.bpf.c have."""
_KEY = struct.Struct("<IIiI")
_VALUE = struct.Struct("<QQ")
_PRINTED = struct.Struct("<QIIIIQ")
"""Time, thread, process, question, function, by value whether it could not be read."""
_CALL_KEY = 16
_ENTRIES = 1 << 14
"""Buckets of all questions and functions."""
_SAVED_BYTES = 16 << 20
"""Bytes of arguments that calls keep for their return; at least `_FEWEST` calls, and at most `_MOST`."""
_FEWEST, _MOST = 1 << 9, 1 << 14
_RING = 1 << 20
_VALUES = 1 << 14
"""Different values of all --count-by."""
_VALUE_KEY = struct.Struct(f"<II{STRING}s")


class Frame(NamedTuple):
    """Programs that call the answering programs, and that these call. ``questions``: the map by which they are called.
    ``resumes``: ours, by their place. ``kind`` and ``attach_type`` of all these programs."""

    questions: str
    resumes: Mapping[Resume, str]
    attach_type: int
    kind: Program = Program.KPROBE

    @property
    def returns(self) -> bool:
        """Whether there are programs for returns."""
        return Resume.RETURN in self.resumes


CALLS = Frame(
    "call_questions",
    {Resume.ENTER: "resumed_enter", Resume.RETURN: "resumed_return", Resume.DROP: "resumed_drop"},
    0,
)
"""Frame of calls that are timed; the attach type is the trace's."""


class Answers:
    """The programs and maps of one trace. `close` frees what the trace's own object does not."""

    def __init__(self, loaded: Object, suffix: str, asked: Asked, compiler: Compile) -> None:
        """BpfError if the kernel refuses. ``suffix`` of our programs."""
        self._loaded, self._suffix, self._asked, self._compile = loaded, suffix, asked, compiler
        self._maps: dict[MapNumber, OwnMap] = {}
        self._own: list[OwnMap] = []
        self._programs: list[int] = []
        self._resumes: dict[str, OwnMap] = {}
        """Programs of this object, by map of questions."""
        self._known: dict[str, list[Plan]] = {}
        """Plans by map of questions: the index is the place of the programs."""
        self._bounds: dict[int, Bound] = {}
        """Questions bound to each function, by its number."""
        self._lines: list[Line] = []
        self._ring: RingBuffer | None = None
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        for kind, name, sizes in (
            (MapNumber.ANSWERS, "answers", (Kind.HASH, _KEY.size, _VALUE.size, _ENTRIES)),
            (MapNumber.LOSSES, "answer_losses", (Kind.ARRAY, 4, 8, len(Loss))),
            (MapNumber.RATE, "print_rate", (Kind.ARRAY, 4, 16, 1)),
            (MapNumber.PRINTS, "prints", (Kind.RINGBUF, 0, 0, _RING)),
            (MapNumber.VALUES, "answer_values", (Kind.HASH, _VALUE_KEY.size, 8, _VALUES if self._counts else 1)),
        ):
            self._maps[kind] = self._make(name, *sizes)
        self._ring = RingBuffer(self._maps[MapNumber.PRINTS], self._take)

    @property
    def _counts(self) -> bool:
        return any(question.ask is Ask.COUNT for question in self._asked.questions)

    def _resume(self, frame: Frame) -> OwnMap:
        """The map with our programs."""
        if frame.questions not in self._resumes:
            made = self._make("resumes", Kind.PROGRAMS, 4, 4, len(Resume))
            for place, name in frame.resumes.items():
                program = self._loaded.programs[name + self._suffix]
                made.update(place.to_bytes(4, "little"), program.fd.to_bytes(4, "little"))
            self._resumes[frame.questions] = made
        return self._resumes[frame.questions]

    def _make(self, name: str, kind: Kind, key: int, value: int, entries: int) -> OwnMap:
        made = OwnMap(kind, name, key, value, entries)
        self._own.append(made)
        return made

    def place(self, frame: Frame, numbers: Sequence[int], found: Sequence[Bound]) -> list[int]:
        """Numbers of the programs for functions with these numbers; they are compiled and loaded if they are new.
        BpfError; StallscopeError if there are too many, or if bcc does not compile them."""
        plans = [planned(bound) for bound in found]
        known = self._known.setdefault(frame.questions, [])
        fresh: list[Plan] = []
        for each in plans:
            if each not in fresh and each not in known:
                fresh.append(each)
        if len(known) + len(fresh) > _KINDS:
            raise StallscopeError(
                f"functions have their arguments in more than {_KINDS} ways", "name fewer functions", exit_code=2
            )
        if fresh:
            self._load(frame, fresh)
        self._bounds |= dict(zip(numbers, found, strict=True))
        return [known.index(each) for each in plans]

    def _load(self, frame: Frame, plans: list[Plan]) -> None:
        """Programs that are compiled together share the map of what calls keep for their return."""
        size = saved_size(plans)
        entries = min(max(_SAVED_BYTES // size, _FEWEST), _MOST)
        maps = {kind.value: each.fd for kind, each in self._maps.items()}
        maps[MapNumber.SAVED] = self._make("saved_arguments", Kind.LRU_HASH, _CALL_KEY, size, entries).fd
        maps[MapNumber.BLANK] = self._make("saved_blank", Kind.ARRAY, 4, size, 1).fd
        maps[MapNumber.RESUME] = self._resume(frame).fd
        if frame.returns:
            maps[MapNumber.CALLS] = self._loaded.find_map("call_stacks").fd
        questions = self._loaded.find_map(frame.questions)
        text, wanted = program_text(plans, returns=frame.returns)
        code = self._compile(text, wanted)
        known = self._known[frame.questions]
        for slot, name in enumerate(wanted, len(known) * (1 + frame.returns)):
            fd = load(with_maps(code[name], maps), name, frame.attach_type, frame.kind)
            self._programs.append(fd)
            questions.update(slot.to_bytes(4, "little"), fd.to_bytes(4, "little"))
        known += plans

    def _take(self, record: bytes) -> None:
        _, tid, pid, question, function, faults = _PRINTED.unpack_from(record)
        values = self._bounds[function].values[question]
        at, found = _PRINTED.size, list[int | bytes | None]()
        for i, node in enumerate(values.nodes):
            size = STRING if is_text(node) else 8
            part = record[at : at + size]
            at += size
            if faults >> i & 1:
                found.append(None)
            elif is_text(node):
                found.append(part.partition(b"\0")[0])
            else:
                found.append(number(node, int.from_bytes(part, "little")))
        text = formatted(values.question, values.nodes, found)
        self._lines.append(Line(pid, tid, function, text, bool(values.question.format)))

    def lines(self) -> list[Line]:
        """Lines printed since the last call."""
        if self._ring:
            self._ring.consume()
        lines, self._lines = self._lines, []
        return lines

    def counted(self) -> dict[tuple[int, int, int], tuple[int, int]]:
        """Number of values, and the 64 bits of their sum, by question, function and bucket."""
        found = {}
        for key, value in self._maps[MapNumber.ANSWERS].items():
            question, function, bucket, _ = _KEY.unpack(key)
            count, total = _VALUE.unpack(value)
            found[question, function, bucket] = (count, total)
        return found

    def valued(self) -> dict[tuple[int, int, str], int]:
        """Number of each value, by question and function. What had no room is in `counted`."""
        found: dict[tuple[int, int, str], int] = {}
        for key, value in self._maps[MapNumber.VALUES].items() if self._counts else ():
            question, function, data = _VALUE_KEY.unpack(key)
            node = self._bounds[function].values[question].nodes[0]
            if is_text(node):
                text = data.partition(b"\0")[0].decode("utf-8", "backslashreplace")
            else:
                text = plain(node, number(node, int.from_bytes(data[:8], "little")))
            # What is behind the end of a string does not count.
            found[question, function, text] = found.get((question, function, text), 0) + int.from_bytes(value, "little")
        return found

    def signed(self, question: int, function: int, total: int) -> int:
        """The sum of a question's values, of 64 bits."""
        return number(self._bounds[function].values[question].nodes[0], total)

    def losses(self) -> dict[Loss, int]:
        """Losses so far."""
        found = {}
        for kind in Loss:
            value = self._maps[MapNumber.LOSSES].lookup(kind.to_bytes(4, "little"))
            found[kind] = int.from_bytes(value or b"", "little")
        return found

    def close(self) -> None:
        """A second call does nothing."""
        if self._ring:
            self._ring.close()
        self._ring = None
        programs, self._programs = self._programs, []
        for fd in programs:
            os.close(fd)
        for each in self._own:
            each.close()


def program_text(plans: Sequence[Plan], *, returns: bool) -> tuple[str, list[str]]:
    """The C of the programs, and their names by slot."""
    wanted = [name for i in range(len(plans)) for name in names(i)[: 1 + returns]]
    return source(plans, returns=returns), wanted


def planned(bound: Bound) -> Plan:
    """StallscopeError if too much is asked."""
    try:
        return plan(bound)
    except TooMuch:
        raise StallscopeError(
            f"the questions need more than {PLACES} values when a call returns", "ask less at once", exit_code=2
        ) from None


LOSSES = {
    Loss.FAULTS: "calls and events whose --where could not be answered",
    Loss.VALUES: "values that could not be read",
    Loss.SAVES: "calls whose arguments were not kept until they returned",
    Loss.ROOM: "values without room in the table",
    Loss.PRINTS: "lines of --print without room",
}
"""Name of each loss; what the rate limit left out is told in a remark."""


def remarks(losses: Mapping[Loss, int]) -> Iterator[str]:
    """Sentences that the reader should know."""
    if limited := losses.get(Loss.LIMITED):
        yield f"--print: {plural(limited, 'line')} beyond {PRINTS_PER_SECOND:,} a second left out"
