"""Waits on a connection, by the quantity that a threshold is compared with; and collectives."""

from __future__ import annotations

from dataclasses import replace

import nccl_profiles
import tcp_profiles
from collective_pins import PINS as COLLECTIVES
from collective_pins import Pin
from stallscope.converters.facts.links import explains
from stallscope.converters.summary.summarize import summarize
from summary_profiles import MS, SECOND


def is_told(number: int, waits: float, unanswered: float = 0.0) -> bool:
    """Whether it is told that so many segments were sent again while one waits for so many seconds for its peer, in
    ``unanswered`` of which there was no answer."""
    profile = tcp_profiles.both(waits / 10, 0.1)
    for each in profile.objects:
        each.retransmissions, each.unanswered = number, round(unanswered * SECOND)
    return "sent again" in " ".join(summarize(profile).answer)


def outweighs(x: float) -> bool:
    """Whether a wait for so large a part of the trace is told before a thread of NCCL that polls all the time."""
    profile = nccl_profiles.beside_a_wait(nccl_profiles.POLLS, x)
    return "waiting for the GPU" in summarize(profile).answer[0]


def is_far(trip: float) -> bool:
    """Whether round trips of so many seconds are told as what one waits for."""
    trips = round(trip * SECOND)
    return explains([replace(tcp_profiles.FAR, round_trip=trips)], 100 * trips, 100, trips) is not None


def is_slow(**changes: float) -> bool:
    """Whether a link is told as what one waits for, for 9 s. ``changes``: of its figures."""
    link = replace(tcp_profiles.NARROW, **{name: round(value) for name, value in changes.items()})
    return explains([link], 9 * SECOND, 100, SECOND) is not None


PINS = {
    **COLLECTIVES,
    "FAR": (Pin(0.0004999, 0.0005001, is_far),),
    # In flight: what 2 MB/s are in 9 ms is 18,000 bytes.
    "IN_FLIGHT": (Pin(2.99, 3.01, lambda x: is_slow(segment=18_000 / x)),),
    "LINK_EXPLAINS": (Pin(0.499, 0.501, lambda x: is_slow(busy=x * 9 * SECOND, sent=x * 18e6)),),
    "PROGRESS_SAVES": (Pin(0.099, 0.101, outweighs),),
    "QUEUES": (Pin(1.99, 2.01, lambda x: is_slow(smoothed=x * 5 * MS, round_trip=5 * MS)),),
    # Each explains a tenth of up to ten times as long as TCP waits before it sends again.
    "RESENDS_AFTER": (Pin(0.199, 0.201, lambda x: not is_told(4, 40 * x)),),
    "RESENT_MATTERS": (Pin(0.099, 0.101, lambda x: is_told(1, 9, 9 * x - 0.2)),),
    "STEADY_RATE": (Pin(2.99, 3.01, lambda x: not is_slow(rate=x * 2e6)),),
    "WINDOW_FULL": (Pin(0.099, 0.101, lambda x: not is_slow(window_full=x * 9 * SECOND)),),
}
