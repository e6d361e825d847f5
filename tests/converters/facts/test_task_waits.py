"""Workers that wait in the middle of a task, and those that wait for one."""

from __future__ import annotations

import pytest
from idle_hosts import NETWORK, SLEEP, TIMER, Host
from stallscope.converters.facts.idle_evidence import idle_nodes
from stallscope.converters.facts.restricted import of_processes
from stallscope.converters.facts.wait_kinds import PEER, THREAD
from stallscope.converters.facts.wait_kinds import SLEEP as SLEEPS
from stallscope.converters.model import Frame, Profile, Stack
from stallscope.converters.model.waits_for import waits_for
from stallscope.converters.model.wakers import SEPARATOR, WAKER
from stallscope.converters.summary.judging import judgement_of, read
from summary_profiles import FUTEX, LIBC, kernel, user
from wait_graphs import Link

LIB = "/usr/lib/python3.11"
PACKAGES = f"{LIB}/site-packages"
JOB = "/srv/job.py"
RECV = (*user(LIBC, "recv"), *kernel("__x64_sys_recvfrom", "tcp_recvmsg", "sk_wait_data"))
PARKED = (*user(LIBC, "sem_wait"), *FUTEX)


def python(*functions: tuple[str, str], line: int = 1) -> Stack:
    """Frames of (file, function); ``line``: of the last one."""
    made = [Frame(name, "python", None, 0, file, 7) for file, name in functions]
    return (*made[:-1], made[-1]._replace(line=line))


def job(*names: str) -> list[tuple[str, str]]:
    return [(JOB, name) for name in names]


START = [(f"{LIB}/threading.py", f"Thread.{name}") for name in ("_bootstrap", "_bootstrap_inner", "run")]
GET = [(f"{LIB}/queue.py", "Queue.get"), (f"{LIB}/threading.py", "Condition.wait")]
PUT = [(f"{LIB}/queue.py", "Queue.put"), (f"{LIB}/threading.py", "Condition.notify")]
CONNECT = [(f"{PACKAGES}/sqlalchemy/engine/base.py", "Engine.connect")]
CLOSE = [(f"{PACKAGES}/sqlalchemy/engine/base.py", "Connection.close")]
EXECUTOR = [(f"{LIB}/concurrent/futures/thread.py", "_worker")]
ITEM = [(f"{LIB}/concurrent/futures/thread.py", "_WorkItem.run")]
SUBMIT = [(f"{LIB}/concurrent/futures/thread.py", "ThreadPoolExecutor.submit")]
HOLDS: Stack = (*python(*START, *job("worker", "handle", "enrich")), *RECV)
JOINS: Stack = (*python((JOB, "<module>"), (f"{LIB}/threading.py", "Thread.join")), *PARKED)
WAITS = [*START, *job("worker", "handle"), *CONNECT, *GET]
GIVES_BACK = [*START, *job("worker", "handle"), *CLOSE, *PUT]
HOLDER: Link = ("app-7", 8, "t8")
ELSEWHERE: Link = ("app-70", 70, "t70")
WAITERS = tuple(range(10, 18))
STILL_WAITING: Link = ("[still waiting]", 0, "")


def ended(host: Host, tid: int, own: Stack, ms: int, by: list[tuple[str, str]], *, waker: Link = HOLDER) -> None:
    """Adds a wait that this thread ends in these functions."""
    host.wait(7, tid, own, ms, waker)
    frames = tuple(Frame(name, WAKER, None, 0, file, 9) for file, name in reversed(by))
    woken = (*own, SEPARATOR, *user_code(waker), *frames, Frame(waker[0], WAKER))
    host.profile.samples[-1] = host.profile.samples[-1]._replace(stack=woken)


def user_code(waker: Link) -> Stack:
    """The frames of the C library and the kernel with which a thread wakes another one, innermost first."""
    return (Frame("try_to_wake_up", WAKER), Frame("sem_post", WAKER, LIBC)) if waker[1] else ()


def process(waits: list[tuple[str, str]], by: list[tuple[str, str]], waker: Link = HOLDER) -> Profile:
    """Eight threads wait here, for one that does ``by``, beside two that wait for a server, while main joins them."""
    host = Host().wait(7, 7, JOINS, 1000, STILL_WAITING)
    for tid in (8, 9):
        host.wait(7, tid, HOLDS, 970, NETWORK)
    for tid in WAITERS:
        ended(host, tid, (*python(*waits, line=tid), *PARKED), 700, by, waker=waker)
        host.wait(7, tid, (*python(*waits, line=tid), *PARKED), 299, STILL_WAITING)
    return host.made()


def in_task(profile: Profile) -> set[int]:
    roles = read(profile).facts.roles
    assert not roles.in_task & roles.idle and not roles.in_task & roles.by.keys()
    return {tid for _, tid in roles.in_task}


def idle(profile: Profile) -> set[int]:
    return {tid for _, tid in read(profile).facts.roles.idle}


def test_an_exhausted_pool_is_told_first_with_those_that_have_its_connections() -> None:
    profile = process(WAITS, GIVES_BACK)
    assert in_task(profile) == set(WAITERS) and not idle(profile)
    first = judgement_of(profile)[1].first
    assert first and first.finding and first.cause
    assert first.finding.kind == THREAD and {tid for _, tid in first.finding.threads} == set(WAITERS)
    assert first.cause.kind == PEER and {tid for _, tid in first.cause.threads} <= {8, 9}


