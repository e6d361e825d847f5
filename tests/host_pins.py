"""Sentences on the host by the quantity that a threshold is compared with. See pins.py."""

from __future__ import annotations

from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.gpus import Gpu, GpuLimit
from stallscope.converters.model.pressure import HARD, SOFT, STOLEN, Interrupts, Pressure
from stallscope.converters.model.sharing import SharedCall
from stallscope.converters.scan.gpus import Gpus
from stallscope.converters.scan.host import host_of, sentences
from stallscope.converters.scan.outsiders import outsiders
from stallscope.converters.summary.sharing import Shared
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


def is_short(resource: str, x: float) -> bool:
    return bool(said(Pressure(resource, round(x * TEN), 0, TEN)))


def interrupts_take(x: float) -> bool:
    """Whether it is told that interrupts take this share of the cores' time, half of it in soft ones."""
    half = round(x * TEN / 2)
    return bool(said(Interrupts(HARD, "", half, 1, TEN), Interrupts(SOFT, "", half, 1, TEN)))


def is_stolen(x: float) -> bool:
    return bool(said(Interrupts(STOLEN, "", round(x * TEN), 0, TEN)))


def _outsider(waits: dict[tuple[int, int], float]) -> bool:
    call = SharedCall("A", "/dev/x", waits={pair: round(time * TEN) for pair, time in waits.items()})
    return bool(outsiders([Shared(call, {}, {1: 0, 2: 1})], TEN))


def is_waited_for(x: float) -> bool:
    """Whether a process is told that is no rank, and that a rank waits for in this share of its waits."""
    return _outsider({(1, 9): x, (1, 2): 1 - x})


def waits_long_enough(x: float) -> bool:
    """Whether a process is told that a rank waits for during this share of its time."""
    return _outsider({(1, 9): x})
