"""Words for the end of a chain of waits. Names are unescaped (hostile)."""

from __future__ import annotations

from ..facts import thresholds
from ..facts.wait_kinds import THREAD
from ..facts.who_can_end import ALONE
from ..rules.chain_ends import ENDS, HAS_LOCK, ONLY, Chain, Link
from .jobs import DOES, percent


def chain(found: Chain, who: str) -> str:
    """``Rank 1 waits for python loader.py (pid 12), which is asleep in produce → read for 99.9 % of its time.`` "" if
    nothing is known of those for whom it waits."""
    if not found.links:
        return ""
    text = who[:1].upper() + who[1:]
    for number, link in enumerate(found.links):
        text += f"{', which' if number else ''} waits for {_whom(link)}"
    last = found.links[-1]
    return f"{text}{', one of these' if found.is_circle else _does(last, found.nobody)}."


def without_others(evidence: str) -> str:
    """``no other traced thread of it runs Python``"""
    return f"no other {'thread of it was traced' if evidence == ALONE else 'traced thread of it runs Python'}"


def _whom(link: Link) -> str:
    process = f"{link.process} (pid {link.pid})"
    whom = f"its thread {link.thread} (tid {link.tid})" if link.thread else process
    if link.why == HAS_LOCK:
        return f"what {whom} has locked"
    if link.why == ENDS:
        return f"the end of {whom}"
    if link.why == ONLY and link.thread:
        return f"{whom}, the only other one that may end this"
    return whom


def _does(link: Link, nobody: str) -> str:
    if link.kind:
        what = "waiting" if nobody and link.kind == THREAD else DOES.get(link.kind, link.kind)
        where = f" in {' → '.join(link.frames)}" if link.frames else ""
        end = f"; {without_others(nobody)}" if nobody else ""
        return f", which is {what}{where} for {percent(link.share)} of its time{end}"
    if link.cores is not None and link.cores >= thresholds.PEER_RUNS:
        return f", which was not traced and uses {link.cores:.1f} cores"
    idle = link.cores is not None and link.cores < thresholds.PEER_HARDLY_RUNS
    return f", which was not traced{' and hardly runs' if idle else ''}"
