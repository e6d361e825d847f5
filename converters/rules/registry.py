"""All rules. A new one is a module with `RULE`, its id, and `find`, and one name here."""

from __future__ import annotations

from collections.abc import Callable

from ..facts.facts import Facts
from . import (
    all_wait,
    busy,
    calm,
    crowd,
    deadlock,
    ends_with,
    for_others,
    gil_main,
    held_up,
    herd,
    holder,
    idle,
    late_messages,
    late_rank,
    polling,
    pool_anew,
    processes_anew,
    quota,
    reclaim,
    slow_step,
    still,
    straggler,
    stuck_ranks,
    turns,
    unclear,
    workers,
)
from .verdict import Verdict

Find = Callable[[Facts], list[Verdict]]
RULES: dict[str, Find] = {
    module.RULE: module.find
    for module in (
        slow_step,
        late_rank,
        late_messages,
        deadlock,
        stuck_ranks,
        all_wait,
        gil_main,
        quota,
        crowd,
        pool_anew,
        processes_anew,
        herd,
        polling,
        reclaim,
        held_up,
        turns,
        for_others,
        workers,
        busy,
        calm,
        idle,
        holder,
        straggler,
        ends_with,
        still,
        unclear,
    )
}
"""Rules by their ids. Of verdicts with the same score, those of an earlier rule come first."""
