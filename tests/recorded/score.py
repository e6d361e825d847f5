"""Says how well the captures are answered: score.py [NAME…]; without names all that are there.

A capture is right if its first sentence matches all regular expressions of its truth. If the answer has verdicts, their
kinds are compared, too.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from capture_truths import TRUTHS
from job import KINDS, Truth
from record import CAPTURES
from stallscope.converters import pprof
from stallscope.converters.summary.figures import Summary
from stallscope.converters.summary.showing import answer_of

_RIGHT, _WRONG, _LATER = "yes", "NO", "later"


@dataclass(frozen=True)
class Score:
    """Score of an answer on a capture, beside what is true."""

    name: str
    truth: Truth
    sentences: tuple[str, ...]
    kind: str | None
    """Kind of the first verdict; None if the answer has no verdicts."""

    @property
    def subjects(self) -> list[str]:
        """Place of each regular expression: in the first sentence, in a later one, or nowhere."""
        return [self.found(pattern) for pattern in self.truth.subject]

    @property
    def names(self) -> list[str]:
        return [self.found(pattern) for pattern in self.truth.named]

    @property
    def kind_is_right(self) -> bool | None:
        return None if self.kind is None else self.kind in self.truth.kinds

    @property
    def is_right(self) -> bool:
        return {*self.subjects, *self.names} <= {_RIGHT} and self.kind_is_right is not False

    def found(self, pattern: str) -> str:
        where = [bool(re.search(pattern, sentence)) for sentence in self.sentences]
        return _WRONG if not any(where) else _RIGHT if where[0] else _LATER


def score(path: Path) -> Score:
    name = path.name.removesuffix(".pb.gz")
    with path.open("rb") as file:
        summary = answer_of(pprof.load(file))
    return Score(name, TRUTHS[name], summary.answer, kind_of(summary))


def kind_of(summary: Summary) -> str | None:
    """The kind of the first verdict; None if there is none."""
    verdicts = summary.judged.verdicts
    return verdicts[0].kind if verdicts else None


def report(scores: Sequence[Score], say: Callable[[str], object] = print) -> None:
    for each in scores:
        kind = f", answered {each.kind}" if each.kind else ""
        say(f"{'right' if each.is_right else 'WRONG'}  {each.name}: {'|'.join(each.truth.kinds)}{kind}")
        if each.truth.trouble:
            say(f"       truth: {each.truth.trouble}")
        for pattern in (*each.truth.subject, *each.truth.named):
            say(f"       {each.found(pattern):5}  {pattern}")
        for sentence in each.sentences[:2]:
            say(f"       > {sentence}")
    _totals(scores, say)


def _totals(scores: Sequence[Score], say: Callable[[str], object]) -> None:
    say("")
    say(f"{'expected':14} {'captures':>8} {'right':>6} {'subject':>8} {'named':>6} {'kind':>5}")
    expected = {kind: [each for each in scores if each.truth.kinds[0] == kind] for kind in KINDS}
    for kind, of_kind in [*expected.items(), ("all", list(scores))]:
        if of_kind:
            counts = Counter[str]()
            for each in of_kind:
                counts["right"] += each.is_right
                counts["subject"] += {*each.subjects} <= {_RIGHT}
                counts["named"] += {*each.names} <= {_RIGHT}
                counts["kind"] += bool(each.kind_is_right)
            say(
                f"{kind:14} {len(of_kind):8} {counts['right']:6} {counts['subject']:8} {counts['named']:6} "
                f"{counts['kind'] if of_kind[0].kind else '-':>5}"
            )


def main(names: Sequence[str]) -> int:
    paths = {path.name.removesuffix(".pb.gz"): path for path in sorted(CAPTURES.glob("*.pb.gz"))}
    unknown = [name for name in (*names, *paths) if name not in TRUTHS or (name in names and name not in paths)]
    for name in unknown:
        print(f"{name}: no such capture, or nothing is known of it: see truths.py")
    report([score(paths[name]) for name in (names or paths) if name not in unknown])
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
