"""The numbers of `thresholds` that decide what is said of a connection whose segments TCP has sent again."""

from __future__ import annotations

from .threshold_types import Threshold

__all__ = ["RESENDS_AFTER", "RESENT_MATTERS"]

RESENDS_AFTER = Threshold(
    0.2, "seconds", "TCP waits no shorter for an answer before it sends again (TCP_RTO_MIN of include/net/tcp.h)."
)
RESENT_MATTERS = Threshold(
    0.1, "share of the wait", "Segments that were sent again and explain less of it are those that any network loses."
)
