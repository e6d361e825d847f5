"""Sentences on the host by the quantity that a threshold is compared with. See pins.py."""

from __future__ import annotations

import tcp_profiles
from stallscope.converters.model import Profile, ThreadTimes, ValueType
from stallscope.converters.model.gpus import Gpu, GpuLimit
from stallscope.converters.model.pressure import HARD, SOFT, STOLEN, CoreThread, Interrupts, Pressure
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.model.sharing import SharedCall
from stallscope.converters.scan import interrupted
from stallscope.converters.scan.between import Between, told
from stallscope.converters.scan.contended import LOCK, Contended, lines
from stallscope.converters.scan.gpus import Gpus
from stallscope.converters.scan.host import host_of, sentences
from stallscope.converters.scan.interrupted import Core
from stallscope.converters.scan.outsiders import outsiders
from stallscope.converters.summary.sharing import Shared
from stallscope.converters.summary.summarize import summarize
from summary_profiles import SECOND

TEN = 10 * SECOND


def said(*parts: Pressure | Interrupts) -> tuple[str, ...]:
    """Sentences on a host with these pressures and interrupts."""
    made = Profile([ValueType("blocked", "nanoseconds")], duration_ns=TEN)
    made.pressure = [each for each in parts if isinstance(each, Pressure)]
    made.interrupts = [each for each in parts if isinstance(each, Interrupts)]
    return sentences(host_of(made, None))


def is_limited(x: float) -> bool:
    """Whether a GPU is told whose power cap holds in this share of 100 samples."""
    gpu = Gpu(0, "H100", 100, *[0] * 8, 0, 0, 0, 0, 0, [GpuLimit("power cap", round(100 * x))])
    return "limited by power cap" in " ".join(Gpus([gpu]).lines())


def is_own_shortage(resource: str, x: float) -> bool:
    """Whether a resource is short for a thread that waits for it for this share of the trace."""
    made = Profile([ValueType("blocked", "nanoseconds")], duration_ns=TEN)
    made.pressure = [Pressure(resource, 9 * SECOND, 0, TEN)]
    runnable, blocked = (round(x * TEN), 0) if resource == "cpu" else (0, round(x * TEN))
    made.threads = [ThreadTimes(1, "a", 1, "a", TEN, 0, runnable, {"uninterruptible": blocked})]
    return bool(sentences(host_of(made, None)))


def is_short(resource: str, x: float) -> bool:
    return bool(said(Pressure(resource, round(x * TEN), 0, TEN)))


def interrupts_take(x: float) -> bool:
    """Whether it is told that interrupts take this share of the cores' time, half of it in soft ones."""
    half = round(x * TEN / 2)
    return bool(said(Interrupts(HARD, "", half, 1, TEN), Interrupts(SOFT, "", half, 1, TEN)))


def is_stolen(x: float) -> bool:
    return bool(said(Interrupts(STOLEN, "", round(x * TEN), 0, TEN)))


def threads_of_core_are_known(x: float) -> bool:
    """Whether threads are known of a core from which interrupts take this share."""
    made = Profile([ValueType("wall", "nanoseconds")], duration_ns=TEN, processes=[ProcessTimes(1, "a", cpus="3")])
    made.interrupts = [Interrupts(SOFT, "", round(x * TEN), 0, TEN, 3)]
    made.threads = [ThreadTimes(1, "a", 1, "a", TEN, SECOND, 0, {})]
    (core,) = interrupted.cores(made)
    return bool(core.threads)


def core_is_told(x: float) -> bool:
    """Whether it is told that interrupts take this share of one core's time."""
    return bool(interrupted.sentences([Core(3, {HARD: round(x * TEN)}, TEN)], []))


def core_is_uneven(x: float) -> bool:
    """Whether it is told of a core that loses this many times what all do on average."""
    return bool(interrupted.sentences([Core(3, {SOFT: round(x * 3 * SECOND)}, TEN)], [Interrupts(SOFT, "", 3, 1, 10)]))


def thread_of_core_is_told(x: float) -> bool:
    """Whether the thread is told that has this share of a core's time."""
    thread = CoreThread(3, "rx", "rx", 1, 1, round(x * TEN))
    return "on which" in " ".join(interrupted.sentences([Core(3, {SOFT: TEN // 2}, TEN, [thread])], []))


def lock_is_told(x: float) -> bool:
    """Whether a lock is told for which the waits add up to this share of the trace."""
    return bool(lines([Contended(LOCK, "mutex", round(x * TEN), 9, 3, 1.0, 4.0, 3.0)], TEN))


def lock_is_slowed(x: float) -> bool:
    """Whether a lock is told for which a wait with others takes this many times as long as alone."""
    return bool(lines([Contended(LOCK, "mutex", TEN, 9, 3, 1.0, x, 3.0)], TEN))


def _pair(time: int, waiting: int) -> bool:
    return bool(told([Between("a", (1,), "b", (2,), time)], waiting, TEN))


def pair_is_told(x: float) -> bool:
    """Whether it is told who waits for another one for this share of all waiting."""
    return _pair(round(x * 10 * TEN), 10 * TEN)


def pair_is_long(x: float) -> bool:
    """Whether it is told who waits for another one for this share of the trace."""
    return _pair(round(x * TEN), round(x * TEN))


def _outsider(waits: dict[tuple[int, int], float]) -> bool:
    call = SharedCall("A", "/dev/x", waits={pair: round(time * TEN) for pair, time in waits.items()})
    return bool(outsiders([Shared(call, {}, {1: 0, 2: 1})], TEN))


def is_waited_for(x: float) -> bool:
    """Whether a process is told that is no rank, and that a rank waits for in this share of its waits."""
    return _outsider({(1, 9): x, (1, 2): 1 - x})


def waits_long_enough(x: float) -> bool:
    """Whether a process is told that a rank waits for during this share of its time."""
    return _outsider({(1, 9): x})


def both_wait(x: float) -> bool:
    """Whether both ends of a connection are said to wait that do so at once for this share of the time."""
    return "TCP holds back" in " ".join(summarize(tcp_profiles.share(x)).answer)
