"""Lines of /proc/locks, as fs/locks.c writes them, and others."""

from __future__ import annotations

import pytest
from stallscope.tracers.base.lock_table import MOST, blocked_in, lock_of

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
