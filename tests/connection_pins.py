"""Waits on a connection, by the quantity that a threshold is compared with; and collectives."""

from __future__ import annotations

import nccl_profiles
import tcp_profiles
from collective_pins import PINS as COLLECTIVES
from collective_pins import Pin
from stallscope.converters.summary.summarize import summarize
from summary_profiles import SECOND


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


PINS = {
    **COLLECTIVES,
    "PROGRESS_SAVES": (Pin(0.099, 0.101, outweighs),),
    # Each explains a tenth of up to ten times as long as TCP waits before it sends again.
    "RESENDS_AFTER": (Pin(0.199, 0.201, lambda x: not is_told(4, 40 * x)),),
    "RESENT_MATTERS": (Pin(0.099, 0.101, lambda x: is_told(1, 9, 9 * x - 0.2)),),
}
