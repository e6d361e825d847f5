"""Values of the environment that are the same in all ranks of a job, and in no other job of the host."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..model.origins import IDENTITIES, ProcessOrigin


def identities(origin: ProcessOrigin | None) -> list[Hashable]:
    """Values that all ranks of a job have, and no other job."""
    values = origin.variables if origin else {}
    return [names + tuple(values[name] for name in names) for names in IDENTITIES if all(map(values.get, names))]


def differ(origins: Sequence[ProcessOrigin]) -> bool:
    """Whether the environments of some tell that they are of different jobs."""
    for names in IDENTITIES:
        values = ([each.variables.get(name, "") for name in names] for each in origins)
        if len({tuple(each) for each in values if all(each)}) > 1:
            return True
    return False
