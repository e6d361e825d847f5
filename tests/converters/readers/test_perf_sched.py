from __future__ import annotations

import io
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.readers import detect, perf_sched
from stallscope.converters.readers.options import ReadOptions
from stallscope.converters.readers.source import Source

DATA = Path(__file__).resolve().parents[2] / "data" / "perf_sched"
MS = 1_000_000


def read(text: bytes) -> Profile:
    return perf_sched.read(Source(io.BytesIO(text), "x"), ReadOptions())


def switch(ms: float, out: str, into: str, state: str = "S", *frames: str) -> bytes:
    """``out`` and ``into``: names that end in the thread's number."""
    line = (
        f"{out} 10/{out[-1]} [000] {ms / 1000:.6f}: sched:sched_switch: "
        f"prev_comm={out} prev_pid={out[-1]} prev_prio=120 prev_state={state} ==> "
        f"next_comm={into} next_pid={into[-1]} next_prio=120"
    )
    return "\n".join([line, *(f"\t 4{i:03} {name} (/bin/a)" for i, name in enumerate(frames)), "", ""]).encode()


def wakeup(ms: float, who: str, event: str = "wakeup") -> bytes:
    fields = f"comm={who} pid={who[-1]} prio=120 target_cpu=0"
    return f"x 11/99 [000] {ms / 1000:.6f}: sched:sched_{event}: {fields}\n\n".encode()


def times(profile: Profile) -> dict[tuple[str, str, str], tuple[int, ...]]:
    return {
        (str(s.label("thread")), ";".join(f.name for f in s.stack), str(s.label("state"))): s.values
        for s in profile.samples
    }


def test_blocked_until_the_wakeup_then_runnable() -> None:
    profile = read(
        switch(1000, "t1", "u2", "D", "read", "main") + wakeup(1030, "t1") + switch(1042, "u2", "t1", "R", "spin")
    )
    assert profile.value_types == [ValueType("off-cpu", "nanoseconds"), ValueType("count", "count")]
    stack = (Frame("main", "native", Module("/bin/a")), Frame("read", "native", Module("/bin/a")))
    labels = [("pid", 10), ("process", "t1"), ("state", ""), ("thread", "t1"), ("tid", 1)]
    expected = [
        Sample(stack, (ns, 1), tuple((k, state if k == "state" else v) for k, v in labels))
        for state, ns in (("uninterruptible", 30 * MS), ("runnable-woken", 12 * MS))
    ]
    assert profile.samples == expected
    assert profile.lost == {"waits that did not end": 1}


def test_preempted_and_unseen_wakeups() -> None:
    profile = read(switch(0, "t1", "u2", "R+", "a") + switch(5, "u2", "t1", "S", "b") + switch(7, "t1", "u2", "Z", "c"))
    assert times(profile) == {
        ("t1", "a", "runnable-preempted"): (5 * MS, 1),
        ("u2", "b", "interruptible"): (2 * MS, 1),
    }
    assert profile.lost == {"waits without a wakeup, counted as blocked": 1}


def test_waking_counts_until_the_wakeup() -> None:
    begin, end = switch(0, "t1", "u2", "S", "a"), switch(10, "u2", "t1", "Z")
    assert times(read(begin + wakeup(4, "t1", "waking") + end))["t1", "a", "interruptible"] == (4 * MS, 1)
    both = begin + wakeup(4, "t1", "waking") + wakeup(6, "t1") + end
    assert times(read(both))["t1", "a", "interruptible"] == (6 * MS, 1)
    assert times(read(both))["t1", "a", "runnable-woken"] == (4 * MS, 1)


def test_delays_without_switches_in() -> None:
    profile = read((DATA / "stat.txt").read_bytes())
    assert times(profile) == {
        ("app", "work;sem_wait;schedule;__schedule", "interruptible"): (249_999_000, 1),
        ("app", "read_it;__schedule", "uninterruptible"): (100 * MS, 1),
        ("app", "read_it;__schedule", "runnable-woken"): (500_000, 1),
        ("app", "spin", "runnable-preempted"): (100 * MS, 1),
        ("a b", "stop", "stopped"): (100 * MS, 1),
    }
    assert profile.lost == {
        "lines not understood": 1,
        "events that tell no wait": 1,
        "waits without a wakeup, counted as blocked": 1,
    }
    assert profile.comments[0].startswith("x, line 21: expected an event of perf sched script")


def test_time_that_runs_backwards_is_left_out() -> None:
    profile = read(switch(9, "t1", "u2") + switch(3, "u2", "t1", "Z"))
    assert profile.samples == []
    assert profile.lost == {"waits that end before they begin": 1}


