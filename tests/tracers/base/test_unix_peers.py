from __future__ import annotations

import os
import socket
import struct

import pytest
from stallscope.tracers.base.unix_peers import parse_peer, peer_of


def test_the_other_end_of_a_pair() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        inodes = [os.fstat(each.fileno()).st_ino for each in (ours, theirs)]
        if not peer_of(os.getpid(), inodes[0]):
            pytest.skip("the kernel has no CONFIG_UNIX_DIAG")
        assert peer_of(os.getpid(), inodes[0]) == inodes[1]
    assert peer_of(os.getpid(), inodes[0]) == 0
    assert peer_of(1 << 30, inodes[0]) == 0


ANSWER = struct.pack("=IHHII", 48, 20, 0, 1, 0) + bytes(16)


@pytest.mark.parametrize(
    ("data", "peer"),
    [
        (ANSWER + struct.pack("=HHI", 8, 2, 77), 77),
        (ANSWER + struct.pack("=HHI", 7, 1, 1) + struct.pack("=HHI", 8, 2, 77), 77),
        (ANSWER + struct.pack("=HHI", 8, 1, 77), 0),
        (ANSWER + struct.pack("=HHI", 0, 2, 77), 0),
        (ANSWER + struct.pack("=HH", 8, 2), 0),
        (ANSWER, 0),
        (ANSWER[:20], 0),
        (struct.pack("=IHHII", 48, 2, 0, 1, 0) + bytes(16) + struct.pack("=HHI", 8, 2, 77), 0),
        (b"", 0),
    ],
)
def test_answers(data: bytes, peer: int) -> None:
    assert parse_peer(data) == peer
