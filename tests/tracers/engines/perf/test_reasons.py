"""Meaning of perf's words."""

from __future__ import annotations

import pytest
from stallscope.tracers.engines.perf.reasons import first_line, reason

IGNORED = "'trace' not valid for hardware events. Ignoring.\n"


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("The sys_perf_event_open() syscall returned with 3 (No such process) for event (x)", "the target has ended"),
        ("perf: Segmentation fault\n-------- backtrace --------", "perf itself crashed"),
        ("Couldn't record tracing data.", "no room for its temporary files"),
        ("failed to open: Too many open files", "may not open as many files"),
        (f"{IGNORED}Error:\nsomething new", "perf record failed: something new"),
    ],
)
def test_reasons(said: str, cause: str) -> None:
    found = reason(said, "see there")
    assert cause in found.cause
    assert (found.remedy == "see there") is ("something new" in said)


def test_what_is_ignored_is_no_reason() -> None:
    assert first_line(IGNORED) == "it said nothing"
    assert first_line(f"{IGNORED}WARNING: only this") == "WARNING: only this"
    assert first_line("a\x1b[31m") == "a\\x1b[31m"
