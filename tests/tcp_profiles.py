"""A client and a server on one host that wait on one TCP connection, each for a part of 10 s."""

from __future__ import annotations

from stallscope.converters.model import Module, Profile, ThreadTimes
from stallscope.converters.model.wait_objects import LABEL, TCP, ObjectEnd, WaitObject
from stallscope.converters.model.wait_objects import Link as Figures
from summary_profiles import LIBC, MS, SECOND, kernel, user
from wait_graphs import Link, chained, profile_of, with_extremes

NETWORK: Link = ("[softirq NET_RX]", 0, "")
TIMER: Link = ("[timer]", 0, "")
SERVER: Link = ("store-5", 5, "store")
TEN = 10 * SECOND
_ASKS = (*user(Module("/srv/client"), "main", "put"), *user(LIBC, "recv"), *kernel("sk_wait_data"))
_SERVES = (*user(Module("/srv/store"), "serve"), *user(LIBC, "epoll_wait"), *kernel("do_epoll_wait", "ep_poll"))
HERE, THERE = "127.0.0.1:40000", "127.0.0.1:11211"


def both(
    asks: float, serves: float, ended_by: Link = NETWORK, *, kind: str = TCP, remote: str = HERE, known: bool = True
) -> Profile:
    """``asks``, ``serves``: shares of time for which each waits. ``ended_by``: who ends the server's waits. ``remote``:
    the other end of the connection on which it waits."""
    times = {1: round(asks * TEN), 5: round(serves * TEN)}
    waits = (
        chained(1, 1, times[1], SERVER, process="client", own=_ASKS),
        chained(5, 5, times[5], ended_by, process="store", own=_SERVES),
    )
    profile = with_extremes(profile_of(*waits))
    profile.duration_ns = TEN
    profile.samples = [
        sample._replace(
            values=(sample.values[0], 100, 100, sample.values[0] // 90), labels=(*sample.labels, (LABEL, 30 + number))
        )
        for number, sample in enumerate(profile.samples)
    ]
    for pid, name in ((1, "client"), (5, "store")):
        profile.threads.append(
            ThreadTimes(pid, name, pid, name, TEN, TEN - times[pid], 0, {"interruptible": times[pid]})
        )
    profile.objects = [
        WaitObject(30, kind, local=HERE, remote=THERE, ends=[ObjectEnd("store", 5)] if known else []),
        WaitObject(31, kind, local=THERE, remote=remote, ends=[ObjectEnd("client", 1)]),
    ]
    return profile


FAR = Figures(THERE, 80 * MS, 81 * MS, 100, 9 * SECOND, 0, 1000, 12_500, 1448, has_more=False)
"""A connection of requests, each of which takes a round trip of 80 ms: those explain 8 s of 100 waits."""
NARROW = Figures(THERE, MS, 9 * MS, 9000, 9 * SECOND, 0, 18_000_000, 3_000_000, 1448, has_more=False)
"""One on which 2 MB/s are sent for 9 s, at most 3 MB/s of late, that wait in a queue for 8 ms."""


def share(x: float) -> Profile:
    """Both wait at once for at least this share of the time: the server waits for all but 100 ms of it."""
    return both(x + 100 * MS / TEN, (TEN - 100 * MS) / TEN)
