"""Waits of functions of libraries."""

from __future__ import annotations

import pytest
from stallscope.converters.facts.call_kinds import ended_by


@pytest.mark.parametrize(
    ("call", "by"),
    [
        ("pthread_cond_timedwait", "thread"),
        ("pthread_clockjoin_ex", "thread"),
        ("new_sem_wait_slow64", "thread"),
        ("runtime.futex", "thread"),
        ("std::thread::join", "thread"),
        ("pthread_mutex_lock", ""),
        ("clock_nanosleep", "timer"),
        ("waitpid", "child"),
        ("epoll_wait", "events"),
        ("recvfrom", "peer"),
        ("sendmmsg", "peer"),
        ("sender", ""),
        ("write", "file"),
        ("fsync", ""),
        ("wait_for", ""),
    ],
)
def test_who_ends_a_wait_in(call: str, by: str) -> None:
    assert ended_by(call) == by
