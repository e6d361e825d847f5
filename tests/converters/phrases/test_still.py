"""Words for processes that did not move."""

from __future__ import annotations

import pytest
from stallscope.converters.model import Profile
from stallscope.converters.phrases.still import did_not_move
from summary_profiles import POOL, READ, SECOND, Tracee, empty, facts_of
from verdict_profiles import whole_host


def processes(*states: str) -> Profile:
    """Processes that do not move, each in a place of its own name."""
    made = empty()
    Tracee(made, 1, "app", 1, "app").wait(READ, "interruptible", 9 * SECOND, 9).run(SECOND)
    for number, state in enumerate(states):
        name = "abcdef"[number]
        Tracee(made, 10 + number, name, 10 + number, name).wait(POOL, state, 10 * SECOND)
    return made


def told(made: Profile) -> str:
    return did_not_move(facts_of(made), [times.pid for times in made.threads if times.pid >= 10])


IDLE = "interruptible"


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((), ""),
        ((IDLE,) * 4, "4 processes did not move."),
        ((IDLE, "stopped", IDLE, IDLE), "4 processes did not move; stopped: b."),
        (("stopped",), "1 process did not move: a (stopped)."),
    ],
)
def test_of_a_whole_host(states: tuple[str, ...], expected: str) -> None:
    assert told(whole_host(processes(*states))) == expected


def test_of_chosen_processes_all_are_named() -> None:
    assert told(processes(*(IDLE,) * 4)) == "4 processes did not move: a, b, c, d."
