"""Verdicts on a capture stay when what does not matter changes: names, ids, the order of rows, a few events."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from functools import cache

import pytest
from changes import CHANGES, SAME, Changed, shuffled
from kept import NAMES, Said, capture, said_of, said_of_capture
from stallscope.converters.facts.identity import kernel_id
from stallscope.converters.model import Profile
from stallscope.converters.summary.showing import answer_of, show

POINTS = 0.05
"""The share of the first verdict may differ by so much."""
KNOWN: dict[tuple[str, str], str] = {}
"""Reasons why something else is said first, by capture and change, as long as it is."""
KNOWN_BEHIND: dict[tuple[str, str], str] = {}
"""Reasons why verdicts after the first one differ, by capture and change."""


def pairs(changes: Collection[str], known: Mapping[tuple[str, str], str]) -> list[object]:
    """Captures and changes; those in ``known`` have to fail."""
    found = [(name, change) for name in NAMES for change in changes]
    marks = {pair: [pytest.mark.xfail(strict=True, reason=reason)] for pair, reason in known.items()}
    return [pytest.param(*pair, marks=marks.get(pair, []), id=": ".join(pair)) for pair in found]


@cache
def said_after(name: str, change: str) -> tuple[tuple[Said, ...], frozenset[object]]:
    """Verdicts after a change, with the ids and names that were there before; and the threads of which it has
    dropped a whole row."""
    changed = CHANGES[change](capture(name))
    return tuple(_before(said, changed) for said in said_of(changed.profile)), changed.without_row


def _before(said: Said, changed: Changed) -> Said:
    others = tuple((kind, _who(threads, changed)) for kind, threads in said.others)
    return said._replace(subject=_who(said.subject, changed), others=others)


def _who(threads: frozenset[object], changed: Changed) -> frozenset[object]:
    return frozenset(_one(each, changed) for each in threads)


def _one(each: object, changed: Changed) -> object:
    assert isinstance(each, tuple)
    if isinstance(each[0], str):
        return changed.names.get(each, each)
    return tuple(number - kernel_id(number) + changed.ids.get(kernel_id(number), kernel_id(number)) for number in each)


@pytest.mark.parametrize(("name", "change"), pairs(CHANGES, KNOWN))
def test_the_same_is_said_first(name: str, change: str) -> None:
    expected, (after, without_row) = said_of_capture(name), said_after(name, change)
    assert bool(after) == bool(expected)
    for said, of in zip(after[:1], expected[:1], strict=True):
        assert (said.rule, said.kind, said.subject) == (of.rule, of.kind, of.subject)
        assert _others(said, without_row) == _others(of, without_row)
        assert abs(said.share - of.share) <= POINTS


def _others(said: Said, without_row: frozenset[object]) -> object:
    """Verdicts without threads whose only wait may have been dropped: nothing is known of them."""
    return [(kind, threads - without_row) for kind, threads in said.others]


@pytest.mark.parametrize(("name", "change"), pairs(SAME, KNOWN | KNOWN_BEHIND))
def test_all_verdicts_are_the_same(name: str, change: str) -> None:
    assert said_after(name, change)[0] == said_of_capture(name)


def test_what_is_known_is_of_captures_and_changes_that_there_are() -> None:
    assert {name for name, _ in KNOWN | KNOWN_BEHIND} <= set(NAMES)
    assert {change for _, change in KNOWN} <= set(CHANGES)
    assert {change for _, change in KNOWN_BEHIND} <= set(SAME)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_rows_changes_no_character_of_the_answer(name: str) -> None:
    profile = capture(name)
    for as_json in (False, True):
        assert _shown(shuffled(profile, seed=3).profile, as_json) == _shown(profile, as_json)


def _shown(profile: Profile, as_json: bool) -> str:
    text = io.StringIO()
    show(answer_of(profile), text, as_json=as_json, whole=True)
    return text.getvalue()
