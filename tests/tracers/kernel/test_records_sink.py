"""Records of the probes that are kept."""

from __future__ import annotations

import struct

import pytest
from stallscope.tracers.kernel import ended, records
from stallscope.tracers.kernel.records import ExecRecord, RecordSink, pack_thread, parse_record, parse_thread_record


@pytest.mark.parametrize("data", [b"\0\0\0\0" * 8, b"\5\0\0\0" * 8, b""])
def test_unknown_record(data: bytes) -> None:
    with pytest.raises(ValueError, match="record of unknown type"):
        parse_record(data)


def exit_data(tid: int, start: int, end: int, *, life: int = 0) -> bytes:
    thread = pack_thread((tid, tid), life or tid, "preempted", records.ON_CPU, start)
    return records._THREAD_RECORD_HEAD.pack(records.RECORD_EXIT, 0, end, b"x") + thread


def test_sink_keeps_the_last_word_on_a_thread() -> None:
    sink = RecordSink()
    sink(exit_data(7, start=1000, end=1001))
    sink(exit_data(7, start=1000, end=1002))
    sink(exit_data(7, start=2000, end=2001, life=70))  # another thread with the same id
    assert len(sink.threads([])) == 2
    alive = parse_thread_record(exit_data(8, 500, 3000), exited=False)
    leaving = parse_thread_record(exit_data(7, 2000, 3000, life=70), exited=False)
    threads = sink.threads([alive, leaving])
    assert [(r.thread.key.tid, r.thread.start, r.end, r.exited) for r in threads] == [
        (7, 1000, 1002, True), (8, 500, 3000, False), (7, 2000, 3000, False),
    ]  # fmt: skip


def test_sink_keeps_stacks_and_execs() -> None:
    sink = RecordSink()
    for stack_id, end in ((9, 0), (10, 3)):
        head = struct.pack("<IHHQ", records.RECORD_STACK, 2, end, stack_id)
        sink(head + (5).to_bytes(8, "little") + (6).to_bytes(8, "little"))
    sink(records._EXEC.pack(records.RECORD_EXEC, 3, 100, 50, 1, 1))
    sink(records._EXEC.pack(records.RECORD_EXEC, 4, 200, 60, 2, 2))
    assert sink.stacks.find([9, 10]) == ({9: (5, 6), 10: (5, 6)}, {10: 3})
    assert sink.take_execs() == [ExecRecord(3, 100, 50, 1, 1), ExecRecord(4, 200, 60, 2, 2)]
    assert sink.take_execs() == []
    assert len(sink.threads([])) == 0


def test_switch_that_was_counted_after_the_end_makes_no_negative_time() -> None:
    thread = pack_thread((7, 5), 1, "interruptible", records.BLOCKED, 1_000_500)
    data = records._THREAD_RECORD_HEAD.pack(records.RECORD_EXIT, 0, 1_000_000, b"x") + thread
    assert parse_thread_record(data, exited=False).end == 1_000_500


def account(tid: int, start: int, end: int, *, kind: int = records.RECORD_EXIT, exiting: bool = False) -> bytes:
    """A record of a thread that was blocked for 10 ns, and is blocked again."""
    thread = bytearray(pack_thread((tid, 7), tid, "interruptible", records.BLOCKED, start))
    thread[64 + 8 : 64 + 16] = (10).to_bytes(8, "little")
    return records._THREAD_RECORD_HEAD.pack(kind, 0, end, b"x") + bytes(thread)


def test_sink_tells_intervals_apart() -> None:
    sink = RecordSink()
    sink(account(1, 10, 90))  # ended
    sink(account(2, 10, 95))  # began to exit, and was cut before it was gone
    sink(account(2, 10, 100, kind=records.RECORD_CUT))
    sink(account(3, 10, 100, kind=records.RECORD_CUT))
    sink(account(3, 100, 120))  # ended in the next interval
    uncut = [parse_thread_record(account(tid, 10, 100), exited=False) for tid in (3, 4)]
    found = sink.take_interval(0, 100, uncut)
    assert sorted((r.thread.key.tid, r.end, r.exited) for r in found) == [
        (1, 90, True),
        (2, 100, False),
        (3, 100, False),
        (4, 100, False),
    ]
    assert [(r.thread.key.tid, r.end) for r in sink.threads([])] == [(3, 120)]
    sink(account(4, 10, 100, kind=records.RECORD_CUT))  # at its first event, after it was reported
    assert [(r.thread.key.tid, r.end) for r in sink.take_interval(100, 200, [])] == [(3, 120)]
    assert sink.threads([]) == []


def test_sink_has_the_threads_that_ended_before_the_iterator_came() -> None:
    sink = RecordSink()
    sink(account(1, 100, 150, kind=records.RECORD_CUT))
    sink(account(2, 100, 150, kind=records.RECORD_CUT))  # the iterator saw it before
    sink(account(3, 10, 100, kind=records.RECORD_CUT))  # of the interval before
    left = sink.take_rest(100, [parse_thread_record(account(tid, 100, 150), exited=False) for tid in (2, 4)])
    assert sorted(record.thread.key.tid for record in left) == [1, 2, 4]
    assert sink.take_rest(100, []) == []


def test_a_thread_that_is_cut_while_it_exits_is_waited_for_once() -> None:
    sink = RecordSink()
    data = bytearray(account(5, 10, 95))
    data[ended._EXITING_OFFSET] = 1  # exiting
    sink(bytes(data))
    assert sink.exiting == 1
    sink(account(5, 100, 120))
    assert sink.exiting == 0
