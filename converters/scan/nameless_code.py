"""Code that was made at run time and has no names: what would name it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection

from ..base.units import share
from ..facts import thresholds
from ..facts.facts import Facts

NAMELESS = "[anon]"
"""Name of frames in memory that no file is mapped to, and that no perf map names."""


def sentences(facts: Facts, pids: Collection[int]) -> list[str]:
    """Sentence on the process among these that runs such code for most of its samples, if that is much; the names are
    unescaped (hostile)."""
    whole: Counter[int] = Counter()
    nameless: Counter[int] = Counter()
    names: dict[int, Counter[str]] = defaultdict(Counter)
    for thread, runs in facts.runs.items():
        pid = thread[0]
        if pid in pids:
            names[pid][facts.threads[thread].process] += 1
            for run, total in runs.items():
                whole[pid] += total.samples
                nameless[pid] += total.samples if run.site.frames[-1:] == (NAMELESS,) else 0
    most = max(nameless, key=lambda pid: (nameless[pid], pid), default=0)
    if whole[most] < thresholds.FEW_SAMPLES or nameless[most] < thresholds.NAMELESS_CODE * whole[most]:
        return []
    ((name, _),) = names[most].most_common(1)
    much = share(nameless[most], whole[most])
    return [
        f"{much} of the samples of {name} are in code that was made at run time and has no names: its runtime can "
        "write them to /tmp/perf-PID.map (node --perf-basic-prof, python -X perf)."
    ]
