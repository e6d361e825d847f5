from __future__ import annotations

import struct

import pytest
from stallscope.converters.facts.ownership import is_own
from stallscope.converters.model import Frame
from stallscope.tracers.engines.perf import layouts, names, records
from stallscope.tracers.engines.perf.passed import Passed
from stallscope.tracers.engines.perf.records import (
    BAD,
    DROPPED,
    EXIT,
    FORGED,
    FORK,
    IN,
    OUT,
    PREEMPTED,
    SAMPLE,
    SWITCH,
    Records,
)

TEXT = b"""\
sleeps 31/32 62699.029852392: PERF_RECORD_SWITCH IN         
sleeps 31/32 62699.029877299:          1 sched:sched_switch: prev_comm=sleeps prev_pid=32 prev_prio=120 prev_state=D \
==> next_comm=perf next_pid=31928 next_prio=120
\tffffffff821f8b58 __schedule ([kernel.kallsyms])
\t            1637 sleep_10ms (/x/sleeps)
\t            12c3 main (/x/sleeps)

sleeps 31/32 62699.029911940: PERF_RECORD_SWITCH OUT        
a b (c) 31/31 62699.039579835:   10101010 cpu-clock/freq=99/: 
\t            1543 burn (/x/shares)

shares 31/31 62699.040000000:          1 context-switches: 
\t            1543 burn (/x/shares)

shares 31/31 62699.041000000: PERF_RECORD_SWITCH OUT preempt
shares 31/31 62699.042000000: PERF_RECORD_FORK(31:40):(31:31)
shares 31/31 62699.042500000: PERF_RECORD_COMM: x:31/40
shares 31/40 62699.043000000: PERF_RECORD_EXIT(31:40):(31:31)
shares 31/31 62699.044000000: PERF_RECORD_LOST lost 17
what is this?
"""  # noqa: W291 - as perf prints it


def all_went(_kind: int, _pid: int, _tid: int, _time: int) -> bool:
    return True


def read(*pieces: bytes) -> list[records.Record]:
    reader = Records(all_went)
    return [record for piece in (*pieces, b"") for record in reader.feed(piece)]


def test_records() -> None:
    found = read(TEXT)
    assert [record.kind for record in found] == [
        IN, SWITCH, OUT, SAMPLE, SWITCH, PREEMPTED, FORK, EXIT, DROPPED, BAD,
    ]  # fmt: skip
    first, switch, _, sample, other, _, fork, end, lost, _ = found
    assert (first.time, first.pid, first.tid, first.comm) == (62699029852392, 31, 32, "sleeps")
    assert (switch.tid, switch.state) == (32, "uninterruptible")
    assert [frame.name for frame in switch.stack] == ["main", "sleep_10ms", "__schedule"]
    assert [frame.kind for frame in switch.stack] == ["native", "native", "kernel"]
    assert (sample.comm, sample.tid, sample.number) == ("a b (c)", 31, 10101010)
    assert other.state is None
    assert (fork.pid, fork.tid, end.tid) == (31, 40, 40)
    assert lost.number == 17


@pytest.mark.parametrize("size", [1, 7, 64])
def test_the_text_comes_in_pieces(size: int) -> None:
    assert read(*(TEXT[i : i + size] for i in range(0, len(TEXT), size))) == read(TEXT)


def test_a_sample_at_the_end_counts() -> None:
    (found,) = read(TEXT[TEXT.index(b"a b (c)") : TEXT.index(b"\n\nshares 31/31 62699.040")])
    assert [frame.name for frame in found.stack] == ["burn"]


def test_the_state_of_a_preempted_thread() -> None:
    (found,) = read(TEXT.splitlines()[1].replace(b"prev_state=D", b"prev_state=R+"))
    assert found.state == ""


def test_a_name_cannot_be_mistaken_for_ids() -> None:
    """The kernel's names have at most 15 bytes."""
    line = b"x 1/1 2.0: PERF 31/32 62699.029852392: PERF_RECORD_SWITCH IN\n"
    (found,) = read(line)
    assert (found.kind, found.comm, found.tid) == (IN, "x 1/1 2.0: PERF", 32)


