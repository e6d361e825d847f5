"""Says when a verdict held, if that was only in a part of the trace."""

from __future__ import annotations

from ..facts.facts import Facts
from ..facts.slices import Series, only_in, series_of
from ..facts.wait_sums import Thread
from ..model.slices import ThreadSlices
from ..phrases import slices
from ..rules.place_kinds import slice_kinds, threads_of
from ..rules.verdict import Verdict


def with_part(sentence: str, verdict: Verdict, facts: Facts) -> str:
    """``Nearly only from second 6.0 on: 40.1 % of the time of …``: the sentence of a verdict, and when it held. As it
    is, if that was not only a part of the trace, or is not known."""
    kinds, series = slice_kinds(verdict), series_of_threads(facts, threads_of(verdict))
    if not kinds or series is None or (found := only_in(series, kinds)) is None:
        return sentence
    return f"Nearly only {slices.part_of_trace(*found, (series.begin, series.end))}: {sentence}"


def series_of_threads(facts: Facts, threads: tuple[Thread, ...]) -> Series | None:
    """The slices of threads; those of all threads of a process that have none of their own, for such a one."""
    members: dict[Thread, ThreadSlices] = {}
    for pid, tid in threads:
        for key in ((pid, tid), (pid, 0)):
            if key in facts.slices:
                members[key] = facts.slices[key]
                break
    return series_of(members.values())
