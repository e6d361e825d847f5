"""The numbers of `thresholds` that decide what is said of connections, and of threads of libraries that poll them."""

from __future__ import annotations

from .threshold_types import Threshold

__all__ = ["PROGRESS_SAVES", "RESENDS_AFTER", "RESENT_MATTERS"]

RESENDS_AFTER = Threshold(
    0.2, "seconds", "TCP waits no shorter for an answer before it sends again (TCP_RTO_MIN of include/net/tcp.h)."
)
RESENT_MATTERS = Threshold(
    0.1, "share of the wait", "Segments that were sent again and explain less of it are those that any network loses."
)
PROGRESS_SAVES = Threshold(
    0.1,
    "confidence",
    "NCCL's threads poll as long as an operation is under way: what holds it up is elsewhere.",
)