def passed_name(name: bytes) -> bytes:
    """A thread's own name, as perf script gets it."""
    record = bytearray(16) + name + b"\0"
    names.replace_comm(record, 0, len(record))
    return bytes(record[16:-1])


@pytest.mark.parametrize("name", [b"a\nb", b"\n\t1 evil (x)", b"\n\n", b"p\nq 1/2", b"\t 1 f (/x)\n"])
def test_a_name_with_a_line_end(name: bytes) -> None:
    """The name is that of the thread itself, and of the one that gets its core."""
    lines = TEXT.splitlines(keepends=True)
    first = lines[1].replace(b"sleeps", name).replace(b"next_comm=perf", b"next_comm=" + name)
    first = first.replace(name, passed_name(name), 1)
    switch = first + b"".join(lines[2:6])
    found = read(switch, lines[0].replace(b"sleeps", passed_name(name).rjust(16)), switch)
    assert [record.kind for record in found] == [SWITCH, IN, SWITCH]
    assert {(record.pid, record.tid) for record in found} == {(31, 32)}
    assert {record.comm.strip("\n") for record in found} == {name.decode().strip("\n")}
    for record in (found[0], found[2]):
        assert record.state == "uninterruptible"
        assert [frame.name for frame in record.stack] == ["main", "sleep_10ms", "__schedule"]


def test_a_name_that_looks_like_the_end_of_a_switch() -> None:
    lines = TEXT.splitlines(keepends=True)
    switch = b"".join(lines[1:6]).replace(b"next_comm=perf", b"next_comm= next_prio=1\n\t1")
    (found,) = read(switch)
    assert (found.kind, found.state, len(found.stack)) == (SWITCH, "uninterruptible", 3)
    assert read(switch.replace(b"prev_comm=sleeps", b"prev_comm=x prev_state=R "))[0].state == "uninterruptible"


def test_a_switch_without_an_end() -> None:
    """The text that follows is another record."""
    lines = TEXT.splitlines(keepends=True)
    cut = lines[1].partition(b" next_pid")[0] + b"\n"
    for follows, kind in ((lines[0], IN), (lines[7] + lines[8], SAMPLE)):
        assert [record.kind for record in read(cut + follows)] == [BAD, kind]
    assert [record.kind for record in read(cut)] == [BAD]
    assert [record.kind for record in read(cut, cut, lines[0])] == [BAD, BAD, IN]


def test_a_switch_in_the_words_of_the_plugin() -> None:
    line = b"x 31/32 62699.029877299:          1 sched:sched_switch: a:b\n:32 [120] D ==> c\nd:9 [120]\n\t 1 f (/x)\n"
    (found,) = read(line)
    assert (found.tid, found.state, [frame.name for frame in found.stack]) == (32, "uninterruptible", ["f"])


def test_equal_stacks_are_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = b"x 1/1 1.000000000:  1 cpu-clock: \n\t 1 f (/x)\n\n"
    one, two = read(sample * 2)
    assert one.stack is two.stack
    monkeypatch.setattr(records, "_MOST_STACKS", 1)
    reader = Records(all_went)
    found = list(reader.feed(sample + sample.replace(b"f", b"g") * 2))
    assert [record.stack[0].name for record in found] == ["f", "[other stacks]", "[other stacks]"]
    assert reader.left_out > 0


def test_a_line_without_an_end_is_not_kept() -> None:
    reader = Records(all_went)
    found = [record for _ in range(4) for record in reader.feed(b"x" * (1 << 15))]
    assert [record.kind for record in found] == [BAD]


def test_code_made_at_run_time() -> None:
    """Names of the code are those of the process at that time."""
    text = TEXT[TEXT.index(b"a b (c)") : TEXT.index(b"shares 31/31 62699.040000000")]
    text = text.replace(b"1543 burn (/x/shares)", b"7f001543 [unknown] (//anon)")
    code = {(31, 0x7F001543): Frame("f", "jit"), (40, 0x7F001543): Frame("g", "python")}
    reader = Records(all_went, lambda pid, address: code.get((pid, address)))

    def read_frame(text: bytes) -> Frame:
        (sample,) = reader.feed(text)
        (frame,) = sample.stack
        return frame

    other = text.replace(b"31/31", b"40/40")
    for given, name, kind in ((text, "f", "jit"), (other, "g", "python"), (text, "f", "jit")):
        frame = read_frame(given)
        assert (frame.name, frame.kind) == (name, kind)
        assert is_own(frame)
    code.clear()
    frame = read_frame(text)
    assert (frame.name, frame.kind, is_own(frame)) == ("[anon]", "native", False)


