"""Adds up on-CPU samples: per thread and place."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from ..model import Profile, Stack, ThreadTimes
from ..model.states import PREEMPTED, RUNNING
from .hot_sites import HotSite, hot_site
from .inner_function import Inner, Names, functions
from .wait_sites import Sites
from .wait_sums import Thread
from .waits import Waits

SAMPLED = {"samples"}
"""Columns of samples other than their weight."""


AT_LIMIT, FREES, SWAPS = "at-limit", "frees", "swaps"
_MEMORY = {
    "try_to_free_mem_cgroup_pages": AT_LIMIT,  # mm/vmscan.c, for a control group at its limit
    **dict.fromkeys(("try_to_free_pages", "try_to_compact_pages"), FREES),  # mm/vmscan.c, mm/compaction.c
    "do_swap_page": SWAPS,  # mm/memory.c
}


class Run(NamedTuple):
    """Place where a thread runs."""

    site: HotSite
    call: str
    """The system call that it is in, or the function of the C library that it called; "" if there is none."""
    gpu: str = ""
    """The function of CUDA that waits until the GPU has done something, as in `waits.Wait`; "" if there is none."""
    memory: str = ""
    """Work of the kernel there to get memory: `AT_LIMIT`, `FREES`, `SWAPS`; "" if it is nothing of these."""
    job: str = ""
    """The part of a training job, as in `waits.Wait`: it asks again and again whether it may go on."""
    operation: str = ""
    """The function of the library for that, or ``gpu``; "" if there is none, or if it is a script's."""
    polls: str = ""
    """The function of a library, as in `waits.Waits.polls`; "" if there is none."""


@dataclass(slots=True)
class RunSum:
    """Sums of samples. ``weight`` is the profile's first value."""

    weight: int = 0
    samples: int = 0
    inner: Inner = field(default_factory=dict)
    """See `inner_function`."""


Runs = dict[Thread, dict[Run, RunSum]]


def add_up_runs(profile: Profile, threads: dict[Thread, ThreadTimes]) -> Runs:
    """Sums of samples in state "running"; threads missing from ``threads`` are added, without times."""
    found: Runs = defaultdict(lambda: defaultdict(RunSum))
    runs_of = _Places()
    samples = profile.index("samples")
    for sample in profile.samples:
        labels = dict(sample.labels)
        if labels.get("state") != RUNNING:
            continue
        pid, tid = (number if isinstance(number := labels.get(key), int) else 0 for key in ("pid", "tid"))
        if (pid, tid) not in threads:
            process, name = str(labels.get("process", "?")), str(labels.get("thread", "?"))
            threads[pid, tid] = ThreadTimes(pid, process, tid, name, 0, 0, 0, {})
        run, inner = runs_of.of(sample.stack)
        total = found[pid, tid][run]
        total.weight += sample.values[0]
        total.samples += sample.values[samples]
        if inner:
            total.inner[inner] = total.inner.get(inner, 0) + sample.values[samples]
    return found


class _Places:
    """Cached by identity: samples share their stacks."""

    def __init__(self) -> None:
        self._sites, self._waits = Sites(), Waits()
        self._known: dict[int, tuple[Run, Names]] = {}

    def of(self, stack: Stack) -> tuple[Run, Names]:
        """The place of a stack, and its functions."""
        found = self._known.get(id(stack))
        if found is None:
            # What a preempted thread was in is what it ran.
            wait = self._waits.of(stack, PREEMPTED)
            site, (job, operation) = hot_site(stack, self._sites), self._waits.job(stack)
            run = Run(site, wait.call, wait.gpu, _memory(stack), job, operation or wait.gpu, self._waits.polls(stack))
            found = self._known[id(stack)] = run, functions(stack)
        return found


def _memory(stack: Stack) -> str:
    """See `Run.memory`: the innermost of the kernel's functions decides."""
    names = (frame.name for frame in reversed(stack) if frame.kind == "kernel")
    return next((_MEMORY[name] for name in names if name in _MEMORY), "")
