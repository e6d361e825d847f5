"""Words for what threads do for whom others wait. Names are unescaped (hostile)."""

from __future__ import annotations

from ..base.units import share
from ..rules.doing import ASLEEP, BLOCKED, IN_DEVICE, Doing


def doing(found: Doing | None) -> str:
    """The end of a sentence: ``; it is on a core for 90.0 % of its own time``; "" if nothing stands out."""
    if found is None:
        return ""
    much = share(found.part, found.whole)
    if found.kind == IN_DEVICE:
        return f"; for {much} of that, it waits for {found.name} itself"
    if found.kind == ASLEEP:
        return f"; for {much} of that, it sleeps itself, in {' → '.join(found.frames)}"
    whom, whose = ("they are", "their") if found.several else ("it is", "its")
    if found.kind == BLOCKED:
        ends = share(found.ends, found.part)
        return (
            f"; {whom} blocked for {much} of {whose} own time, and {ends} of that ends with {found.name} "
            f"(pid {found.pid})"
        )
    text = f"; {whom} on a core for {much} of {whose} own time"
    if found.frames:
        text += f", mostly in {' → '.join(found.frames)}"
    if found.runnable:
        text += f", and waiting for one for {share(found.runnable, found.whole)}"
    return text
