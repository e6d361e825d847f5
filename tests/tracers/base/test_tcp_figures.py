from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable

import pytest
from socket_answers import OTHER, OWN, answer
from stallscope.tracers.base.tcp_figures import TcpFigures, figures_of, parse_figures

FIGURES = TcpFigures(1, 1448, 20_500, 1000, 2000, 3, 20_000, 7, 125_000, 900, 80, 9)


def info(figures: TcpFigures = FIGURES, least: int = 20_000) -> bytes:
    """struct tcp_info, as far as it is read."""
    flags, segment, trip, acked, received, unsent, _, segments, rate, busy, full, small = figures
    made = struct.pack("=7xB8xI48xI48xQQ", flags, segment, trip, acked, received)
    return made + struct.pack("=8xIII4xQQQQ", unsent, least, segments, rate, busy, full, small)


def with_attributes(*attributes: tuple[int, bytes]) -> bytes:
    """An answer with these, each with its kind."""
    return answer() + b"".join(
        struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4) for kind, data in attributes
    )


def test_figures_of_an_answer() -> None:
    assert parse_figures(with_attributes((8, b"\1"), (2, info() + bytes(40))), OWN, OTHER) == FIGURES
    assert FIGURES.has_more
    assert not FIGURES._replace(unsent=0).has_more
    assert FIGURES._replace(unsent=0, flags=0xFE).has_more


def test_what_an_older_kernel_does_not_have_is_0() -> None:
    older = FIGURES._replace(rate=0, busy=0, window_limited=0, buffer_limited=0)
    assert parse_figures(with_attributes((2, info()[:160])), OWN, OTHER) == older


def test_no_round_trip_was_measured() -> None:
    found = parse_figures(with_attributes((2, info(least=(1 << 32) - 1))), OWN, OTHER)
    assert found == FIGURES._replace(least_round_trip=0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        answer(),
        answer(port=81) + struct.pack("=HH", 4, 2),
        with_attributes((8, b"\1")),
        answer() + struct.pack("=HH", 3, 8),
        answer() + b"\4",
    ],
)
def test_no_figures(data: bytes) -> None:
    assert parse_figures(data, OWN, OTHER) is None


def test_of_this_host(require: Callable[[bool, str], None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        with accepted:
            accepted.sendall(bytes(3000))
            left = 3000
            while left:
                left -= len(client.recv(left))
            own, other = (f"{each[0]}:{each[1]}" for each in (client.getsockname(), accepted.getsockname()))
            pairs = [(own, other), (other, own), (own, "192.0.2.1:9"), ("x", "y")]
            found = figures_of(os.getpid(), pairs)
            require(bool(found), "no sock_diag here")
            assert found.keys() == {*pairs[:2]}
            assert (found[own, other].received, found[other, own].acked) == (3000, 3000)
            assert found[own, other].segments_received >= 1
            assert 0 < found[own, other].least_round_trip < 1_000_000


def test_a_process_that_is_not_there() -> None:
    assert figures_of(1 << 30, [(OWN, OTHER)]) == {}
    assert figures_of(1 << 30, []) == {}
