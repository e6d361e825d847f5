"""Remarks in words."""

from __future__ import annotations

import pytest
from stallscope.converters.model.remarks import (
    CODES,
    BufferFull,
    EventsLost,
    FirstSkipped,
    FramesNameless,
    InputsAddedUp,
    Joined,
    Kept,
    KernelHidden,
    OfSide,
    ProbesCost,
    RecordingLeftOut,
    Remark,
    SamplesLeftOut,
    Shed,
    SwitchesUnseen,
    TablesFull,
    TooShort,
    TraceCost,
    TracksAddedUp,
    UnwindTablesFull,
    WaitsHidden,
)
from stallscope.converters.phrases.remarks import word, worded

WORDS: list[tuple[Remark, str]] = [
    (SamplesLeftOut(9), "9 samples of each process left out: eu-stack took longer than -F allows"),
    (TooShort(65_000_000, 99, 6), "[not sampled]: 65.0 ms on cores at 99 Hz are only 6 samples"),
    (TooShort(65_000, 99, 0), "[not sampled]: 65.0 µs on cores at 99 Hz are less than one sample"),
    (KernelHidden(2), "[not sampled]: mostly in the kernel, which perf_event_paranoid=2 hides; 1 shows it"),
    (WaitsHidden("sudo trace-wall"), "perf shows no waits to this user: sudo trace-wall tells where the rest goes"),
    (
        EventsLost(1, 3, sampled=True, careful=True),
        "Careful: perf lost 25.0 % of the events: numbers of waits are too low, and places rough; trace fewer "
        "processes, a lower -F, or raise --buffer (as root)",
    ),
    (
        EventsLost(0, 3, sampled=False, careful=False),
        "perf lost events: trace fewer processes, or raise --buffer (as root)",
    ),
    (
        ProbesCost(1, 4, 2, careful=False),
        "SystemTap's probes took 25.0 % of the time of 2 cores: what runs, and what waits for a core, is that of "
        "programs slowed by the trace",
    ),
    (
        TraceCost(39, 1000, (("waits", 29), ("tracer", 9), ("locks", 1)), 30_000, 900),
        "tracing cost 3.0 % of the traced processes' time (switches of threads 2.9 %, the tracer itself 0.9 %, locks "
        "0.1 %)",
    ),
    (
        TraceCost(31, 1000, (("calls", 31),), 30_000, 1000),
        "tracing cost 3.1 % of the traced processes' time, more than the budget of 3 % (calls 3.1 %)",
    ),
    (
        TraceCost(31, 10, (("calls", 31),), 40_000, 1000),
        "tracing cost 3.1 % of the time of one core (calls 3.1 %)",
    ),
    (Shed("samples", 1_560_000_000, 2, 99, (), 0), "from second 1.6 on: samples every 20 ms instead of 10"),
    (Shed("ioctls", 0, 0, 0, (), 0), "from second 0.0 on: without ioctls"),
    (
        Shed("calls", 2_000_000_000, 0, 0, (("a", 1234), ("b", 2), ("c", 1), ("d", 1)), 5),
        "from second 2.0 on: without probes on a (1,234 calls a second), b (2 calls a second), c (1 calls a second) "
        "and 6 other functions",
    ),
    (
        Joined("redis", 7, 1_560_000_000),
        "redis (pid 7) was traced, too, from second 1.6 on: others wait for it; --no-peers leaves it out",
    ),
    (FramesNameless((("a.so", 2),), 0), "frames without a name: 2 in a.so"),
    (SwitchesUnseen(1), "1 wait of which a switch was not seen: timed by the thread's CPU time"),
    (TablesFull(), "the kernel side's tables were full: raise --table-size, or trace fewer processes"),
    (UnwindTablesFull(), "the unwind tables did not fit: raise --unwind-memory, or trace fewer processes"),
    (BufferFull(), "the ring buffer was full: raise --buffer"),
    (Kept(1, 4, "off-cpu", ("--focus a", "--hide b")), "kept 25.0 % of off-cpu: --focus a --hide b"),
    (FirstSkipped("x", "line", 7, "a stack"), "x, line 7: expected a stack"),
    (RecordingLeftOut(("a", "b"), "calls"), "left out: the recording's own span, a, b; --event-filter calls shows it"),
    (
        InputsAddedUp(("a", "b"), 2, "input"),
        "added up: a, b and 2 more of several inputs; --root input,process tells them apart",
    ),
    (TracksAddedUp(2, 1, 0), "added up: the times of 2 tracks (threads, streams of GPUs)"),
    (OfSide("before", BufferFull()), "before: the ring buffer was full: raise --buffer"),
    (OfSide("after", "a note"), "after: a note"),
]  # fmt: skip


@pytest.mark.parametrize(("remark", "words"), WORDS)
def test_words(remark: Remark, words: str) -> None:
    assert word(remark) == words


def test_all_remarks_have_words() -> None:
    assert {type(remark) for remark, _ in WORDS} == set(CODES.values())
    assert worded(["a note", BufferFull()]) == ["a note", "the ring buffer was full: raise --buffer"]
