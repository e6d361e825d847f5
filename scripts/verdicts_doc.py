"""Writes docs/verdicts.md: rules, kinds of verdicts, dominance, all thresholds and limits, as the code has them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from pathlib import Path

from stallscope.converters.facts import thresholds
from stallscope.converters.rules.ranking import DOMINANCE
from stallscope.converters.rules.registry import RULES
from stallscope.converters.rules.verdict import KINDS

DOC = Path(__file__).resolve().parents[1] / "docs" / "verdicts.md"
_HEAD = "\n\n".join(
    [
        "# Verdicts",
        "What is judged of a trace, by which rules and numbers. `--json` has each verdict as data: `verdicts`. "
        "`scripts/verdicts_doc.py` writes this page from the code: do not edit it.",
        "A verdict has a rule, a kind, a subject (threads), the time that would be saved at most, a confidence, "
        "places, and often a cause: what those do who keep the subject waiting. Its score is time × confidence. The "
        "first sentence of an answer is the verdict with the highest score of those that no other one dominates; a "
        "second one follows if it is worth it. One whose score is within the noise of the first one's (`noise_least`, "
        "`noise_most`), and which tells of other threads or another place, is told as its equal: *About as much: …*\n",
    ]
)


def text() -> str:
    """The page."""
    rules = [(f"`{name}`", _docstring(find)) for name, find in sorted(RULES.items())]
    kinds = [(f"`{kind}`", told) for kind, told in KINDS.items()]
    dominance = [(each.rule, ", ".join(each.over), each.why) for each in DOMINANCE]
    numbers, limits = (
        [(f"`{name.lower()}`", f"{float(each):.4g}", each.unit, each.reason) for name, each in table.items()]
        for table in (thresholds.table(), thresholds.limits())
    )
    return "\n".join(
        [
            _HEAD,
            "## Rules",
            *_table(("Rule", "What it finds"), rules),
            "## Kinds",
            *_table(("Kind", "What it says"), kinds),
            "## What dominates what",
            "In this order. A dominated verdict counts less, is told in the other one's sentence, or is left out.",
            "",
            *_table(("Rule", "Over", "Why"), dominance),
            "## Thresholds",
            *_table(("Name", "Value", "Unit", "Why"), numbers),
            "## Limits",
            "The most that is told of something, shown in a table, or kept of it.",
            "",
            *_table(("Name", "Value", "Unit", "Why"), limits),
        ]
    )


def _docstring(find: object) -> str:
    module = sys.modules[find.__module__]
    told = inspect.cleandoc(module.__doc__ or "").split("\n\n")[0]
    return " ".join(told.split())


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [head, tuple("---" for _ in head), *rows]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]


if __name__ == "__main__":
    DOC.write_text(text())
