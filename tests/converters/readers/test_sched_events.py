from __future__ import annotations

import pytest
from stallscope.converters.readers.sched_events import Event, parse

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
