"""The end of chains of waits."""

from __future__ import annotations

from dataclasses import replace

from file_lock_profiles import held, waits_for
from job_profiles import MPIRUN
from lock_profiles import lock
from stallscope.converters.facts.facts import Recorded
from stallscope.converters.facts.who_can_end import ALONE
from stallscope.converters.model import Frame, Module, Profile, Stack
from stallscope.converters.model.locks import OWNER, WAKER, LockThread
from stallscope.converters.model.neighbours import Neighbour
from stallscope.converters.model.origins import Ancestor, ProcessOrigin
from stallscope.converters.model.wait_objects import LABEL, PIPE, WRITES, ObjectEnd, WaitObject
from stallscope.converters.model.waits_for import WaitGraph
from stallscope.converters.rules.chain_ends import ENDS, HAS_LOCK, ONLY, OTHER_END, RUNNING, Chain, chain_of, doing
from stallscope.converters.summary.judging import read
from summary_profiles import CHILD, EXE, FUTEX, LIBC, READ, SECOND, SLEEP, WAIT_FOR_WORKER, Tracee, empty, user

PYTHON = Module("/usr/bin/python3.11")
TEN = 10 * SECOND
JOIN = (*user(EXE, "main", "finish"), *user(LIBC, "pthread_join"), *FUTEX)
LOCK = (*user(EXE, "main", "enter"), *user(LIBC, "pthread_mutex_lock"), *FUTEX)
GET = (
    Frame("main", "python", file="/t/job.py", line=4),
    Frame("Queue.get", "python", file="/usr/lib/python3.11/queue.py", line=171),
    *user(PYTHON, "PyThread_acquire_lock_timed"),
    *FUTEX,
)
RECEIVE = (
    Frame("Thread.run", "python", file="/usr/lib/python3.11/threading.py", line=975),
    Frame("handle_results", "python", file="/t/job.py", line=9),
    *READ[2:],
)


def main(stack: Stack, pid: int = 1, *, to: Profile | None = None) -> Profile:
    """Adds a process whose main thread waits for all of 10 s."""
    made = to or empty()
    Tracee(made, pid, f"app{pid}", pid, f"app{pid}").wait(stack, "interruptible", TEN, 1)
    return made


def on_pipe(made: Profile, *ends: int, number: int = 7) -> Profile:
    """The last wait is on a pipe, into which these processes write."""
    last = made.samples[-1]
    made.samples[-1] = last._replace(labels=tuple(sorted((*last.labels, (LABEL, number)))))
    made.objects.append(WaitObject(number, PIPE, does=WRITES, ends=[ObjectEnd(f"app{pid}", pid) for pid in ends]))
    return made


def of(made: Profile, thread: tuple[int, int] = (1, 1)) -> Chain:
    return chain_of(read(made).facts, thread)


def told(made: Profile) -> list[tuple[str, int, int, str]]:
    return [(each.why, each.pid, each.tid, each.kind) for each in of(made).links]


def test_the_other_end_of_a_pipe() -> None:
    made = main(SLEEP, 2, to=on_pipe(main(READ), 2))
    assert told(made) == [(OTHER_END, 2, 0, "sleep")]
    (link,) = of(made).links
    assert (link.process, link.share, link.frames) == ("app2", 1.0, ("main", "nap", "clock_nanosleep"))
    assert told(on_pipe(main(READ), 2, 3)) == [], "any of several may write"
    assert told(main(READ)) == [], "nobody knows who writes"


def test_an_end_that_was_not_traced() -> None:
    made = on_pipe(main(READ), 2)
    made.neighbours = [Neighbour("app2", 2, 9 * SECOND)]
    (link,) = of(made).links
    assert (link.pid, link.kind, link.cores) == (2, "", 0.9)


def test_over_several_processes_and_in_a_circle() -> None:
    made = on_pipe(main(READ, 2, to=on_pipe(main(READ), 2)), 3, number=8)
    main(SLEEP, 3, to=made)
    assert [pid for _, pid, *_ in told(made)] == [2, 3]
    circle = on_pipe(main(READ, 2, to=on_pipe(main(READ), 2)), 1, number=8)
    assert of(circle).is_circle and [pid for _, pid, *_ in told(circle)] == [2, 1]


