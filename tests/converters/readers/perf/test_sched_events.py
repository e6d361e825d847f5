from __future__ import annotations

import pytest
from stallscope.converters.readers.perf.sched_events import Event, KnownParts, NotKnown, parse

HEAD = b"a b  100/101   [001]  12.345678: "


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (
            HEAD + b"sched:sched_switch: prev_comm=a b prev_pid=101 prev_prio=120 prev_state=D ==> "
            b"next_comm=swapper/1 next_pid=0 next_prio=120",
            Event("switch", 12_345_678_000, 100, 101, "a b", "uninterruptible", 0, "swapper/1"),
        ),
        (
            b"x 7 [001] 12.000000001:   1 sched:sched_switch: x:7 [120] R+ ==> y z:8 [98]",
            Event("switch", 12_000_000_001, None, 7, "x", "", 8, "y z"),
        ),
        (
            b":-1    -1 [000] 1.5: sched:sched_switch: prev_comm=x prev_pid=7 prev_prio=120 prev_state=X|W ==> "
            b"next_comm=y next_pid=8 next_prio=120",
            Event("switch", 1_500_000_000, None, 7, "x", "ended", 8, "y"),
        ),
        (
            HEAD + b"sched:sched_wakeup: comm=pid=3 pid=9 prio=120 target_cpu=001",
            Event("wakeup", 12_345_678_000, 100, 9, "pid=3"),
        ),
        (HEAD + b"sched:sched_wakeup_new: x y:9 [120] CPU:001", Event("wakeup", 12_345_678_000, 100, 9, "x y")),
        (HEAD + b"sched:sched_waking: comm=x pid=9 prio=1 target_cpu=0", Event("waking", 12_345_678_000, 100, 9, "x")),
        (
            HEAD + b"sched:sched_stat_iowait: comm=x pid=9 delay=42 [ns]",
            Event("stat_iowait", 12_345_678_000, 100, 9, "x", delay=42),
        ),
        (HEAD + b"sched:sched_process_exit: comm=x pid=9 prio=1", Event("other", 12_345_678_000, 100, 101, "a b")),
        (HEAD + b"sched:sched_switch: what?", Event("other", 12_345_678_000, 100, 101, "a b")),
        (HEAD + b"syscalls:sys_enter_read: fd: 3", None),
        (HEAD + b"cycles:", None),
        (b"\tffffffff81399b71 __schedule ([kernel.kallsyms])", None),
        (b"", None),
        (b"a" * 100_000, None),
    ],
)
def test_lines(line: bytes, event: Event | None) -> None:
    assert parse(line) == event


@pytest.mark.parametrize(
    ("state", "name"),
    [
        *(("S", "interruptible"), ("D|K", "uninterruptible"), ("T", "stopped"), ("t", "traced"), ("I", "idle")),
        *(("R", ""), ("R+", ""), ("Z", "ended"), ("x", "ended"), ("P", "other"), ("0x2000", "other")),
    ],
)
def test_states(state: str, name: str) -> None:
    fields = f"prev_comm=x prev_pid=7 prev_prio=120 prev_state={state} ==> next_comm=y next_pid=8 next_prio=120"
    event = parse(HEAD + b"sched:sched_switch: " + fields.encode())
    assert event is not None
    assert event.state == name


FIELDS = b"prev_comm=x prev_pid=7 prev_prio=120 prev_state=S"
INTO = b"next_comm=y next_pid=8 next_prio=120"


def learned(*lines: bytes) -> KnownParts[Event, int]:
    known: KnownParts[Event, int] = KnownParts(lambda event: event, lambda tid: tid)
    for line in lines:
        event = parse(line)
        assert event is not None
        known.learn(line, event)
    return known


def test_known_parts_of_a_switch() -> None:
    known = learned(HEAD + b"sched:sched_switch: %b ==> %b" % (FIELDS, INTO))
    assert known.places == 6
    outs, begin = known.heads[b"a b  100/101   [001]  99."]
    assert begin == 99_000_000_000
    out, nexts = outs[b"sched_switch: " + FIELDS]
    assert (out.pid, out.tid, out.state) == (100, 7, "interruptible")
    assert nexts[INTO] == 8
    for unknown in (b"a c  100/101   [001]  99.", b"a b  100/101   [001]  99.1", b"a b  100/101   [001]  1_0.", b""):
        with pytest.raises(NotKnown):
            known.heads[unknown]


def test_the_two_ways_to_print_a_switch_are_not_mixed() -> None:
    known = learned(
        HEAD + b"sched:sched_switch: %b ==> %b" % (FIELDS, INTO),
        HEAD + b"sched:sched_switch: x:7 [120] S ==> y:8 [120]",
    )
    outs, _ = known.heads[b"a b  100/101   [001]  12."]
    nexts = outs[b"sched_switch: x:7 [120] S"][1]
    assert nexts[b"y:8 [120]"] == 8
    with pytest.raises(NotKnown):
        nexts[INTO]


@pytest.mark.parametrize(
    "line",
    [
        HEAD + b"sched:sched_switch: prev_comm=x ==> prev_pid=7 prev_prio=1 prev_state=S ==> %b" % INTO,
        HEAD + b"sched:sched_switch: x:7 [120] ==> ==> y:8 [120]",
        HEAD + b"sched:sched_switch: prev_comm=sched:x prev_pid=7 prev_prio=1 prev_state=S ==> %b" % INTO,
        HEAD + b"sched:sched_switch: %b ==> next_comm=%b next_pid=8 next_prio=120" % (FIELDS, b"y" * 1024),
    ],
)
def test_nothing_is_learned_of_what_could_be_cut_elsewhere(line: bytes) -> None:
    known = learned(line, HEAD + b"sched:sched_process_exit: comm=x")
    outs, _ = known.heads[b"a b  100/101   [001]  12."]
    assert not outs


def test_known_wakeups_sleeps_and_others() -> None:
    known = learned(
        HEAD + b"sched:sched_wakeup_new: comm=x pid=9 prio=1 target_cpu=0",
        HEAD + b"sched:sched_waking: x:9 [120] CPU:001",
        HEAD + b"sched:sched_stat_sleep: comm=x pid=9 delay=42 [ns]",
        HEAD + b"sched:sched_stat_runtime: comm=x pid=9 runtime=42 [ns]",
        HEAD + b"sched:sched_switch: what?",
    )
    assert known.wakes == {
        b"sched_wakeup_new: comm=x pid=9 prio=1 target_cpu=0": (9, True),
        b"sched_waking: x:9 [120] CPU:001": (9, False),
    }
    assert known.others == {b"sched_stat_runtime"}
    assert known.sleep(b"sched_stat_sleep: comm=x pid=9 delay=77 [ns]") == (9, 77)
    for odd in (
        b"delay=77",
        b"delay= [ns]",
        b"delay=7_7 [ns]",
        b"delay=%b [ns]" % (b"7" * 19),
        b"delay=7 delay=8 [ns]",
    ):
        with pytest.raises(NotKnown):
            known.sleep(b"sched_stat_sleep: comm=x pid=9 " + odd)


def test_memory_of_known_parts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stallscope.converters.readers.perf.sched_events._MAX_CACHED", 20_000)
    lines = [HEAD + b"sched:sched_wakeup: comm=x pid=%d prio=1 target_cpu=0" % i for i in range(1000)]
    assert len(learned(*lines).wakes) < 50
