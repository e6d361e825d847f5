"""Times of processes that nobody has seen, with processes of the test and with made-up ones."""

from __future__ import annotations

import subprocess
import sys

import pytest
from stallscope.tracers.base import procfs
from stallscope.tracers.base.launch import Launch
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.eu_stack import unseen
from stallscope.tracers.engines.eu_stack.unseen import Unseen, matters

SHELL, CHILD, FRESH = 10, 11, 12
EARLY, LATE = 1, 1 << 62
SECOND = 1_000_000_000
Table = dict[int, tuple[int, int]]

BUSY = "import time\nwhile time.process_time() < 0.3: pass"
PARENT = f"""
import subprocess, sys
for line in sys.stdin:
    subprocess.run([sys.executable, "-c", {BUSY!r}])
    print("done", flush=True)
"""


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Table:
    """Begins of processes, and ns of what they have waited for: a process with a child, both before the trace."""
    found = {SHELL: (EARLY, 5 * SECOND), CHILD: (EARLY, 0)}
    monkeypatch.setattr(unseen, "_waited", lambda pid: unseen._Waited(*found[pid]) if pid in found else None)
    monkeypatch.setattr(procfs, "descendants", lambda pids: {CHILD} if SHELL in pids else set())
    return found


def test_what_a_process_has_waited_for_since_the_trace_began(table: Table) -> None:
    counted = Unseen(Scope(), None, {SHELL})
    assert counted.used({SHELL}) == 0
    table[SHELL] = (EARLY, 6 * SECOND)
    assert 0.9 * SECOND < counted.used({SHELL}) < SECOND, "both times may have been cut"
    table[FRESH] = (LATE, SECOND)
    assert 1.9 * SECOND < counted.used({SHELL, FRESH}) < 2 * SECOND
    assert counted.used({FRESH}) == SECOND
    table[FRESH] = (EARLY, SECOND)
    assert counted.used({FRESH}) == 0, "it is older than the trace, and was met later"


def test_a_process_that_was_there_before_the_trace_ends(table: Table) -> None:
    """The parent gets the time that its child had before."""
    counted = Unseen(Scope(), None, {SHELL})
    del table[CHILD]
    table[SHELL] = (EARLY, 60 * SECOND)
    counted.look({SHELL}, 7)
    assert counted.used({SHELL}) == 7, "traced ones that had ended before are taken off again"
    table[SHELL] = (EARLY, 62 * SECOND)
    counted.look({SHELL}, 8)
    assert 1.9 * SECOND < counted.used({SHELL}) < 2 * SECOND


def test_an_id_that_is_used_again(table: Table) -> None:
    counted = Unseen(Scope(), None, {SHELL})
    table |= {CHILD: (LATE, 0), SHELL: (EARLY, 60 * SECOND)}
    counted.look({SHELL}, 0)
    assert counted.used({SHELL}) == 0


@pytest.mark.parametrize("scope", [Scope(children=False), Scope(tids={SHELL})])
def test_scopes_without_what_processes_fork(table: Table, scope: Scope) -> None:
    counted = Unseen(scope, None, {SHELL})
    table[SHELL] = (EARLY, 60 * SECOND)
    assert counted.used({SHELL}) == 0


@pytest.mark.parametrize(
    ("missing", "seen", "expected"),
    [(0, 0, False), (-SECOND, 0, False), (9_000_000, 0, False), (SECOND, 0, True), (SECOND, 8 * SECOND, True),
     (SECOND, 10 * SECOND, False)],
)  # fmt: skip
def test_what_has_to_be_told(missing: int, seen: int, expected: bool) -> None:
    assert matters(missing, seen) is expected


def test_a_real_process() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as parent:
        assert parent.stdin
        assert parent.stdout

        def work() -> None:
            assert parent.stdin
            assert parent.stdout
            parent.stdin.write("\n")
            assert parent.stdout.readline() == "done\n"

        work()
        counted = Unseen(Scope(), None, {parent.pid})
        assert counted.used({parent.pid}) == 0
        work()
        assert counted.used({parent.pid}) > 200_000_000
        parent.stdin.close()


def test_a_command() -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
    launch = Launch([sys.executable, "-c", code])
    counted = Unseen(Scope(), launch, {launch.pid})
    assert counted.used({launch.pid}) == 0
    launch.go()
    launch.wait()
    assert launch.cpu_time
    assert 300_000_000 < counted.used(set()) <= launch.cpu_time
    counted.look(set(), 0)
    assert counted.used(set()) > 300_000_000, "it was there before the trace, and its time is known"
