from __future__ import annotations

import pytest
from stallscope.converters.facts.waits import wait_of
from stallscope.converters.model import Stack
from stallscope.converters.rules.place_kinds import kind_of_wait
from stallscope.converters.rules.verdict import KINDS
from summary_profiles import CHILD, POLL, READ, SLEEP, TOPK
from verdict_profiles import FSYNC, GIL, LOCK


@pytest.mark.parametrize(
    ("stack", "state", "kind"),
    [
        (FSYNC, "uninterruptible", "io"),
        (LOCK, "interruptible", "lock"),
        (GIL, "interruptible", "gil"),
        (TOPK, "uninterruptible", "driver"),
        (READ, "interruptible", "peer"),
        (SLEEP, "interruptible", "sleep"),
        (CHILD, "interruptible", "child"),
        (POLL, "interruptible", "events"),
    ],
)
def test_kinds_are_those_of_verdicts(stack: Stack, state: str, kind: str) -> None:
    assert kind_of_wait(wait_of(stack, state), state) == kind
    assert kind in KINDS