def test_who_has_what_they_wait_for_is_not_idle_either() -> None:
    """A thread that sleeps in steady intervals is, unless somebody waits for it who wants to get on."""
    profile = process(WAITS, GIVES_BACK)
    host = Host()
    host.profile.samples = [sample for sample in profile.samples if sample.label("tid") != 8]
    host.wait(7, 8, (*python(*START, *job("worker", "handle", "call")), *SLEEP[2:]), 980, TIMER, each=49)
    held = host.made()
    assert in_task(held) == set(WAITERS) and not idle(held)
    first = judgement_of(held)[1].first
    assert first and first.cause and first.cause.kind == SLEEPS and first.cause.threads == ((7, 8),)


def test_they_are_among_the_facts_of_their_process() -> None:
    facts = read(process(WAITS, GIVES_BACK)).facts
    assert of_processes(facts, {7}).roles == facts.roles
    assert not of_processes(facts, {8}).roles.in_task


def test_they_are_not_idle_in_a_graph_either() -> None:
    for profile, number in ((process(WAITS, GIVES_BACK), 0), (process(WAITS, [*START, *job("feed"), *PUT]), 8)):
        assert len(idle_nodes(profile, waits_for(profile))) == number


def test_a_task_that_an_executor_runs() -> None:
    """The program's function is the outermost one of its own, but a library has called it."""
    task = [*START, *EXECUTOR, *ITEM, *job("handle")]
    assert in_task(process([*task, *CONNECT, *GET], [*task, *CLOSE, *PUT])) == set(WAITERS)


@pytest.mark.parametrize(
    ("waits", "by"),
    [
        pytest.param([*START, *EXECUTOR, *GET], [*START, *EXECUTOR, *ITEM, *job("task"), *SUBMIT, *PUT], id="executor"),
        pytest.param([*START, *job("loop"), *GET], [*START, *job("loop", "task"), *PUT], id="loop of its own"),
        pytest.param([*START, *job("worker", "handle"), *GET], [*START, *job("feed"), *PUT], id="who hands over tasks"),
        pytest.param([*START, *job("worker", "fetch"), *GET], [*START, *job("worker", "task"), *PUT], id="other task"),
        pytest.param(WAITS, [*job("worker", "handle"), *CLOSE, *PUT], id="other begin"),
        pytest.param(
            [*START, *EXECUTOR, *ITEM, *CONNECT, *GET], [*START, *EXECUTOR, *ITEM, *CLOSE, *PUT], id="library"
        ),
        pytest.param(WAITS, [], id="no stack"),
    ],
)
def test_workers_that_wait_for_a_task(waits: list[tuple[str, str]], by: list[tuple[str, str]]) -> None:
    profile = process(waits, by)
    assert not in_task(profile)
    assert idle(profile) == set(WAITERS)
    first = judgement_of(profile)[1].first
    assert first and {tid for _, tid in first.finding.threads if first.finding} == {8, 9}


def test_functions_of_another_process() -> None:
    """Forks have the same functions."""
    assert not in_task(process(WAITS, GIVES_BACK, ELSEWHERE))


def test_a_file_of_another_name_is_another_function() -> None:
    assert not in_task(process(WAITS, [(f.replace("job", "other"), name) for f, name in GIVES_BACK]))


@pytest.mark.parametrize(("given_back", "is_one"), [(510, True), (490, False)])
def test_most_of_the_time_is_ended_in_the_task(given_back: int, is_one: bool) -> None:
    host = Host().wait(7, 7, JOINS, 1000, STILL_WAITING).wait(7, 8, HOLDS, 900, NETWORK)
    stack = (*python(*WAITS), *PARKED)
    for tid in WAITERS:
        ended(host, tid, stack, given_back, GIVES_BACK)
        ended(host, tid, stack, 1000 - given_back, [*START, *job("feed"), *PUT])
    assert in_task(host.made()) == (set(WAITERS) if is_one else set())


def test_those_whose_waits_are_not_over_wait_for_the_same() -> None:
    host = Host().wait(7, 7, JOINS, 1000, STILL_WAITING).wait(7, 8, HOLDS, 900, NETWORK)
    stack = (*python(*WAITS), *PARKED)
    ended(host, 10, stack, 900, GIVES_BACK)
    host.wait(7, 10, stack, 99, STILL_WAITING).wait(7, 11, stack, 999, STILL_WAITING)
    assert in_task(host.made()) == {10, 11}


def test_nothing_is_known_if_no_wait_is_over() -> None:
    host = Host().wait(7, 7, JOINS, 1000, STILL_WAITING).wait(7, 8, HOLDS, 900, NETWORK)
    for tid in WAITERS:
        host.wait(7, tid, (*python(*WAITS), *PARKED), 999, STILL_WAITING)
    assert not in_task(host.made())


def test_waits_for_the_interpreter_lock_tell_nothing() -> None:
    """Each worker that wakes waits for a moment for what another one, in the same loop, has."""
    host = Host().wait(7, 7, JOINS, 1000, STILL_WAITING).wait(7, 8, HOLDS, 900, NETWORK)
    loop = [*START, *job("main", "loop"), *GET]
    take = (*python(*loop), *user(LIBC, "take_gil"), *user(LIBC, "pthread_cond_timedwait"), *FUTEX)
    for tid in WAITERS:
        host.wait(7, tid, (*python(*loop), *PARKED), 990, STILL_WAITING)
        ended(host, tid, take, 2, [*START, *job("main", "loop", "task")])
    assert not in_task(host.made())


def test_a_stack_without_a_separator_is_no_evidence() -> None:
    profile = process(WAITS, GIVES_BACK)
    profile.samples = [
        sample._replace(stack=tuple(frame for frame in sample.stack if frame != SEPARATOR))
        for sample in profile.samples
    ]
    assert not in_task(profile)
