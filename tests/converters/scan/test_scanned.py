from __future__ import annotations

import pytest
from stallscope.converters.model.remarks import Joined
from stallscope.converters.scan.report import report_of
from stallscope.converters.scan.scanned import scanned
from summary_profiles import SECOND, Tracee, empty


@pytest.mark.parametrize(
    ("joined", "expected"),
    [
        ([], "3 processes with 3 threads"),
        ([2], "2 processes, and 1 for which they wait, with 3 threads"),
        ([2, 3, 3], "1 process, and 2 for which it waits, with 3 threads"),
        ([9], "3 processes with 3 threads"),  # it has no row
        ([1, 2, 3], "3 processes with 3 threads"),
    ],
)
def test_processes_that_joined_are_told_apart(joined: list[int], expected: str) -> None:
    profile = empty()
    for pid in (1, 2, 3):
        Tracee(profile, pid, "app", pid, "app").run(10 * SECOND)
    profile.comments += [Joined("app", pid, SECOND) for pid in joined]
    assert scanned(report_of(profile)) == expected
