"""The numbers of `thresholds` that decide what is said of connections, and of threads of libraries that poll them."""

from __future__ import annotations

from .threshold_types import Threshold

__all__ = [
    "FAR",
    "IN_FLIGHT",
    "LINK_EXPLAINS",
    "PROGRESS_SAVES",
    "QUEUES",
    "RESENDS_AFTER",
    "RESENT_MATTERS",
    "STEADY_RATE",
    "WINDOW_FULL",
]

RESENDS_AFTER = Threshold(
    0.2, "seconds", "TCP waits no shorter for an answer before it sends again (TCP_RTO_MIN of include/net/tcp.h)."
)
RESENT_MATTERS = Threshold(
    0.1, "share of the wait", "Segments that were sent again and explain less of it are those that any network loses."
)
FAR = Threshold(
    0.0005,
    "seconds",
    "Round trips that are shorter are those between neighbours, and of the time in which a host answers.",
)
LINK_EXPLAINS = Threshold(
    0.5, "share of the wait", "Round trips, or the link's rate, that explain less of it are not what it is mostly for."
)
IN_FLIGHT = Threshold(3, "segments", "Who has fewer under way sends messages, each of which takes a round trip.")
QUEUES = Threshold(2, "times the least round trip", "What takes no longer does not wait for what was sent before it.")
STEADY_RATE = Threshold(
    3,
    "times the mean rate",
    "The highest rate of many may be so much higher; who has moved still more at once waits for something else.",
)
WINDOW_FULL = Threshold(
    0.1,
    "share of the time of sending",
    "A rate is the link's if whoever reads keeps up; a slow one fills the window for a part of the time at least.",
)
PROGRESS_SAVES = Threshold(
    0.1,
    "confidence",
    "NCCL's threads poll as long as an operation is under way: what holds it up is elsewhere.",
)
