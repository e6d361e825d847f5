"""Lines of /proc/locks, as fs/locks.c writes them, and others."""

from __future__ import annotations

import pytest
from stallscope.tracers.base import lock_table
from stallscope.tracers.base.lock_table import (
    MOST,
    Blocked,
    InTheWay,
    Lock,
    Refused,
    blocked_in,
    lock_of,
)

TABLE = b"""\
1: FLOCK  ADVISORY  WRITE 123 08:01:99 0 EOF
1: -> FLOCK  ADVISORY  WRITE 200 08:01:99 0 EOF
1:  -> FLOCK  ADVISORY  READ 201 08:01:99 0 EOF
2: POSIX  ADVISORY  WRITE 124 fe:0a:18446744073709551615 10 19
2: -> POSIX  ADVISORY  READ 202 fe:0a:18446744073709551615 0 EOF
3: OFDLCK ADVISORY  WRITE -1 00:30:7 0 0
3: -> OFDLCK ADVISORY  WRITE -1 00:30:7 0 0
4: LEASE  BREAKING  READ 125 00:30:8 0 EOF
4: -> LEASE  BREAKER   READ 203 00:30:8 0 EOF
5: POSIX  *NOINODE* WRITE 126 <none>:0 0 EOF
5: -> POSIX  ADVISORY  WRITE 204 00:30:8 0 EOF
"""


def test_who_waits_and_who_has_it() -> None:
    found = blocked_in(TABLE)
    assert [(each.waiter.pid, each.owner.pid, each.owner.kind) for each in found] == [
        (200, 123, "flock"),
        (201, 123, "flock"),
        (202, 124, "fcntl"),
        (0, 0, "OFD"),
        (203, 125, "lease"),
    ]
    assert found[0].owner[3:] == (8 << 20 | 1, 99, 0, 0)
    assert found[2].owner[1:] == ("write", 124, 0xFE << 20 | 10, (1 << 64) - 1, 10, 19)
    assert [each.waiter.access for each in found[:2]] == ["write", "read"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"FLOCK ADVISORY WRITE 1 08:01:99 0",  # too few
        b"FLOCK ADVISORY WRITE 1 08:01:99 0 EOF more",
        b"LOCK ADVISORY WRITE 1 08:01:99 0 EOF",
        b"FLOCK ADVISORY UNLCK 1 08:01:99 0 EOF",
        b"FLOCK ADVISORY WRITE one 08:01:99 0 EOF",
        b"FLOCK ADVISORY WRITE 99999999999999999999999 08:01:99 0 EOF",
        b"FLOCK ADVISORY WRITE 1 08:01 0 EOF",
        b"FLOCK ADVISORY WRITE 1 -8:01:99 0 EOF",
        b"FLOCK ADVISORY WRITE 1 0x:01:99 0 EOF",
        b"FLOCK ADVISORY WRITE 1 123456789:01:99 0 EOF",
        b"FLOCK ADVISORY WRITE 1 08:01:-9 0 EOF",
        b"FLOCK ADVISORY WRITE 1 08:01:99 -1 EOF",
        b"FLOCK ADVISORY WRITE 1 08:01:99 0 99999999999999999999999999",
        "FLOCK ADVISORY WRITE \u0663 08:01:99 0 EOF".encode(),
        b"FLOCK ADVISORY WRITE 1 08:01:\xb2 0 EOF",
    ],
)
def test_what_is_malformed_is_left_out(line: bytes) -> None:
    assert lock_of(line.split()) is None
    assert blocked_in(b"1: " + line + b"\n1: -> FLOCK  ADVISORY  WRITE 200 08:01:99 0 EOF\n") == []


def test_who_waits_without_an_owner() -> None:
    waiter = b": -> FLOCK  ADVISORY  WRITE 200 08:01:99 0 EOF\n"
    owner = b"1: FLOCK  ADVISORY  WRITE 123 08:01:99 0 EOF\n"
    assert blocked_in(b"1" + waiter) == []
    assert blocked_in(owner + b"2" + waiter) == []
    assert blocked_in(owner + (b"1" + waiter)[:-1]) == []  # cut off
    assert len(blocked_in(owner + b"1" + waiter)) == 1


def test_pids_that_are_none_of_ours() -> None:
    """Locks of another host, or of a process outside of the pid namespace, have such ones."""
    for pid in (b"0", b"-7", b"4194305"):
        lock = lock_of(b"FLOCK ADVISORY WRITE %b 08:01:99 0 EOF".replace(b"%b", pid).split())
        assert lock and lock.pid == 0


def test_very_many() -> None:
    owner = b"1: FLOCK  ADVISORY  WRITE 123 08:01:99 0 EOF\n"
    assert len(blocked_in(owner + 2 * MOST * b"1: -> FLOCK  ADVISORY  WRITE 200 08:01:99 0 EOF\n")) == MOST
    assert blocked_in(b"x" * (1 << 20)) == []
    assert blocked_in(b" " * (1 << 20) + b"\n") == []


HELD = b"""\
1: POSIX  ADVISORY  WRITE 124 fe:0a:7 120 120
1: -> POSIX  ADVISORY  WRITE 300 fe:0a:7 120 120
2: POSIX  ADVISORY  READ 125 fe:0a:7 123 123
3: FLOCK  ADVISORY  WRITE 126 fe:0a:7 0 EOF
4: OFDLCK ADVISORY  WRITE -1 fe:0a:7 200 EOF
5: POSIX  ADVISORY  WRITE 127 fe:0a:8 0 EOF
"""


def refused(kind: str, first: int, last: int, *, access: str = "write", pid: int = 200, inode: int = 7) -> Refused:
    return Refused(Lock(kind, access, pid, 0xFE << 20 | 10, inode, first, last), 3, 1000, pid)


