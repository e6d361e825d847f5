"""Ranks that hold up others by their messages. Its words: tests/converters/phrases/test_messages.py."""

from __future__ import annotations

from dataclasses import replace

import pytest
from collective_profiles import MEETINGS, late_messages, one_late, pipeline, profile_of
from stallscope.converters.facts import thresholds
from stallscope.converters.model.collectives import Collectives, MessagePair, Messages
from stallscope.converters.rules.late_messages import LateMessages, find
from stallscope.converters.rules.late_rank import WAITS
from stallscope.converters.summary.judging import read
from summary_profiles import MS, SECOND


def found(of: Collectives) -> LateMessages | None:
    details = [verdict.detail for verdict in find(read(profile_of(of)).facts)]
    late = [each for each in details if isinstance(each, LateMessages)]
    assert len(late) == len(details) <= 1
    return late[0] if late else None


def without_times(of: Collectives) -> Collectives:
    """Ranks of which it is not known what they do between messages."""
    assert of.messages
    return replace(of, messages=replace(of.messages, between=(None,) * 4))


def test_a_slow_stage_of_a_pipeline() -> None:
    """Rank 3 waits for rank 2, but that waits for rank 1, for which rank 0 waits, too."""
    late = found(late_messages())
    assert late and late.late.rank == 1
    assert [(each.sender, each.receiver) for each in (*late.receivers, *late.senders)] == [(1, 2), (0, 1)]
    assert late.excess and (late.excess.kind, late.excess.more) == (WAITS, MEETINGS * 60 * MS)


def test_the_first_stage() -> None:
    late = found(without_times(pipeline((5 * SECOND, 0), (5 * SECOND, 0), (5 * SECOND, 0))))
    assert late and late.late.rank == 0


def test_without_times_no_cause_is_told() -> None:
    late = found(without_times(late_messages()))
    assert late and late.excess is None


def test_two_that_wait_for_each_other_in_turn() -> None:
    pairs = (MessagePair(0, 1, 100, 0, 100, 4 * SECOND, 0), MessagePair(1, 0, 100, 0, 100, 4 * SECOND, 0))
    assert found(replace(late_messages(), messages=Messages(pairs, (None,) * 4))) is None


@pytest.mark.parametrize(("other", "is_one"), [(4.9, True), (5.1, False)])
def test_several_that_hold_up_others(other: float, is_one: bool) -> None:
    """Rank 0 has 5 s of the waits, rank 2 ``other``."""
    times = (5 * SECOND, 0), (0, 0), (round(other * SECOND), 0)
    late = found(without_times(pipeline(*times)))
    assert (late is not None and late.late.rank == 0) is is_one


@pytest.mark.parametrize("beside", [-0.1, 0.1])
def test_waits_that_cost_little(beside: float) -> None:
    """Two ranks with messages, in a trace of 10 s."""
    waited = round((thresholds.SIGNIFICANT * 2 + beside / 10) * 10 * SECOND)
    of = late_messages()
    messages = Messages((MessagePair(1, 2, 100, 0, 100, waited, 0),), (None,) * 4)
    assert (found(replace(of, messages=messages)) is not None) is (beside > 0)


@pytest.mark.parametrize("number", [thresholds.MEETINGS - 1, thresholds.MEETINGS])
def test_few_messages_tell_nobody(number: int) -> None:
    of = replace(late_messages(), messages=None)
    messages = Messages((MessagePair(1, 2, int(number), 0, 1, 6 * SECOND, 0),), (None,) * 4)
    assert (found(replace(of, messages=messages)) is not None) is (number >= thresholds.MEETINGS)


def test_without_messages() -> None:
    assert found(one_late()) is None
    assert found(replace(one_late(), messages=Messages((), (None,) * 4))) is None


@pytest.mark.parametrize(("share", "is_told"), [(1.05, True), (0.95, False)])
def test_what_the_rank_does_for_longer_explains_a_part_of_the_waits(share: float, is_told: bool) -> None:
    of = late_messages()
    assert of.messages
    waited = round(MEETINGS * 60 * MS / (thresholds.LATE_ITSELF * share))
    messages = Messages((MessagePair(1, 2, 100, 0, 100, waited, 0),), of.messages.between)
    assert (found(replace(of, messages=messages)) is not None) is is_told


def test_the_one_that_costs_most_comes_first() -> None:
    less, most = (without_times(pipeline((0, 0), (each * SECOND, 0), (0, 0))) for each in (5, 8))
    profile = replace(profile_of(less), collectives=[less, most])
    told = [verdict.detail.collectives.messages for verdict in find(read(profile).facts)]
    assert told == [most.messages, less.messages]
