from __future__ import annotations

import pytest
from scans import scanned_host
from stallscope.converters.facts.event_loops import are_in_loops, is_in_loop, times_in_loops
from stallscope.converters.facts.restricted import of_processes
from stallscope.converters.model import Frame, Profile, Sample, Stack, ThreadTimes
from stallscope.converters.scan.report import report_of
from summary_profiles import LIBC, MS, SECOND, facts_of, kernel, user

ASYNCIO = "/usr/lib/python3.11/asyncio/base_events.py"
RECEIVES = (*user(LIBC, "recv"), *kernel("__x64_sys_recvfrom", "sock_recvmsg", "sk_wait_data"))
PID = 700


def python(*frames: tuple[str, str]) -> Stack:
    return tuple(Frame(name, "python", file=file, line=1) for file, name in frames)


LOOP = python(
    ("/srv/serve.py", "<module>"), (ASYNCIO, "BaseEventLoop.run_forever"), (ASYNCIO, "BaseEventLoop._run_once")
)
HANDLER = python(("/srv/api.py", "search"), ("/v/site-packages/requests/api.py", "get"))


@pytest.mark.parametrize(
    ("stack", "inside"),
    [
        ((*LOOP, *HANDLER, *RECEIVES), True),
        ((*LOOP, *python(("/usr/lib/python3.11/selectors.py", "select")), *RECEIVES), False),  # the loop itself
        ((*LOOP, *python(("/v/site-packages/httpcore/_async/pool.py", "close")), *RECEIVES), False),  # no own function
        ((*python(("/srv/serve.py", "<module>")), *HANDLER, *RECEIVES), False),  # no loop
        ((*python(("/srv/asyncio.py", "_run_once")), *HANDLER, *RECEIVES), False),  # the program's own
        ((*user(LIBC, "_run_once"), *HANDLER, *RECEIVES), False),
        ((), False),
    ],
)
def test_what_a_loop_has_called(stack: Stack, inside: bool) -> None:
    assert is_in_loop(stack) is inside


def served(part: float) -> Profile:
    """A scanned host beside a server that waits for 9 s, for this part of it in a handler, else in its loop."""
    profile = scanned_host(events=False)
    labels = {"pid": PID, "process": "serve", "tid": PID, "thread": "serve", "state": "interruptible"}
    of = tuple(sorted(labels.items()))
    selector = python(("/srv/other.py", "<module>"))
    for time, stack in ((part, (*LOOP, *HANDLER, *RECEIVES)), (1 - part, (*selector, *HANDLER, *RECEIVES))):
        if time:
            profile.samples.append(Sample(stack, (round(time * 9 * SECOND), 90, MS, 200 * MS, 0, 0, 0), of))
    waits = {"interruptible": 9 * SECOND}
    profile.threads.append(ThreadTimes(PID, "serve", PID, "serve", 10 * SECOND, SECOND, 0, waits, 90))
    return profile


@pytest.mark.parametrize(("part", "is_told"), [(1, True), (0.51, True), (0.49, False), (0, False)])
def test_most_of_the_waits_have_to_be_there(part: float, is_told: bool) -> None:
    facts = facts_of(served(part))
    assert times_in_loops(facts).get((PID, PID), 0) == round(part * 9 * SECOND)
    assert are_in_loops(facts, [(PID, PID)], 9 * SECOND) is is_told
    assert are_in_loops(of_processes(facts, (PID,)), [(PID, PID)], 9 * SECOND) is is_told


def test_the_row_of_the_process_says_so() -> None:
    told = {part: _told(served(part)) for part in (1, 0)}
    assert told[1].endswith("; while it waits, its event loop serves nobody else.")
    assert "event loop" not in told[0]


def _told(profile: Profile) -> str:
    return next(row.told for row in report_of(profile).processes if PID in row.pids)
