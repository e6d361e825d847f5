"""Names and numbers of ranks that meet, as the rest of the answer has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..model.collectives import UNKNOWN, Collectives


def with_names(of: Collectives, names: Mapping[int, str], ranks: Mapping[int, int]) -> Collectives:
    """``names`` and ``ranks`` (in the job) by pid. A rank of which the number in the communicator is not known has that
    in the job, if all have one, and no two the same."""
    numbers = {ranks.get(each.pid, UNKNOWN) for each in of.ranks}
    are_unknown = all(each.rank == UNKNOWN for each in of.ranks)
    told = ranks if are_unknown and UNKNOWN not in numbers and len(numbers) == len(of.ranks) else {}
    found = (
        replace(each, process=names.get(each.pid) or each.process, rank=told.get(each.pid, each.rank))
        for each in of.ranks
    )
    return replace(of, ranks=tuple(found))
