"""Names and numbers of ranks that meet, as the rest of the answer has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..model.collectives import UNKNOWN, Collectives


def with_names(of: Collectives, names: Mapping[int, str], ranks: Mapping[int, int]) -> Collectives:
    """``names`` and ``ranks`` (in the job) by pid. Ranks have their numbers in the job if all have one, no two the
    same, and those in the communicator are not known or it is a part of the job: all other sentences have these."""
    numbers = {ranks.get(each.pid, UNKNOWN) for each in of.ranks}
    are_unknown = all(each.rank == UNKNOWN for each in of.ranks)
    is_part = max(of.size, len(of.ranks)) < len(set(ranks.values()))
    fit = UNKNOWN not in numbers and len(numbers) == len(of.ranks)
    told = ranks if fit and (are_unknown or is_part) else {}
    found = (
        replace(each, process=names.get(each.pid) or each.process, rank=told.get(each.pid, each.rank))
        for each in of.ranks
    )
    return replace(of, ranks=tuple(found))