def test_recording() -> None:
    text = (DATA / "switch_wakeup.txt").read_bytes()
    profile = read(text)
    assert {s.label("tid") for s in profile.samples if s.label("thread") == "python3"} >= {13158, 13160}
    assert {s.label("state") for s in profile.samples} >= {"interruptible", "runnable-woken", "runnable-preempted"}
    assert all(s.stack[-1].name == "__schedule" for s in profile.samples)
    assert profile.total("off-cpu") == _closed_waits(text)
    naps = [s.label("tid") for s in profile.samples if any("clock_nanosleep" in f.name for f in s.stack)]
    assert set(naps) == {13160}


def _closed_waits(text: bytes) -> int:
    """ns from switch out to switch in of every thread but the idle ones, without this package."""
    begins: dict[bytes, int] = {}
    total = 0
    pattern = rb"(\d+)\.(\d{6}): sched:sched_switch:.* prev_pid=(\d+) .* prev_state=(\S+) .* next_pid=(\d+)"
    for seconds, part, before, state, after in re.findall(pattern, text):
        now = (int(seconds) * 10**6 + int(part)) * 1000
        total += now - begins.pop(after, now)
        if before != b"0" and state != b"X":
            begins[before] = now
    return total


def test_chunks_of_any_size_give_the_same() -> None:
    choice = random.Random(1)
    text = b"".join(
        choice.choice(
            [
                switch(i, f"t{i % 3}", f"t{(i + 1) % 3}", choice.choice("SDRX"), *"abc"[: i % 4]),
                wakeup(i, f"t{i % 3}"),
                b"what\n",
            ]
        )
        for i in range(1, 200)
    )
    whole = read(text)
    blocks = text.split(b"\n\n")
    for size in (1, 7):
        reader = perf_sched._Reader("x", ReadOptions())
        for i in range(0, len(blocks), size):
            part = b"\n\n".join(blocks[i : i + size])
            reader.add(part + b"\n\n" if i + size < len(blocks) else part)
        again = reader.profile()
        assert again.samples == whole.samples
        assert (again.lost, again.comments) == (whole.lost, whole.comments)


def test_only_scheduler_events_are_taken_for_them() -> None:
    scheduler = switch(1, "t1", "u2", "S", "f")
    cycles = b"a 1/2 [000] 1.5: 100 cycles:\n\t 40 f (/bin/a)\n\n"
    assert perf_sched.sniff(scheduler + wakeup(2, "t1"))
    assert perf_sched.sniff(b"# comment\nnonsense\n" + scheduler * 2)
    assert not perf_sched.sniff(cycles + scheduler * 2)
    assert not perf_sched.sniff(cycles)
    assert not perf_sched.sniff(wakeup(2, "t1") * 3)
    assert detect.detect(Source(io.BytesIO(scheduler * 2), "x")) == "perf_sched"
    assert detect.detect(Source(io.BytesIO(cycles), "x")) == "perf"


def test_no_events_are_refused() -> None:
    with pytest.raises(StallscopeError, match="x, line 1: expected an event of perf sched script"):
        read(b"hello\nworld\n")


PIECES = [
    switch(1, "t1", "u2", "D", "f"),
    switch(2, "u2", "t1"),
    wakeup(1, "t1"),
    b"\n",
    b"\t40 f (/a)\n",
    b"sched:",
    b"\xff",
]


@given(st.lists(st.sampled_from(PIECES)))
def test_anything_is_read_or_refused(parts: list[bytes]) -> None:
    try:
        profile = read(b"".join(parts))
    except StallscopeError:
        return
    assert all(value >= 0 for sample in profile.samples for value in sample.values)


def test_a_process_named_like_an_event_is_not_one(tmp_path: Path) -> None:
    """Headers are remembered apart from their times: what stands for the event must be the event."""
    comm = b"sched:sched_switch: prev_comm"
    text = b""
    event = b"%s     %d/%d [000]     %d.000000: sched:sched_switch: %s:%d [120] %s ==> %s:%d [120]\n\n"
    for at, name in ((1, b"sleep"), (3, comm)):
        text += event % (name, 7, 7, at, name, 7, b"S", b"swapper/0", 0)
        text += event % (b"swapper", 0, 0, at + 1, b"swapper/0", 0, b"R", name, 7)
    path = tmp_path / "odd.txt"
    path.write_bytes(text)
    profile = detect.read(str(path), ReadOptions(), "perf_sched")[1]
    assert sum(sample.values[0] for sample in profile.samples) == 2_000_000_000
