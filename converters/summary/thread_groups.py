"""The threads of a row, by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..base.units import count
from ..facts import thresholds
from ..facts.identity import is_sum, number_of, processes_of, shown_id
from ..model import ThreadTimes
from ..phrases.words import listed
from .figures import Who


def who_of(members: list[ThreadTimes]) -> tuple[Who, ...]:
    """Groups by process and thread name, in order of ``members``."""
    groups: dict[tuple[str, str, bool], list[ThreadTimes]] = defaultdict(list)
    for times in members:
        groups[times.process, times.thread, times.pid == times.tid].append(times)
    return tuple(
        Who(process, thread, main, processes_of(found), number_of(found), _first_ids(found))
        for (process, thread, main), found in groups.items()
    )


def _first_ids(threads: list[ThreadTimes]) -> tuple[int, ...]:
    return tuple(sorted(times.tid for times in threads if not is_sum(times.tid))[: thresholds.TIDS_KEPT])


def groups_text(who: Sequence[Who], *, apart: bool = False) -> str:
    """The waiting threads, for a table: ``8 × demo/worker, 2 × feeder (main)``; numbered names are one: ``pool-*``.

    ``apart``: there are others of these names, and few threads are named by id.
    """
    kinds: dict[str, list[Who]] = {}
    for entry in who:
        name = f"{entry.process} (main)" if entry.main else f"{entry.process}/{entry.pattern}"
        # Thread 0 stands for lost time: nobody knows whose it is.
        name = "not known whose" if entry.tids == (0,) else name
        kinds.setdefault(name, []).append(entry)
    return listed([_group_text(name, entries, apart) for name, entries in kinds.items()])


def _group_text(name: str, entries: Sequence[Who], apart: bool) -> str:
    threads = sum(entry.threads for entry in entries)
    tids = sorted(tid for entry in entries for tid in entry.tids)
    if apart and threads == len(tids) <= thresholds.TOLD_APART:
        name += f" {', '.join(map(shown_id, tids))}"
    return f"{count(threads)} × {name}" if threads > 1 else name
