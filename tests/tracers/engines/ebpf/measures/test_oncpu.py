"""Division of a thread's time among samples. With real samples: tests/live/test_oncpu.py."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.engines.ebpf.measures import oncpu
from stallscope.tracers.engines.ebpf.measures.oncpu import OnCpuCollector, _Sum
from stallscope.tracers.engines.ebpf.measures.protocol import Ended
from stallscope.tracers.kernel import perf_events
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.records import RUNNING, Origin
from stallscope.tracers.measures.oncpu import OnCpu


def origin(user: int, tid: int = 8, *, life: int = 0) -> Origin:
    return Origin(user, 0, 0, tid, 7, life or tid, RUNNING)


def thread(on_cpu: int, tid: int = 8, *, life: int = 0) -> Any:
    return SimpleNamespace(thread=SimpleNamespace(key=origin(0, tid, life=life), first=life or tid), on_cpu=on_cpu)


EARLIER = {40: 20}
"""A life that ended with an exec."""


def rows(
    measure: OnCpuCollector, samples: dict[Origin, _Sum], threads: Iterable[Any] = ()
) -> list[tuple[int, int, tuple[int, ...]]]:
    measure._samples = samples
    threads = list(threads)
    made = measure.rows(Ended(0, 1, threads, {each.thread.key.life: each.thread.first for each in threads} | EARLIER))
    assert {row.state for row in made} <= {"running"}
    assert not any(row.is_open for row in made)
    return [(row.origin.tid, row.origin.ustack, row.values) for row in made]


def test_a_threads_samples_sum_to_its_time() -> None:
    samples = {origin(1): _Sum(1, 0), origin(2): _Sum(1, 0), origin(3): _Sum(1, 0), origin(1, 9): _Sum(5, 0)}
    made = rows(OnCpuCollector(OnCpu()), samples, [thread(1000), thread(77, 9)])
    assert [values for tid, _, values in made if tid == 8] == [(333, 1), (333, 1), (334, 1)]
    assert [values for tid, _, values in made if tid == 9] == [(77, 5)]


def test_only_samples_of_the_clock_are_recorded_one_by_one() -> None:
    """The interrupt of a counter may come while its core records another event."""
    asked = [
        OnCpuCollector(OnCpu(one_by_one=True)),
        OnCpuCollector(OnCpu()),
        OnCpuCollector(OnCpu(99, "cycles", one_by_one=True)),
    ]
    assert [measure.knobs()["timeline_samples"] for measure in asked] == [1, 0, 0]


def test_time_without_samples_is_not_left_out() -> None:
    assert rows(OnCpuCollector(OnCpu()), {}, [thread(1000), thread(0, 9)]) == [(8, 0, (1000, 0))]


def test_of_a_thread_that_is_not_known_each_sample_is_a_period() -> None:
    assert rows(OnCpuCollector(OnCpu(1000)), {origin(1): _Sum(3, 0)}) == [(8, 1, (3_000_000, 3))]


def test_a_thread_id_that_came_back_is_another_thread() -> None:
    samples = {origin(1, life=20): _Sum(1, 0), origin(1, life=30): _Sum(2, 0)}
    made = rows(OnCpuCollector(OnCpu()), samples, [thread(5, life=20), thread(6, life=30)])
    assert made == [(8, 1, (5, 1)), (8, 1, (6, 2))]


def test_a_thread_that_executed_a_program_shares_its_time_out_over_both() -> None:
    samples = {origin(1, life=40): _Sum(1, 0), origin(2, life=20): _Sum(3, 0)}
    assert rows(OnCpuCollector(OnCpu()), samples, [thread(8, life=20)]) == [(8, 1, (2, 1)), (8, 2, (6, 3))]


def test_other_events_are_counted() -> None:
    measure = OnCpuCollector(OnCpu(event="cycles"))
    assert [(column.name, column.unit) for column in measure.columns] == [("cycles", "count"), ("samples", "count")]
    assert rows(measure, {origin(1): _Sum(3, 12345)}, [thread(5)]) == [(8, 1, (12345, 3))]


class Programs(dict[str, Any]):
    """Stands for the object's; says what was attached."""

    def __init__(self, refuse_at: int = -1) -> None:
        self.attached: list[int] = []
        self.closed: list[int] = []

        def attach(fd: int) -> Any:
            if len(self.attached) == refuse_at:
                raise BpfError("attach", errno.EINVAL, [])
            self.attached.append(fd)
            return SimpleNamespace(close=lambda: self.closed.append(fd))

        super().__init__(oncpu_sample_raw=SimpleNamespace(attach_perf_event=attach))
        self.programs = self


def opened(monkeypatch: pytest.MonkeyPatch, number: int, *refused: int) -> list[int]:
    """Descriptors that were opened for so many CPUs, of which those ``refused`` say ``number``."""
    fds: list[int] = []

    def open_event(attr: perf_events.Attr, cpu: int) -> int:
        assert attr.sample_period == 49
        assert attr.flags & perf_events.FREQUENCY
        if cpu in refused:
            raise OSError(number, os.strerror(number))
        fds.append(os.open("/dev/null", os.O_RDONLY))
        return fds[-1]

    monkeypatch.setattr(oncpu.perf_events, "online_cpus", lambda: [0, 1, 2])
    monkeypatch.setattr(oncpu.perf_events, "open_event", open_event)
    return fds


def test_every_core_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    fds = opened(monkeypatch, errno.ENODEV, 1)
    programs = Programs()
    measure = OnCpuCollector(OnCpu(49))
    links = measure.attach(programs, "_raw")  # type: ignore[arg-type]
    assert (len(links), programs.attached) == (2, fds)
    assert list(measure.remarks()) == ["1 core went away as the trace began: not sampled"]
    for fd in fds:
        os.close(fd)


def test_what_was_attached_goes_when_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fds = opened(monkeypatch, 0)
    programs = Programs(refuse_at=1)
    with pytest.raises(BpfError):
        OnCpuCollector(OnCpu(49)).attach(programs, "_raw")  # type: ignore[arg-type]
    assert programs.closed == fds[:1]
    os.close(fds[0])
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fds[1])


@pytest.mark.parametrize(
    ("event", "number", "cause", "remedy"),
    [
        ("cycles", errno.ENOENT, "this machine does not count cycles", "leave --event out"),
        ("LLC-load-misses", errno.EOPNOTSUPP, "this machine does not count LLC-load-misses", "leave --event out"),
        ("cpu-clock", errno.EINVAL, "no samples of cpu-clock: Invalid argument", "perf_event_max_sample_rate"),
        ("cpu-clock", errno.EACCES, "no samples of cpu-clock: Permission denied", "trace-doctor"),
    ],
)
def test_refusals(event: str, number: int, cause: str, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(monkeypatch, number, 0)
    with pytest.raises(StallscopeError) as caught:
        OnCpuCollector(OnCpu(49, event)).attach(Programs(), "_raw")  # type: ignore[arg-type]
    assert caught.value.cause.startswith(cause)
    assert remedy in caught.value.remedy
