"""The measure of counted events, with questions about their arguments and fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os.path import basename
from typing import TYPE_CHECKING

from .....converters.base.errors import StallscopeError
from ....expressions.asked import Asked, Bound, Fault
from ....expressions.source import Resume
from ....images.elf import ElfFile
from ....images.functions import Function
from ....images.usdt import UsdtProbe
from ....kernel.bpfobject import Object
from ....kernel.bytecode import Program
from ....kernel.tracepoints import fields
from ....kernel.uprobes import Way
from ....measures.events import AskedEvents
from ....probe_targets.events import TRACEPOINT
from .answers import Answers, Frame
from .asked_calls import QUESTIONS
from .event_probes import KERNELS, EventProbes
from .event_questions import at_entry, at_places, of_tracepoint
from .events import EventsCollector
from .replies import PERIOD, Asking, Replies, left_out

if TYPE_CHECKING:
    from ....measures.questions import Binder

_USER = Frame("user_questions", {Resume.ENTER: "events_user"}, 0)
_TRACEPOINT = Frame("tracepoint_questions", {Resume.ENTER: "events_tracepoint"}, 0, Program.TRACEPOINT)
_KERNEL = Frame("kernel_questions", {Resume.ENTER: "events_kernel"}, 0)


class AskedEventsCollector(Asking, EventsCollector):
    """Collector that counts only events of which --where is true."""

    ABOUT = "events"

    def __init__(self, measure: AskedEvents, *, way: Way | None = None) -> None:
        super().__init__(measure, way=way)
        self.period = min(self.period or PERIOD, PERIOD)
        self._asked, self._compiler, self._binder = measure.asked, measure.compiler, measure.binder
        self._replies = Replies(measure.asked, measure.show, self._named)

    @property
    def attached(self) -> tuple[str, ...]:
        return tuple(map(_asked, self.counting))

    @property
    def placed(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self.counting, *self.attached)

    def attach_types(self) -> Mapping[str, int]:
        found = super().attach_types()
        return {**found, **{_asked(name): number for name, number in found.items()}}

    def make_probes(self, loaded: Object, way: Way, suffix: str) -> EventProbes:
        answers = self._replies.of = Answers(loaded, suffix, self._asked, self._compiler)
        probes = AskedProbes(loaded, way, suffix, self._wanted)
        probes.ask(answers, self._binder, self._asked)
        return probes

    def read(self, loaded: Object) -> None:
        super().read(loaded)
        self._replies.read()

    def _named(self, number: int) -> tuple[str, str]:
        """An event and the name of its file."""
        name, path = self._probe(number)
        return name, basename(path)


class AskedProbes(EventProbes):
    """Puts into the cookie of each place which program answers for it. What lacks an argument has no probe."""

    PREFIX = "asked"
    _answers: Answers
    _binder: Binder | None
    _asked: Asked

    def ask(self, answers: Answers, binder: Binder | None, asked: Asked) -> None:
        """Sets the questions, before it looks at files."""
        self._answers, self._binder, self._asked = answers, binder, asked
        self._faults: dict[str, list[tuple[str, str]]] = {}

    def fitting_in_kernel(self, kind: str, names: Sequence[str]) -> list[tuple[str, int]]:
        if kind == TRACEPOINT:
            bounds = [of_tracepoint(self._asked, name, fields(name)) for name in names]
        else:
            bounds = [self._at_entry()] * len(names)
        fits = self._without_faults(KERNELS, names, bounds)
        first = len(self.functions)
        frame = _TRACEPOINT if kind == TRACEPOINT else _KERNEL
        indexes = self._answers.place(frame, range(first, first + len(fits)), [bound for _, bound in fits])
        return [(names[i], index << QUESTIONS) for (i, _), index in zip(fits, indexes, strict=True)]

    def fitting(self, fd: int, elf: ElfFile, path: str, found: Sequence[Function]) -> list[tuple[Function, int]]:
        bounds = self._binder(fd, elf, path, found) if self._binder else [self._at_entry()] * len(found)
        fits = self._without_faults(path, [function.name for function in found], bounds)
        first = len(self.functions)
        indexes = self._place(path, range(first, first + len(fits)), [bound for _, bound in fits])
        return [(found[i], index << QUESTIONS) for (i, _), index in zip(fits, indexes, strict=False)]

    def fitting_usdt(self, path: str, first: int, found: Sequence[UsdtProbe]) -> list[tuple[UsdtProbe, list[int]]]:
        fits: list[tuple[UsdtProbe, Sequence[Bound]]] = []
        for probe in found:
            bounds = at_places(self._asked, probe)
            if isinstance(bounds, Fault):
                self._faults.setdefault(path, []).append((probe.title, str(bounds)))
            else:
                fits.append((probe, bounds))
        numbers = [number for number, (_, bounds) in enumerate(fits, first) for _ in bounds]
        indexes = iter(self._place(path, numbers, [bound for _, bounds in fits for bound in bounds]))
        if path in self.problems:
            return []
        return [(probe, [next(indexes) << QUESTIONS for _ in bounds]) for probe, bounds in fits]

    def _at_entry(self) -> Bound | Fault:
        try:
            return at_entry(self._asked)
        except Fault as fault:
            return fault

    def _place(self, path: str, numbers: Sequence[int], bounds: Sequence[Bound]) -> list[int]:
        """Nothing, and a problem, if they cannot be asked."""
        try:
            return self._answers.place(_USER._replace(attach_type=self._way.attach_type), numbers, bounds)
        except StallscopeError as error:
            self.problems[path] = error.cause
            return []

    def _without_faults(
        self, path: str, names: Sequence[str], bounds: Sequence[Bound | Fault]
    ) -> list[tuple[int, Bound]]:
        """The others, with their indexes."""
        fits = []
        for i, bound in enumerate(bounds):
            if isinstance(bound, Fault):
                self._faults.setdefault(path, []).append((names[i], str(bound)))
            else:
                fits.append((i, bound))
        return fits

    def remarks(self) -> Iterator[str]:
        yield from super().remarks()
        yield from left_out(self._faults)


def _asked(program: str) -> str:
    """The program at an event, of the one that counts."""
    return f"{AskedProbes.PREFIX}_{program.removeprefix(EventProbes.PREFIX + '_')}"
