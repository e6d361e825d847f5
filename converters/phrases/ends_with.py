"""Words for those with whom waits end. Names are unescaped (hostile)."""

from __future__ import annotations

from ..base.units import count, duration, share
from ..facts import thresholds
from ..rules.ends_with import EndsWith
from .doing import doing


def ends_with(found: EndsWith, trace: int) -> str:
    """``92.4 % of what the 8 processes rank-* wait for others (6.6 % of their time) ends with …`` ``trace``: its length
    in ns; 0 if unknown."""
    base = f"{share(found.waits, found.wall)} of {'their' if found.waiting > 1 else 'its'} time"
    text = f"{share(found.time, found.waits)} of what {_waiting(found)} for others ({base}) ends with {_whom(found)}"
    text += f", in {' → '.join(found.frames)}" if found.frames else ""
    if trace:
        often = duration(found.time * 1_000_000_000 // trace)
        together = ", all together" if found.waiting > 1 else ""
        text += f": {often} each second{together}"
    does = found.doing
    if does and len(found.others) == 1:  # a process is one, however many threads it has
        does = does._replace(several=False)
    return f"{text}{doing(does)}."


def _waiting(found: EndsWith) -> str:
    if found.processes > 1:
        return f"the {count(found.processes)} processes {found.process} wait"
    if not found.thread:
        return f"{found.process} (pid {found.pid}) waits"
    if found.waiting > 1:
        return f"the {count(found.waiting)} {found.thread} threads of {found.process} wait"
    return f"the {found.thread} thread of {found.process} waits"


def _whom(found: EndsWith) -> str:
    if found.tid:
        return f"its own thread {found.name} (tid {found.tid})"
    if not found.others:
        return found.name
    known = [f"pid {', '.join(map(str, found.others))}"] if len(found.others) <= thresholds.PROCESSES_NAMED else []
    known += ["not traced"] if found.untraced else []
    note = f" ({', '.join(known)})" if known else ""
    number = f"{count(len(found.others))} processes " if len(found.others) > 1 else ""
    return f"{number}{found.name}{note}"
