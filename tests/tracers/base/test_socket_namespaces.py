"""Other ends of connections in other namespaces, which are only numbers here: real ones are in tests/live/."""

from __future__ import annotations

import pytest
from stallscope.tracers.base import socket_namespaces
from stallscope.tracers.base.socket_namespaces import Namespaces

HERE, THERE = "10.0.0.1:40000", "10.0.0.2:80"
OURS, PID = 5, 1 << 30
"""A namespace, and a process of it, which has ended."""
Ends = dict[tuple[int, str, str], int]


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> Ends:
    """Inodes of sockets, by a process in their namespace and both ends: those of 6 to 8 are others than ours."""
    made: Ends = {}
    monkeypatch.setattr(socket_namespaces, "one_of_each", lambda *_: {OURS: 15, 6: 16, 7: 17, 8: 18})
    monkeypatch.setattr(socket_namespaces, "inode_of", lambda *ends: made.get(ends, 0))
    return made


def test_the_other_end_in_another_namespace(sockets: Ends) -> None:
    sockets[17, THERE, HERE] = 99
    known = Namespaces()
    assert known.other_end(OURS, HERE, THERE) == 0
    assert known.of(OURS, PID).other_end("tcp", HERE, THERE) == 99
    assert known.other_end(OURS, HERE, THERE) == 17
    assert known.other_end(6, HERE, THERE) == 0, "a connection of another namespace with the same ends"
    assert known.of(OURS, PID).other_end("tcp", HERE, "10.0.0.3:80") == 0


def test_containers_of_several_networks_may_have_the_same_addresses(sockets: Ends) -> None:
    sockets[16, THERE, HERE], sockets[18, THERE, HERE] = 99, 98
    known = Namespaces()
    assert known.of(OURS, PID).other_end("tcp", HERE, THERE) == 0
    assert known.other_end(OURS, HERE, THERE) == 0


def test_loopback_addresses_are_those_of_a_namespace_itself(sockets: Ends) -> None:
    sockets[16, "127.0.0.1:80", "127.0.0.1:9"] = 99
    assert Namespaces().of(OURS, PID).other_end("tcp", "127.0.0.1:9", "127.0.0.1:80") == 0


def test_there_may_be_too_many_to_look_at(sockets: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    sockets[18, THERE, HERE] = 99
    monkeypatch.setattr(socket_namespaces, "_LOOKUPS", 2)
    assert Namespaces().of(OURS, PID).other_end("tcp", HERE, THERE) == 0
    monkeypatch.setattr(socket_namespaces, "_LOOKUPS", 3)
    assert Namespaces().of(OURS, PID).other_end("tcp", HERE, THERE) == 99
