from __future__ import annotations

import io
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers import detect
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.perf import sched as perf_sched
from stallscope.converters.readers.perf.sched_events import KnownParts

DATA = Path(__file__).resolve().parents[3] / "data" / "perf_sched"
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
        "events without a wait": 1,
        "waits without a wakeup, counted as blocked": 1,
    }
    assert worded(profile.comments)[0].startswith("x, line 21: expected an event of perf sched script")


def test_time_that_runs_backwards_is_left_out() -> None:
    profile = read(switch(9, "t1", "u2") + switch(3, "u2", "t1", "Z"))
    assert profile.samples == []
    assert profile.lost == {"waits of negative length": 1}


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
        assert (again.lost, worded(again.comments)) == (whole.lost, worded(whole.comments))


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


THREADS = st.sampled_from(
    [b"t1 10/1 [000]", b"t 2  2 [001]", b"swapper     0/0     [002]", b"# 1/1 [000]", b"x 1234 7"]
)
CLOCKS = st.sampled_from(
    [b"0.000000", b"1.000000", b"1.5", b"2.000000001", b"3.000000", b"3._00000", b"", b"9999999999999.1"]
)
EVENTS = st.sampled_from(
    [
        *(
            b"sched_switch: prev_comm=%b prev_pid=%b prev_prio=1 prev_state=%b" % (comm, tid, state)
            for comm, tid in ((b"t1", b"1"), (b"t ==> 2", b"2"), (b"swapper/0", b"0"))
            for state in (b"S", b"D|K", b"R+", b"X")
        ),
        *(
            b"sched_switch: t1:1 [120] S",
            b"sched_switch: t1:1 [120] ==>",
            b"sched_switch:",
            b"sched_waking: t1:1 [1] x",
        ),
        *(b"sched_wakeup: comm=t1 pid=1 prio=1", b"sched_waking: comm=t 2 pid=2 prio=1", b"sched_stat_runtime: x"),
        *(b"sched_stat_runtime", b"sched_stat_sleep: comm=t1 pid=1 delay=5 [ns]", b"sched_stat_iowait: t1:1 delay=5"),
    ]
)
NEXTS = st.sampled_from(
    [
        *(b"", b" ==> next_comm=t1 next_pid=1 next_prio=1", b" ==> next_comm=t 2 next_pid=2 next_prio=1"),
        *(b" ==> t1:1 [120]", b" ==> ==> t1:1 [120]", b" ==> next_comm=swapper/0 next_pid=0 next_prio=1\r"),
    ]
)
STACKS = st.sampled_from(
    [b"", b"", b"\n\t40 f (/a)", b"\n 40 f (/a)", b"\n\t40 f (/a)\n\twhat", b"\n", b"\nwhat", b"\r"]
)
BLOCKS = st.builds(b"%b %b: sched:%b%b%b\n\n".__mod__, st.tuples(THREADS, CLOCKS, EVENTS, NEXTS, STACKS))


@given(st.lists(BLOCKS, max_size=12))
def test_what_was_seen_before_does_not_change_what_an_event_means(blocks: list[bytes]) -> None:
    text = b"".join(blocks * 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KnownParts, "learn", lambda *_: None)
        expected = _outcome(text)
    assert _outcome(text) == expected


def _outcome(text: bytes) -> object:
    try:
        profile = read(text)
    except StallscopeError as error:
        return error.cause
    return profile.samples, profile.lost, worded(profile.comments)


def test_delays_and_times_in_ns_are_known_too() -> None:
    out = b"t1 10/1 [000] %d.000000500: sched:sched_switch: t1:1 [120] S ==> swapper/0:0 [120]\n\t40 f (/a)\n\n"
    slept = b"u 10/2 [000] %d.000000750: sched:sched_stat_sleep: comm=t1 pid=1 delay=%d [ns]\n\n"
    text = b"".join(out % i + slept % (i, 100 + i) for i in range(1, 100))
    profile = read(text)
    assert times(profile) == {("t1", "f", "interruptible"): (sum(range(101, 200)), 99)}
    assert profile.lost == {}


def test_the_line_of_the_first_bad_one_is_told_among_known_ones() -> None:
    good = switch(1, "t1", "u2", "S", "f")
    profile = read(good * 3 + b"what\n\n" + good + b"again\n\n")
    assert profile.lost["lines not understood"] == 2
    assert worded(profile.comments)[0].startswith("x, line 10: expected")


def test_a_wakeup_at_0_is_no_wait_before_it_began() -> None:
    profile = read(switch(5, "t1", "u2") + wakeup(0, "t1") + switch(9, "u2", "t1", "Z"))
    assert profile.samples == []
    assert profile.lost == {"waits of negative length": 1}


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


def test_without_stacks_names_are_padded() -> None:
    events = [switch(1, "a1", "b2"), switch(3, "b2", "a1", "R"), switch(7, "a1", "b2", "D"), switch(8, "b2", "a1")]
    text = b"# captured\n" + b"\n".join(b"     " + event.partition(b"\n")[0] for event in events) + b"\n   nothing\n"
    assert perf_sched.sniff(text)
    assert detect.detect(Source(io.BytesIO(text), "x")) == "perf_sched"
    profile = read(text)
    found = {(sample.label("thread"), sample.label("state")): sample.values for sample in profile.samples}
    assert found == {
        ("a1", "interruptible"): (2 * MS, 1),
        ("b2", "runnable-preempted"): (4 * MS, 1),
        ("a1", "uninterruptible"): (MS, 1),
    }
    assert all(sample.stack == () for sample in profile.samples)
    assert profile.lost["lines not understood"] == 1
    assert any("x, line 6" in comment for comment in worded(profile.comments))
    assert profile.lost["waits that did not end"] == 1


def test_padded_or_not_the_waits_are_the_same() -> None:
    text = (DATA / "flat.txt").read_bytes()
    stripped = b"\n\n".join(line.lstrip() for line in text.splitlines())
    assert read(stripped).samples == read(text).samples
    assert read(text).total("count") > 5


@pytest.mark.parametrize(
    "first", [b"", b"       a1 1 [000] 0.0005: sched:sched_waking: comm=c3 pid=3 prio=0 target_cpu=000\n"]
)
def test_events_with_stacks_and_padded_ones_without(first: bytes) -> None:
    """perf pads each event by its own setting: ``-e sched:sched_wakeup/call-graph=no/`` beside others with ``-g``."""
    woken = b"       b2 2 [000] 0.002000: sched:sched_wakeup: comm=a1 pid=1 prio=0 target_cpu=000\n"
    text = (
        first + switch(1, "a1", "b2", "S", "__schedule", "nap").rstrip(b"\n") + b"\n\n" + woken + switch(4, "b2", "a1")
    )
    assert perf_sched.sniff(text)
    profile = read(text)
    found = {
        sample.label("state"): (sample.values, [frame.name for frame in sample.stack]) for sample in profile.samples
    }
    assert set(found) == {"interruptible", "runnable-woken"}
    assert found["interruptible"][0] == (MS, 1)
    assert found["runnable-woken"][0] == (2 * MS, 1)
    assert "nap" in found["interruptible"][1]
    # The same without the empty line between: the padded event ends the stack.
    again = read(text.replace(b"\n\n" + woken, b"\n" + woken))
    assert again.samples == profile.samples
    assert "lines not understood" not in profile.lost
