"""Findings of questions, as a measure tells them: lines while the trace runs, then answers, losses and remarks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from .....converters.base.text import printable, some
from .....converters.model.asked_values import MOST_VALUES, AskedValues, bounds
from ....expressions.asked import Ask, Asked
from ....expressions.source import Loss
from ....measures.questions import Line
from .answers import LOSSES, Answers
from .answers import remarks as told
from .protocol import Collector

PERIOD = 0.1
"""Seconds between two looks at what is printed."""
Name = Callable[[int], tuple[str, str]]
"""Finds a function's name, and that of its file, by its number."""


class Replies:
    """Replies of one trace. What was read of earlier intervals is subtracted."""

    def __init__(self, asked: Asked, show: Callable[[str, Line], None], name: Name) -> None:
        """``show`` gets the name of the function and what --print says."""
        self._asked, self._show, self._name = asked, show, name
        self.of: Answers | None = None
        self._counted: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._counted_before: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._valued: dict[tuple[int, int, str], int] = {}
        self._valued_before: dict[tuple[int, int, str], int] = {}
        self._losses = self._losses_before = dict.fromkeys(Loss, 0)

    def print(self) -> None:
        """Shows the lines since the last time."""
        for line in self.of.lines() if self.of else ():
            self._show(self._name(line.function)[0], line)

    def read(self) -> None:
        """Reads the maps."""
        self.print()
        if self.of:
            self._counted, self._valued, self._losses = self.of.counted(), self.of.valued(), self.of.losses()

    def next(self) -> None:
        """The next interval begins."""
        self._counted_before, self._losses_before, self._valued_before = self._counted, self._losses, self._valued

    def close(self) -> None:
        """Frees programs and maps."""
        if self.of:
            self.of.close()

    def answers(self) -> Sequence[AskedValues]:
        """Answers of the interval."""
        found: dict[tuple[int, int], AskedValues] = {}
        for (question, function, bucket), (count, total) in sorted(self._counted.items()):
            old_count, old_total = self._counted_before.get((question, function, bucket), (0, 0))
            if count == old_count or self.of is None:
                continue
            answer = self._answer(found, question, function)
            answer.count += count - old_count
            if answer.ask == _ask(Ask.COUNT):
                answer.others += count - old_count
                continue
            answer.sum += self.of.signed(question, function, (total - old_total) & (1 << 64) - 1)
            if answer.ask == _ask(Ask.HIST):
                answer.buckets.append((*bounds(bucket), count - old_count))
        for (question, function), values in self._values().items():
            answer, kept = self._answer(found, question, function), values.most_common(MOST_VALUES)
            answer.count += values.total()
            answer.others += values.total() - sum(number for _, number in kept)
            answer.values = sorted(kept, key=lambda each: (-each[1], each[0]))
        return list(found.values())

    def _values(self) -> dict[tuple[int, int], Counter[str]]:
        found: dict[tuple[int, int], Counter[str]] = {}
        for key, number in self._valued.items():
            question, function, value = key
            if number > (old := self._valued_before.get(key, 0)):
                found.setdefault((question, function), Counter())[value] = number - old
        return found

    def _answer(self, found: dict[tuple[int, int], AskedValues], question: int, function: int) -> AskedValues:
        asked = self._asked.questions[question]
        return found.setdefault(
            (question, function), AskedValues(_ask(asked.ask), asked.text, *self._name(function), count=0, sum=0)
        )

    def losses(self) -> Mapping[str, int]:
        """Losses by kind."""
        return {name: self._losses[kind] - self._losses_before[kind] for kind, name in LOSSES.items()}

    def remarks(self, what: str) -> Iterator[str]:
        """``what`` is asked about: "calls"."""
        for text, _ in self._asked.where:
            yield f"only {what} count of which this is true: {text}"
        yield from told({kind: self._losses[kind] - self._losses_before[kind] for kind in Loss})


def left_out(faults: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[str]:
    """``faults``: by path of a file, the names of what lacks something, and what."""
    for path, each in faults.items():
        names = some([name for name, _ in each])
        yield printable(f"{os.path.basename(path)}: left out {names}, without what is asked for: {each[0][1]}")


def _ask(ask: Ask) -> str:
    return ask.value.removeprefix("--")


class Asking(Collector):
    """Addition of a measure with questions to the one that it is also of: comes before it in the list of its bases."""

    ABOUT = ""
    """Subject of the questions: ``calls``, ``events``."""
    _replies: Replies

    def consume(self) -> None:
        super().consume()
        self._replies.print()

    def next(self) -> None:
        super().next()
        self._replies.next()

    def close(self) -> None:
        super().close()
        self._replies.close()

    def answers(self) -> Sequence[AskedValues]:
        return self._replies.answers()

    def losses(self) -> Mapping[str, int]:
        return {**super().losses(), **self._replies.losses()}

    def remarks(self) -> Iterable[str]:
        yield from super().remarks()
        yield from self._replies.remarks(self.ABOUT)
