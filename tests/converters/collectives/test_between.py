"""Times of threads between their calls. Those between meetings: test_told.py."""

from __future__ import annotations

import numpy as np
from scheduling_traces import rows
from stallscope.converters.collectives.between import Between
from stallscope.converters.collectives.meetings import OPEN, Calls, Member
from stallscope.converters.model.scheduling import THREAD, Scheduling

TID = 10


def calls(*times: tuple[int, int, int]) -> Calls:
    """Begin, end, and begin of the wait of each."""
    began, done, waits = (np.array(column, np.int64) for column in zip(*times, strict=True))
    none = np.zeros(len(times), np.int64)
    return Calls(Member(TID, 0), began, done, none, done, none.astype(bool), waits)


def between(*parts: Calls) -> tuple[int, int] | None:
    """Number of times between calls, and their sum, of a thread that lives for 1,000 ns."""
    scheduling = Scheduling(1000, 0, threads=rows(THREAD, tid=[TID], tgid=[TID]), names=["train"])
    found = Between(scheduling).calls(TID, parts)
    return (found.count, found.wall) if found else None


def test_calls_that_wait_themselves() -> None:
    assert between(calls((100, 200, 100), (250, 300, 250)), calls((400, 500, 400))) == (2, 150)


def test_one_that_only_begins_takes_no_time() -> None:
    """Times from 100 to the wait at 300, and from its end at 400 to the next call."""
    assert between(calls((100, 400, 300), (450, 460, 450))) == (2, 250)


def test_one_of_which_no_wait_is_known() -> None:
    assert between(calls((100, 400, OPEN), (450, 460, 450))) == (1, 350)


def test_no_times_at_all() -> None:
    assert between(calls((100, 200, 100))) is None
    assert between(calls((100, OPEN, 100), (200, OPEN, 200))) is None
