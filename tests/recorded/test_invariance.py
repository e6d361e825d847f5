"""What is said of a capture first stays when what does not matter changes: names, ids, the order of rows."""

from __future__ import annotations

import pytest
from changes import CHANGES, Changed
from kept import NAMES, Said, capture, said_of, said_of_capture
from stallscope.converters.facts.identity import kernel_id

POINTS = 0.05
"""The share may differ by so much."""
KNOWN: dict[tuple[str, str], str] = {}
"""By capture and change: why something else is said, as long as it is."""


def before(said: Said | None, changed: Changed) -> Said | None:
    """With the ids and names that were there before the change."""
    if said is None:
        return None
    cause = said.cause and (said.cause[0], _who(said.cause[1], changed))
    return said._replace(subject=_who(said.subject, changed), cause=cause)


def _who(threads: frozenset[object], changed: Changed) -> frozenset[object]:
    return frozenset(_one(each, changed) for each in threads)


def _one(each: object, changed: Changed) -> object:
    assert isinstance(each, tuple)
    if isinstance(each[0], str):
        return changed.names.get(each, each)
    return tuple(number - kernel_id(number) + changed.ids.get(kernel_id(number), kernel_id(number)) for number in each)


def _pairs() -> list[object]:
    pairs = [(name, change) for name in NAMES for change in CHANGES]
    marks = {pair: [pytest.mark.xfail(strict=True, reason=KNOWN[pair])] if pair in KNOWN else [] for pair in pairs}
    return [pytest.param(*pair, marks=marks[pair], id=": ".join(pair)) for pair in pairs]


@pytest.mark.parametrize(("name", "change"), _pairs())
def test_the_same_is_said(name: str, change: str) -> None:
    expected = said_of_capture(name)
    changed = CHANGES[change](capture(name))
    said = before(said_of(changed.profile), changed)
    assert (said is None) == (expected is None)
    if said and expected:
        assert (said.rule, said.kind, said.subject) == (expected.rule, expected.kind, expected.subject)
        assert _cause(said, changed) == _cause(expected, changed)
        assert abs(said.share - expected.share) <= POINTS


def _cause(said: Said, changed: Changed) -> object:
    """Without threads whose only wait may have been dropped: nothing is known of them."""
    return said.cause and (said.cause[0], said.cause[1] - changed.without_row)