FIRST, SECOND = (b"x 7/%d 2.00000000%d:  1 cpu-clock: \n\t 1 f (/x)\n\n" % (each, each) for each in (1, 2))


def believed(text: bytes, *went: tuple[int, int, int, int]) -> list[records.Record]:
    passed = Passed()
    passed.feed(b"".join(struct.pack("=BiiQ", *each) for each in went))
    reader = Records(passed.take)
    return [record for piece in (text, b"") for record in reader.feed(piece)]


def went(tid: int, kind: int = layouts.SAMPLE) -> tuple[int, int, int, int]:
    return kind, 7, tid, 2_000_000_000 + tid


def test_a_record_that_did_not_go_to_perf_script() -> None:
    """A symbol has lines that look like those of another process; what follows them belongs to nobody."""
    forged = b"ev\n\n" + SECOND + b"y 7/2 2.000000002: PERF_RECORD_EXIT(7:2):(7:2)\n\t 1 rest (/x)\n\n"
    text = FIRST.replace(b"f (/x)", forged) + FIRST.replace(b"7/1", b"7/3")
    found = believed(text, went(1), (layouts.SAMPLE, 7, 3, 2_000_000_001))
    assert [record.kind for record in found] == [SAMPLE, FORGED, FORGED, FORGED, FORGED, SAMPLE]
    assert (found[0].tid, found[-1].tid) == (1, 3)
    assert {frame.name for record in found for frame in record.stack} == {"ev", "f"}
    assert believed(text) == [record._replace(kind=FORGED, time=0, pid=0, tid=0, comm="") for record in believed(text)]


def test_each_record_is_believed_once() -> None:
    assert [record.kind for record in believed(FIRST * 3, went(1), went(1))] == [SAMPLE, SAMPLE, FORGED, FORGED]
    assert [record.kind for record in believed(SECOND + FIRST, went(1), went(2))] == [SAMPLE, SAMPLE], "in any order"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"PERF_RECORD_SWITCH IN", layouts.SWITCH),
        (b"PERF_RECORD_SWITCH OUT preempt", layouts.SWITCH),
        (b"PERF_RECORD_FORK(7:1):(7:1)", layouts.FORK),
        (b"PERF_RECORD_COMM exec: x:7/1", layouts.COMM),
        (b"PERF_RECORD_COMM: x:7/1", layouts.COMM),
        (b"PERF_RECORD_EXIT(7:1):(7:1)", layouts.EXIT),
        (b"PERF_RECORD_LOST lost 9", layouts.LOST),
        (b"    1 cpu-clock: ", layouts.SAMPLE),
    ],
)
def test_only_its_kind_is_believed(line: bytes, kind: int) -> None:
    text = b"x 7/1 2.000000001: " + line + b"\n"
    kinds = layouts.SWITCH, layouts.FORK, layouts.COMM, layouts.EXIT, layouts.LOST, layouts.SAMPLE
    for each in kinds:
        is_forged = FORGED in {record.kind for record in believed(text, went(1, each))}
        assert is_forged is (each != kind)


def test_numbers_that_no_record_has() -> None:
    for ids in (b"9999999999/1", b"7/9999999999", b"-1/-1"):
        found = believed(FIRST.replace(b"7/1", ids), went(1))
        assert {record.kind for record in found} == {FORGED}
    assert {record.kind for record in believed(FIRST.replace(b"2.0", b"999999999999.0"), went(1))} == {FORGED}


def test_short_lines_are_not_the_begin_of_a_name() -> None:
    """Short lines would become a part of the next thread's name."""
    found = believed(b"other\n" + FIRST, went(1))
    assert [(record.kind, record.comm) for record in found] == [(BAD, ""), (SAMPLE, "x")]