def refused_in(text: bytes, requests: list[Refused]) -> list[Blocked]:
    return InTheWay(text, [each.wish for each in requests]).refused(requests)


@pytest.mark.parametrize(
    ("asked", "owner"),
    [
        (refused("fcntl", 120, 120), 124),
        (refused("fcntl", 100, 0), 124),
        (refused("fcntl", 121, 130), 125),
        (refused("fcntl", 121, 130, access="read"), 0),  # readers do not exclude each other
        (refused("fcntl", 121, 122), 0),  # between two locks
        (refused("flock", 0, 0), 126),
        (refused("OFD", 120, 120), 124),
        (refused("fcntl", 1 << 40, 0), 0),  # the kernel does not tell who has the lock of an open file
        (refused("fcntl", 120, 120, inode=9), 0),
    ],
)
def test_who_has_the_lock_that_was_refused(asked: Refused, owner: int) -> None:
    ((waiter, found, _),) = refused_in(HELD, [asked])
    assert (waiter, found.pid) == (asked.wish, owner)


def test_requests_of_who_has_the_lock_by_now_are_no_waits() -> None:
    assert refused_in(HELD, [refused("fcntl", 120, 120, pid=124)]) == []
    assert refused_in(b"1: FLOCK\nx\n\n", []) == []
    assert len(refused_in(HELD, [refused("flock", 0, 0, pid=pid) for pid in range(300, 310 + MOST)])) == MOST


UPGRADE = b"""\
1: POSIX  ADVISORY  WRITE 200 fe:0a:7 100 101
2: POSIX  ADVISORY  READ 200 fe:0a:7 102 600
3: POSIX  ADVISORY  READ 201 fe:0a:7 102 600
"""
"""Locks of a writer of SQLite's that commits, and of one who reads meanwhile."""


@pytest.mark.parametrize(
    ("asked", "owners"),
    [
        (refused("fcntl", 102, 600), [201]),  # its own lock is one to read
        (refused("fcntl", 101, 102), [201]),  # its own lock is for a part
        (refused("fcntl", 99, 101), [0]),
        (refused("fcntl", 102, 600, pid=201), [200]),
        (refused("fcntl", 100, 101), []),
        (refused("fcntl", 100, 100), []),
        (refused("fcntl", 300, 400, access="read"), []),
        (refused("fcntl", 600, 0, access="read"), [0]),
        (refused("OFD", 100, 101), [0]),  # a lock of the process is none of its open file
    ],
)
def test_who_has_a_lock_that_is_not_enough_waits(asked: Refused, owners: list[int]) -> None:
    assert [each.owner.pid for each in refused_in(UPGRADE, [asked])] == owners


READERS = b"""1: FLOCK  ADVISORY  READ 10 fe:0a:7 0 EOF
1: -> FLOCK  ADVISORY  WRITE 200 fe:0a:7 0 EOF
2: FLOCK  ADVISORY  READ 11 fe:0a:7 0 EOF
3: FLOCK  ADVISORY  READ 11 fe:0a:7 0 EOF
4: FLOCK  ADVISORY  READ 12 fe:0a:8 0 EOF
5: POSIX  ADVISORY  WRITE 13 fe:0a:7 0 EOF
"""


@pytest.mark.parametrize(
    ("blocked", "others"),
    [
        (blocked_in(READERS), 1),
        (refused_in(READERS, [refused("flock", 0, 0)]), 1),
        (refused_in(READERS, [refused("flock", 0, 0, inode=8)]), 0),
        (refused_in(READERS, [refused("fcntl", 0, 0)]), 0),
    ],
)
def test_how_many_others_have_locks_that_are_in_the_way(blocked: list[Blocked], others: int) -> None:
    assert blocked
    assert [each.others for each in InTheWay(READERS, [each.waiter for each in blocked]).with_others(blocked)] == [
        others
    ]


def locks_and_waiters(locks: int, waiters: int, *, step: int = 0) -> bytes:
    """Readers of a byte each, and writers who wait for the whole file, or for what begins ``step`` bytes later each."""
    lines = [
        b"%d: POSIX  ADVISORY  READ %d 08:01:77 %d %d" % (each, 1000 + each, each + 1, each + 1)
        for each in range(locks)
    ]
    lines += [
        b"%d: -> POSIX  ADVISORY  WRITE %d 08:01:77 %d EOF" % (locks - 1, 50000 + each, step * each)
        for each in range(waiters)
    ]
    return b"\n".join(lines) + b"\n"


def test_equal_wishes_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Lock] = []

    def is_in_the_way(lock: Lock, _: Lock) -> bool:
        compared.append(lock)
        return True

    monkeypatch.setattr(lock_table, "_is_in_the_way", is_in_the_way)
    blocked = blocked_in(text := locks_and_waiters(300, 200))
    requests = [Refused(each.waiter, 1, 1, 1) for each in blocked]
    ways = InTheWay(text, [each.waiter for each in blocked])
    assert {each.others for each in ways.with_others(blocked)} == {299}
    assert len(ways.refused(requests)) == 200
    assert len(compared) == 300
    assert ways.left_out == 0


def test_more_comparisons_than_there_is_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiters whose wishes are left out still wait, for an owner whom the kernel has told."""
    monkeypatch.setattr(lock_table, "_COMPARISONS", 1000)
    blocked = blocked_in(text := locks_and_waiters(300, 5, step=10))
    ways = InTheWay(text, [each.waiter for each in blocked])
    assert [each.others for each in ways.with_others(blocked)] == [299, 290, 280, 0, 0]
    assert ways.left_out == 2
    ways = InTheWay(text, [each.waiter for each in blocked])
    assert len(ways.refused([Refused(each.waiter, 1, 1, 1) for each in blocked])) == 3
    assert ways.left_out == 2