def test_the_chain_has_an_end() -> None:
    """A sentence on a longer one cannot be read."""
    made = empty()
    for pid in range(1, 7):
        on_pipe(main(READ, pid, to=made), pid + 1, number=pid)
    assert [pid for _, pid, *_ in told(made)] == [2, 3, 4]


def test_the_only_thread_that_can_end_it() -> None:
    made = main(WAIT_FOR_WORKER)
    Tracee(made, 1, "app1", 5, "worker").run(TEN)
    assert told(made) == [(ONLY, 1, 5, RUNNING)]
    Tracee(made, 1, "app1", 6, "worker").run(TEN)
    assert told(made) == [], "either may"


def test_the_thread_that_is_joined() -> None:
    made = main(JOIN)
    Tracee(made, 1, "app1", 5, "worker").wait(SLEEP, "interruptible", TEN, 9)
    assert told(made) == [(ENDS, 1, 5, "sleep")]


def test_of_several_threads_in_python_the_one_that_waits_for_a_process() -> None:
    """The threads of a pool: one hands on what the workers have sent."""
    made = main(GET)
    Tracee(made, 1, "app1", 5, "tasks").wait(GET, "interruptible", TEN)
    Tracee(made, 1, "app1", 6, "results").wait(RECEIVE, "interruptible", TEN)
    main(SLEEP, 2, to=on_pipe(made, 2))
    assert told(made) == [(OTHER_END, 1, 6, "peer"), (OTHER_END, 2, 0, "sleep")]


def test_the_only_child() -> None:
    made = main(SLEEP, 2, to=main(CHILD))
    origin = ProcessOrigin(2, "app2", [Ancestor(1, "app1"), MPIRUN], "/opt/convert")
    made.origins = [origin]
    assert told(made) == [(ENDS, 2, 0, "sleep")]
    made = main(SLEEP, 3, to=made)
    made.origins = [origin, ProcessOrigin(3, "app3", [Ancestor(1, "app1")], "/opt/convert")]
    assert told(made) == [], "it may wait for either"


def test_who_has_the_lock_of_a_file() -> None:
    made = held(waits_for(1, 2), sleeper=2)
    assert told(made) == [(HAS_LOCK, 2, 0, "sleep")]
    made.file_locks = []
    assert told(made) == [], "nobody knows"


def test_who_has_a_lock_of_the_program() -> None:
    made = main(LOCK)
    for tid in (5, 6):
        Tracee(made, 1, "app1", tid, "saver").wait(SLEEP, "interruptible", TEN, 9)
    assert told(made) == [], "either thread may have it"
    facts = read(made).facts
    waiter, owner = LockThread("app1", "app1", 1, 1, TEN, 1), LockThread("app1", "saver", 1, 6, TEN, 1, OWNER)
    made.locks = [lock(waiters=[waiter], holders=[owner])]
    facts.recorded = Recorded(made, WaitGraph())
    assert [(each.why, each.tid) for each in chain_of(facts, (1, 1)).links] == [(HAS_LOCK, 6)]
    made.locks = [lock(waiters=[waiter], holders=[replace(owner, source=WAKER)])]
    assert chain_of(facts, (1, 1)).links == (), "who wakes others need not have it"


def test_nobody_can_end_it() -> None:
    assert of(main(GET)) == Chain(nobody=ALONE)
    assert of(main(GET, 2, to=on_pipe(main(READ), 2))).nobody == ALONE, "of the last one"
    assert of(main(SLEEP)) == Chain()


def test_what_a_thread_does_most() -> None:
    made = main(SLEEP)
    Tracee(made, 1, "app1", 5, "worker").wait(READ, "interruptible", 2 * SECOND).run(8 * SECOND)
    facts = read(made).facts
    assert doing(facts, (1, 5))[:3] == (RUNNING, 0.8, None)
    assert doing(facts, (1, 1)).frames == ("main", "nap", "clock_nanosleep")
