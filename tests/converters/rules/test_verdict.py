from __future__ import annotations

from dataclasses import replace

import pytest
from stallscope.converters.facts import wait_kinds
from stallscope.converters.facts.wait_objects import On
from stallscope.converters.facts.wait_sums import Place
from stallscope.converters.facts.waits import wait_of
from stallscope.converters.model import Frame, Module, Stack
from stallscope.converters.model.sites import Site
from stallscope.converters.model.wait_objects import PIPE, TCP, UDP, UNIX, ObjectEnd, WaitObject
from stallscope.converters.rules.finding import CPU, Finding
from stallscope.converters.rules.verdict import KINDS, Verdict, kind_of
from summary_profiles import CHILD, EXE, LIBC, MUTEX, POLL, POOL, READ, SECOND, SLEEP, kernel, user
from verdict_profiles import FSYNC, GIL, LOCK

POSTGRES = (*user(Module("/usr/lib/postgresql/15/bin/postgres"), "PostgresMain", "ProcSleep", "WaitLatch"),)
CUDA = Module("/usr/lib/x86_64-linux-gnu/libcudart.so.12")
SQLITE = Module("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0")


def calling(call: str, *functions: str) -> Stack:
    """The program makes a system call."""
    return (*user(EXE, "main"), *user(LIBC, call), *kernel(f"__x64_sys_{call}", *functions))


FAULT = (*user(EXE, "touch"), *(Frame(name, "kernel") for name in ("asm_exc_page_fault", "do_fault", "schedule")))


def finding_of(stack: Stack, state: str) -> Finding:
    wait = wait_of(stack, state)
    return Finding(wait.kind, ((1, 1),), 9, 10, (Place(state, Site(("main",), wait.kernel), wait),))


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        (LOCK, "lock"),
        (GIL, "gil"),
        ((*POSTGRES, *kernel("__x64_sys_epoll_wait", "ep_poll")), "database-lock"),
        (
            (*user(EXE, "save"), *user(SQLITE, "sqlite3InvokeBusyHandler"), *user(LIBC, "usleep"), *SLEEP[2:]),
            "database-lock",
        ),
        (calling("flock", "locks_lock_inode_wait"), "file-lock"),
        (calling("fcntl", "fcntl_setlk"), "file-lock"),
        ((*user(EXE, "main"), *user(CUDA, "cudaStreamSynchronize"), *POLL[2:]), "gpu"),
        ((*user(EXE, "main", "cudaStreamSynchronize"), *POLL[2:]), "events"),  # the program's own
        (POOL, "thread"),
        (READ, "peer"),
        (CHILD, "child"),
        (POLL, "events"),
        (SLEEP, "sleep"),
    ],
)
def test_interruptible_waits(stack: Stack, kind: str) -> None:
    assert kind_of(finding_of(stack, "interruptible")) == kind


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        ((*user(EXE, "main"), *user(LIBC, "ioctl"), *MUTEX), "driver"),  # a lock of the kernel
        (calling("ioctl", "nv_wait"), "driver"),
        (FSYNC, "io"),
        (calling("read", "folio_wait_bit"), "io"),
        (FAULT, "memory"),
        (calling("mmap", "reclaim_throttle"), "memory"),
        (calling("munmap", "wait_for_completion"), "memory"),
        ((Frame("kthread", "kernel"), Frame("kjournald2", "kernel")), "held"),
    ],
)
def test_uninterruptible_waits(stack: Stack, kind: str) -> None:
    assert kind_of(finding_of(stack, "uninterruptible")) == kind


@pytest.mark.parametrize("stack", [LOCK, FSYNC, READ])
def test_who_is_stopped_waits_for_nothing_else(stack: Stack) -> None:
    assert kind_of(finding_of(stack, "stopped")) == "stopped"


def test_the_longest_place_tells_which_lock_it_is() -> None:
    gil, lock = (finding_of(stack, "interruptible") for stack in (GIL, LOCK))
    assert kind_of(replace(gil, places=gil.places + lock.places)) == "gil"
    assert kind_of(replace(gil, places=lock.places + gil.places)) == "lock"


def test_without_a_place_nothing_more_is_known() -> None:
    assert kind_of(Finding("held", ((1, 1),), 9, 10)) == "held"
    assert kind_of(Finding(CPU, ((1, 1),), 9, 10)) == "cpu"


def test_all_kinds_of_waits_that_are_told_are_kinds_of_verdicts() -> None:
    told = {name: kind for name, kind in vars(wait_kinds).items() if isinstance(kind, str) and name.isupper()}
    assert set(told.values()) - KINDS.keys() == {"core", "work", "unknown"}
    assert all(KINDS.values())


def verdict(confidence: float, most: float = float("inf")) -> Verdict:
    finding = finding_of(LOCK, "interruptible")
    return Verdict("held-up", "lock", 10 * SECOND, confidence, frozenset((1,)), finding, most=most)


def test_the_score_is_what_is_believed_to_be_saved() -> None:
    assert verdict(1).score == 10 * SECOND
    assert verdict(0.25).score == 2.5 * SECOND
    assert verdict(1, most=3 * SECOND).score == 3 * SECOND
    assert verdict(0.25, most=3 * SECOND).score == 2.5 * SECOND


def test_the_kind_of_the_wait() -> None:
    assert verdict(1).wait_kind == "lock"
    assert Verdict("quota", "quota", 1, 1, frozenset((1,))).wait_kind == ""
    cpu = Finding(CPU, ((1, 1),), 9, 10)
    assert Verdict("busy", "cpu", 1, 1, frozenset(), cpu).wait_kind == "cpu"


def test_verdicts_that_only_another_one_caps_are_equal() -> None:
    assert verdict(1) == verdict(1, most=SECOND)
    assert verdict(1) != verdict(0.5)


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        (WaitObject(1, TCP, local="10.0.0.2:41000", remote="10.0.0.5:5432"), "network"),
        (WaitObject(1, UDP, local="[2001:db8::2]:41000", remote="[2001:db8::1]:53"), "network"),
        (WaitObject(1, TCP, remote="10.0.0.5:5432", ends=[ObjectEnd("postgres", 7)]), "peer"),  # in a container here
        (WaitObject(1, TCP, remote="127.0.0.1:5432"), "peer"),
        (WaitObject(1, TCP, remote="[::1]:5432"), "peer"),
        (WaitObject(1, TCP, remote="[::ffff:127.0.0.1]:5432"), "peer"),
        (WaitObject(1, TCP, local="10.0.0.2:80", listens=True), "peer"),
        (WaitObject(1, UNIX, name="/run/x"), "peer"),
        (WaitObject(1, PIPE), "peer"),
    ],
)
def test_another_host(what: WaitObject, kind: str) -> None:
    assert kind_of(replace(finding_of(READ, "interruptible"), on=On(what))) == kind


def test_what_is_no_wait_for_a_peer_is_not_for_another_host() -> None:
    on = On(WaitObject(1, TCP, remote="10.0.0.5:5432"))
    assert kind_of(replace(finding_of(POOL, "interruptible"), on=on)) == "thread"
