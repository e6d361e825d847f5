"""The measure of calls, with questions about their arguments and results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .....converters.base.errors import StallscopeError
from ....expressions.asked import Asked, Bound, Fault
from ....images.elf import ElfFile
from ....images.functions import Function
from ....kernel.bpfobject import Link, Object
from ....kernel.uprobes import Way
from ....measures.calls import AskedCalls
from .answers import CALLS, Answers, Frame
from .calls import CallsCollector
from .probed import Probed
from .replies import PERIOD, Asking, Replies, left_out

if TYPE_CHECKING:
    from ....measures.questions import Binder

QUESTIONS = 52
"""COOKIE_QUESTIONS of bpf/include/call_cookie.h."""


class AskedCallsCollector(Asking, CallsCollector):
    """Collector that times and counts only calls of which --where is true."""

    ABOUT = "calls"
    PROBES = ("asked_session", "asked_enter", "asked_return")

    def __init__(self, measure: AskedCalls, *, way: Way | None = None) -> None:
        super().__init__(measure, way=way)
        asked = measure.asked
        self._slow.judged = bool(measure.over) or asked.judges_returns
        self.period = min(self.period or PERIOD, PERIOD)
        self._asked, self._compiler, self._binder = asked, measure.compiler, measure.binder
        self._replies = Replies(asked, measure.show, self._named)

    @property
    def placed(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*super().placed, *CALLS.resumes.values())

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        """The answering programs are loaded now if they are the same for every function."""
        answers = self._replies.of = Answers(loaded, suffix, self._asked, self._compiler)
        frame = CALLS._replace(attach_type=self.way.attach_type)
        if self._binder is None:
            answers.place(frame, [0], [self._asked.bind()])
        both, enter, end = (name + suffix for name in self.PROBES)
        self.probed = _Probed(loaded, self.way, (both, enter, end), self.wanted)
        self.probed.ask(answers, frame, self._binder, self._asked)
        return [self.probed]

    def read(self, loaded: Object) -> None:
        super().read(loaded)
        self._replies.read()

    def remarks(self) -> Iterable[str]:
        yield from super().remarks()
        if self._asked.judges_returns:
            yield "--where is known at the return: the waits of a call are all at the place of its longest one"

    def _named(self, number: int) -> tuple[str, str]:
        """A function and the name of its file."""
        assert self.probed
        name, path, _ = self.probed.functions[number]
        return name, os.path.basename(path)


class _Probed(Probed):
    """Puts into the cookie of each function which programs answer for it. Functions that lack an argument have no
    probe."""

    _answers: Answers
    _frame: Frame
    _binder: Binder | None
    _asked: Asked

    def ask(self, answering: Answers, frame: Frame, binder: Binder | None, asked: Asked) -> None:
        """Sets the questions, before it looks at files."""
        self._answers, self._frame, self._binder, self._asked = answering, frame, binder, asked
        self._faults: dict[str, list[tuple[str, str]]] = {}

    def fitting(self, fd: int, elf: ElfFile, path: str, found: Sequence[Function]) -> list[tuple[Function, int]]:
        first = len(self.functions)
        if self._binder is None:
            numbers = range(first, first + len(found))
            self._answers.place(self._frame, numbers, [self._asked.bind()] * len(found))
            return [(function, 0) for function in found]
        fits: list[tuple[Function, Bound]] = []
        for function, bound in zip(found, self._binder(fd, elf, path, found), strict=True):
            if isinstance(bound, Fault):
                self._faults.setdefault(path, []).append((function.name, str(bound)))
            else:
                fits.append((function, bound))
        try:
            numbers = range(first, first + len(fits))
            indexes = self._answers.place(self._frame, numbers, [bound for _, bound in fits])
        except StallscopeError as error:
            self.problems[path] = error.cause
            return []
        return [(function, index << QUESTIONS) for (function, _), index in zip(fits, indexes, strict=True)]

    def remarks(self) -> Iterator[str]:
        yield from super().remarks()
        yield from left_out(self._faults)
