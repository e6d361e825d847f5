"""Jobs and their ranks in words. Names are unescaped (hostile)."""

from __future__ import annotations

from ..base.units import count, plural, share
from ..facts.identity import shown_id
from ..facts.jobs import CREATION, Job, Rank
from ..facts.ranks import named
from ..facts.wait_functions import COLLECTIVE
from ..facts.wait_kinds import CHILD, EVENTS, HALTED, HELD, LOCK, PEER, SLEEP, THREAD, UNKNOWN
from ..model.origins import MEMORY
from ..rules.rank_states import RUNNABLE, RUNNING, RankStates
from ..rules.straggler import Excess, Straggler
from ..rules.verdict import DATABASE_LOCK, DRIVER, FILE_LOCK, GIL, GPU, IO, NETWORK, POLLING, SLOW_LOADER
from ..rules.verdict import MEMORY as PAGES

DOES = {
    RUNNING: "on a core",
    RUNNABLE: "waiting for a core",
    COLLECTIVE: "waiting for other ranks",
    GPU: "waiting for the GPU",
    LOCK: "waiting for a lock",
    DATABASE_LOCK: "waiting for a lock of a database",
    FILE_LOCK: "waiting for a lock on a file",
    GIL: "waiting for the GIL",
    DRIVER: "blocked in a driver",
    IO: "blocked in I/O",
    PAGES: "blocked in page faults",
    HELD: "blocked in the kernel",
    PEER: "waiting for another process",
    NETWORK: "waiting for another host",
    SLOW_LOADER: "waiting for its data loader",
    CHILD: "waiting for a process to end",
    THREAD: "waiting for another thread",
    EVENTS: "waiting for events",
    SLEEP: "asleep",
    POLLING: "asleep again and again",
    HALTED: "stopped",
    UNKNOWN: "blocked",
}
"""Words for what a rank does, by its state or the kind of a wait."""
SOURCES = {
    MEMORY: "numbers from the environment in their memory",
    CREATION: "numbers by the order in which they were started",
}
"""Sources of numbers that are worth a word."""
_PARTS = 1_000_000


def percent(part: float) -> str:
    """``12.3 %``"""
    return share(round(part * _PARTS), _PARTS)


def rank_name(rank: Rank) -> str:
    """``rank 3 (pid 4711, GPU 3)``"""
    gpu = f", GPU {rank.gpus}" if rank.gpus else ""
    return f"rank {rank.number} (pid {shown_id(rank.pid)}{gpu})"


def straggler(found: Straggler) -> str:
    """``Rank 3 (pid 4711, GPU 3) keeps the other 7 ranks waiting: …``"""
    late = " and ".join(map(rank_name, found.late[:2]))
    more = len(found.late) - 2
    late += f" and {plural(more, 'other')}" if more > 0 else ""
    number = found.ranks - len(found.late)
    keeps = "keeps" if len(found.late) == 1 else "keep"
    excess, first = found.excess, f"rank {found.late[0].number}"
    ended = "" if found.ended is None else f"; {percent(found.ended)} of their waits for ranks end with it"
    workers, whom = "", "a lock on a file" if found.for_lock else "ranks"
    if found.workers:
        number_of = plural(len(found.late[0].workers), "worker")
        workers = f"; its {number_of}: {percent(found.workers.share)} {_does(found.workers)}"
    return (
        f"{late[:1].upper()}{late[1:]} {keeps} the other {number} ranks waiting: they wait for {whom} for "
        f"{percent(found.others_wait)} of their time (median), {first} for {percent(found.waits)}{ended}. Meanwhile "
        f"{first} is for {percent(excess.share)} of its time {_does(excess, usual=True)}"
        f"{workers}."
    )


def _does(excess: Excess, *, usual: bool = False) -> str:
    """``asleep in load_shard → nanosleep (70.1 % there; the others: 1.0 %)``. ``usual``: with what the others do."""
    what, where = DOES.get(excess.kind, excess.kind), " → ".join(excess.frames)
    is_part = where and excess.in_place < _ALL * excess.share
    notes = [f"{percent(excess.in_place)} there"] if is_part else []
    notes += [f"the others: {percent(excess.usual)}"] if usual else []
    told = f" ({'; '.join(notes)})" if notes else ""
    return f"{what} in {where}{told}" if where else f"{what}{told}"


_ALL = 0.95


def job_name(job: Job, program: str) -> str:
    """``Job of 8 ranks of train.py (0-7 of 16), started by torchrun (4700)``"""
    numbers = named(job.pids, {rank.pid: rank.number for rank in job.ranks}).partition(" ")[2]
    of = f" of {count(job.size)}" if job.size and job.size != len(job.ranks) else ""
    source = next(filter(None, (SOURCES.get(rank.source) for rank in job.ranks)), "")
    workers = sum(len(rank.workers) for rank in job.ranks)
    more = [
        f"with {plural(workers, 'worker')}" if workers else "",
        f"started by {job.launcher.process} ({job.launcher.pid})" if job.launcher else "",
        source,
    ]
    told = "".join(f", {each}" for each in more if each)
    return f"Job of {plural(len(job.ranks), 'rank')} of {program} ({numbers}{of}){told}"


def alike(states: RankStates) -> str:
    """``all alike: 61.0 % on a core, 30.1 % waiting for other ranks``"""
    told = [f"{percent(part)} {DOES.get(kind, kind)}" for kind, part in states.medians().items() if part > 0]
    return f"all alike: {', '.join(told[:_TOLD])}" if told else "all alike"


_TOLD = 3


def unlike(states: RankStates) -> str:
    """``not alike: 0.6 % (rank 1) to 86.8 % (rank 0) of their time on a core``; "" if they are alike."""
    found = states.unlike()
    if found is None:
        return ""
    kind, *extremes = found
    numbers = {id(times): rank.number for rank, times in zip(states.job.ranks, states.times, strict=True)}
    least, most = (f"{percent(each.share(kind))} (rank {numbers[id(each)]})" for each in extremes)
    return f"not alike: {least} to {most} of their time {DOES.get(kind, kind)}"
