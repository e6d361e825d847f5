"""Teams: threads that a library for parallel work runs one function with, the thread that asked for it among them.

A team is known by what its threads run: below the frames of the library is the function that was given to it (the body
of an OpenMP loop, a task), or nothing but the library's own functions, as in OpenBLAS.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..model import Frame, Stack
from ..model.states import RUNNING
from . import thresholds
from .facts import Facts
from .frame_names import label
from .identity import kernel_id

_LIBRARIES = re.compile(
    r"lib(gomp|iomp5|omp|tbb|mkl_(intel_thread|gnu_thread|tbb_thread|rt)|openblas\w*|scipy_openblas\w*|blis(-mt)?|numexpr)"
    r"([-.]\w[-.\w]*)?\.so([.\d]*)"
)
"""Files of libraries that run work in threads of their own: GCC's, Intel's and LLVM's OpenMP, TBB, MKL, OpenBLAS, BLIS;
wheels add a hash to the name."""
_OUTLINED = re.compile(r"(?P<name>.+?)(\._omp_fn\.\d+|\.omp_outlined[\w.]*|\.extracted[\w.]*| \[clone.*\])+")
"""Names of the bodies of parallel regions: those that GCC and LLVM make of a function."""


class Team(NamedTuple):
    """Threads of a process that run one function for a library. Names are hostile."""

    pid: int
    work: str
    """Function that was given to the library; "" if its own functions are the work."""
    library: str
    """Name of the library's file, without a version."""
    threads: frozenset[int]
    """Thread ids, as in the facts."""
    samples: int


def teams_of(facts: Facts) -> tuple[Team, ...]:
    """Teams of all processes: those with most threads first. Empty if stacks of running threads were not kept."""
    if facts.whole:
        pids = {pid for pid, _ in facts.own}
        return tuple(team for team in facts.whole.once(teams_of) if team.pid in pids)
    if not facts.recorded:
        return ()
    found: dict[tuple[int, int], Counter[tuple[str, str]]] = defaultdict(Counter)
    known: dict[int, tuple[str, str] | None] = {}
    profile = facts.recorded.profile
    weight = profile.index("samples") if "samples" in [each.name for each in profile.value_types] else -1
    for sample in profile.samples:
        if weight < 0 or sample.label("state") != RUNNING:
            continue
        if id(sample.stack) not in known:
            known[id(sample.stack)] = work_of(sample.stack)
        pid, tid = sample.label("pid"), sample.label("tid")
        if (work := known[id(sample.stack)]) and isinstance(pid, int) and isinstance(tid, int):
            found[pid, tid][work] += sample.values[weight]
    return _together(facts, found)


def _together(facts: Facts, found: Mapping[tuple[int, int], Counter[tuple[str, str]]]) -> tuple[Team, ...]:
    members: dict[tuple[int, str, str], set[int]] = defaultdict(set)
    samples: Counter[tuple[int, str, str]] = Counter()
    for pid, tid in facts.own:
        works = found.get((kernel_id(pid), kernel_id(tid)))
        if works:
            # What a thread mostly runs is its team: a thread that leads one may help in others. In the library's own
            # functions it waits for its part of the work, too.
            (library, work), number = max(works.items(), key=lambda entry: (bool(entry[0][1]), entry[1], entry[0]))
            members[pid, library, work].add(tid)
            samples[pid, library, work] += number
    _join_unknown(members, samples)
    made = (
        Team(pid, work, library, frozenset(tids), samples[pid, library, work])
        for (pid, library, work), tids in members.items()
        if len(tids) >= thresholds.TEAM
    )
    return tuple(sorted(made, key=lambda team: (-len(team.threads), team.pid, team.library, team.work)))


def _join_unknown(members: dict[tuple[int, str, str], set[int]], samples: Counter[tuple[int, str, str]]) -> None:
    """Puts threads that were only seen in the library's own functions into the team of their process, if it has one."""
    for pid, library, work in list(members):
        if not work:
            named = [key for key in members if key[:2] == (pid, library) and key[2]]
            if len(named) == 1:
                members[named[0]] |= members.pop((pid, library, ""))
                samples[named[0]] += samples.pop((pid, library, ""))


def work_of(stack: Sequence[Frame] | Stack) -> tuple[str, str] | None:
    """The library and the function that it runs, of the innermost such library on a stack; None without one. The
    function is "" if the library's own ones are the work."""
    library, work = "", ""
    for frame in stack:
        if frame.kind == "kernel":
            break
        name = library_of(frame)
        if name:
            library, work = name, ""
        elif library and not work:
            work = _plain(label(frame))
    return (library, work) if library else None


def library_of(frame: Frame) -> str:
    """``libgomp``, for a frame of such a library; "" for others."""
    return _library(frame.module.path) if frame.module else ""


@lru_cache
def _library(path: str) -> str:
    found = _LIBRARIES.fullmatch(os.path.basename(path))
    return f"lib{found[1]}" if found else ""


def _plain(name: str) -> str:
    """The function that a body of a parallel region was made of: ``conv2d`` of ``conv2d._omp_fn.0``."""
    found = _OUTLINED.fullmatch(name)
    return found["name"] if found else name


def teams_json(teams: Sequence[Team]) -> list[dict[str, object]]:
    """Plain data for ``json.dumps``."""
    from ..base.text import json_text

    return [
        {
            "pid": kernel_id(team.pid),
            "work": json_text(team.work),
            "library": json_text(team.library),
            "tids": sorted(kernel_id(tid) for tid in team.threads),
            "samples": team.samples,
        }
        for team in teams
    ]
