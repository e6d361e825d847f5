"""Words for messages between ranks."""

from __future__ import annotations

import pytest
from collective_profiles import late_messages, pipeline, profile_of
from stallscope.converters.model.collectives import UNKNOWN, MessagePair, Messages
from stallscope.converters.phrases import messages
from stallscope.converters.phrases.messages import exchanged
from stallscope.converters.rules.late_messages import LateMessages, find
from stallscope.converters.summary.judging import read
from summary_profiles import SECOND


def test_who_holds_up_others() -> None:
    (verdict,) = find(read(profile_of(late_messages())).facts)
    assert isinstance(verdict.detail, LateMessages)
    assert messages.late_messages(verdict.detail, 10 * SECOND) == (
        "Rank 1 of train (pid 11) holds up others by its messages: rank 2 (pid 12) waits 60.0 % of the time for 100 of "
        "them, rank 0 (pid 10) waits 50.0 % of the time until it takes 100 messages: before, it is blocked in train "
        "→ load_batch → read for 6.00 s more than the other 3."
    )


@pytest.mark.parametrize(
    ("pairs", "any_source", "told"),
    [
        ((MessagePair(0, 1, 1200, 4 << 20, 3, 4, 5),), 0, "1,200 messages (4 MiB)"),
        ((MessagePair(0, 1, 1, UNKNOWN, 3, 4, 5),), 0, "1 message"),
        (
            (MessagePair(0, 1, 5, 0, 0, 0, 0, 2),),
            1,
            "5 messages; of 3 messages it is not known who waited for whom",
        ),
        ((), 0, ""),
    ],
)
def test_what_was_sent(pairs: tuple[MessagePair, ...], any_source: int, told: str) -> None:
    assert exchanged(Messages(pairs, (None, None), any_source)) == told
    assert exchanged(None) == ""


def test_a_pipeline_has_a_sum() -> None:
    assert exchanged(pipeline().messages) == "300 messages (1.17 MiB)"
