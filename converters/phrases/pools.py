"""Words for pools of threads."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.units import count
from ..facts import thresholds
from ..facts.pools import Pool


def pools(found: Sequence[Pool], beside: bool = False) -> str:
    """``They are in pools: 8 threads made in start_readers → start_pool, 8 fed in serve → put.``; "" for none.
    ``beside``: other threads were told before. Unescaped (hostile)."""
    if not found:
        return ""
    most = thresholds.POOLS_NAMED
    told = [_told(pool, "" if i else " threads") for i, pool in enumerate(found)]
    more = [f"{count(len(found) - most)} more pools"] if len(found) > most else []
    return f"{'Others' if beside else 'They'} are in pools: {', '.join([*told[:most], *more])}."


def made_in(frames: Sequence[str]) -> str:
    """``in next_epoch → start_thread``; "" if the place is not known."""
    return f" in {' → '.join(frames)}" if frames else ""


def _told(pool: Pool, noun: str) -> str:
    number = count(pool.threads)
    if pool.made_in:
        return f"{number}{noun} made{made_in(pool.made_in)}"
    if pool.fed_in:
        return f"{number}{noun} fed{made_in(pool.fed_in)}"
    return f"{number} {pool.thread} threads" + (f" that run {pool.runs}" if pool.runs else "")
