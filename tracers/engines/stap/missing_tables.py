"""The remark on stacks that end where the module lacks the tables of a file."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from ....converters.base.text import printable
from ....converters.base.units import share
from ..named_rows import Place

_WORTH_A_REMARK = 0.01
_MOST_FILES = 3
_DELETED = " (deleted)"


def remarks(rows: Iterable[Mapping[Place, Sequence[int]]], files: Collection[str]) -> list[str]:
    """``rows``: times by place; ``files``: those without tables, at whose first frame a walk ends. Nothing is said if
    that is little of the time in user code."""
    known = {path.removesuffix(_DELETED): path for path in files} | {path: path for path in files}
    total, ends = 0, Counter[str]()
    for row in rows if files else ():
        for place, values in row.items():
            outermost = place.stack[0]
            if outermost.kind in ("native", "api"):
                total += values[0]
                if outermost.module and (path := known.get(outermost.module.path)):
                    ends[path] += values[0]
    told = [(path, time) for path, time in ends.most_common(_MOST_FILES) if time > _WORTH_A_REMARK * total]
    there = [each for each in told if not each[0].endswith(_DELETED)]
    gone = [each for each in told if each[0].endswith(_DELETED)]
    said = []
    if there:
        options = " ".join(f"--stap-symbols {shlex.quote(printable(path))}" for path, _ in there)
        said.append(f"{_shares(there, total)}, whose tables are not in the module: compile it anew with {options}")
    if gone:
        said.append(f"{_shares(gone, total)}: replaced since it was loaded; start the program anew")
    return said


def _shares(told: Sequence[tuple[str, int]], total: int) -> str:
    """``41.0 % of the time in user code is in stacks that end in x.so, 3.0 % in y.so``"""
    first, *rest = [(printable(os.path.basename(path)), share(time, total)) for path, time in told]
    said = f"{first[1]} of the time in user code is in stacks that end in {first[0]}"
    return ", ".join([said, *(f"{part} in {name}" for name, part in rest)])
