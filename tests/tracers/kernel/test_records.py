"""The layouts against bpf/include/records.h as a C compiler understands it, and against the compiled probes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from stallscope.converters.model import processes, states
from stallscope.tracers.engines.ebpf.measures import recorder, timeline
from stallscope.tracers.engines.ebpf.probes import object_path
from stallscope.tracers.kernel import ended, records
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.objects import RECORD, ObjectRecord, parse_object
from stallscope.tracers.kernel.records import (
    ExecRecord,
    Origin,
    RecordSink,
    Thread,
    ThreadRecord,
    WaitSum,
    Waker,
    pack_thread,
    parse_chain,
    parse_record,
    parse_seeds,
    parse_thread,
    parse_thread_record,
)
from stallscope.tracers.kernel.sum_table import SLOTS

HEADER = Path(__file__).resolve().parents[3] / "bpf" / "include" / "records.h"
PRELUDE = f"""
#include <stdio.h>
#include <string.h>
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef short s16;
typedef unsigned char u8;
#include "{HEADER}"
"""
KEY = Origin(ustack=1 << 63, kstack=12, object=16, tid=13, tgid=14, life=15, state=6)
SUM_KEY = Origin(ustack=21, kstack=(1 << 64) - 1, object=26, tid=23, tgid=24, life=25, state=2)
SUM = WaitSum(31, 32, 33, 34, 35, 36, 37)
THREAD = Thread(
    start=1, since=2, out=3, woken=4, on_cpu=5, runnable=6, blocked=tuple(range(41, 49)), switches=7,
    latencies=tuple(range(51, 75)), key=KEY, sum_key=SUM_KEY, sum=SUM, phase=2, creator=1 << 31,
    exiting=True, lived=9, first=17, made_in=(1 << 64) - 3,
)  # fmt: skip


def run_c(gcc: str, folder: Path, body: str) -> bytes:
    """Output of a C program with this main()."""
    source, program = folder / "layout.c", folder / "layout"
    source.write_text(f"{PRELUDE}int main(void)\n{{\n{body}\nreturn 0;\n}}\n")
    subprocess.run([gcc, "-Wall", "-Werror", "-o", program, source], check=True)
    return subprocess.run([program], capture_output=True, check=True).stdout


def fill(variable: str, fields: dict[str, object]) -> str:
    """C statements that set the fields of a struct to these values, by name."""
    lines = []
    for name, value in fields.items():
        target = f"{variable}.{'count' if name == 'waits' else name}"
        if hasattr(value, "_asdict"):
            lines.append(fill(target, value._asdict()))
        elif isinstance(value, tuple):
            lines += [f"{target}[{i}] = {item}ULL;" for i, item in enumerate(value)]
        elif isinstance(value, bytes):
            lines.append(f'memcpy({target}, "{value.decode()}", {len(value) + 1});')
        else:
            lines.append(f"{target} = {value:d}ULL;")
    return "\n".join(lines)


def written(kind: str, fields: dict[str, object], size: str = "sizeof(r)") -> str:
    """C code that writes a struct whose other bytes are 0xee."""
    return f"{{ struct {kind} r; memset(&r, 0xee, sizeof(r));\n{fill('r', fields)}\nfwrite(&r, {size}, 1, stdout); }}"


def enum_names(name: str) -> list[str]:
    (body,) = re.findall(rf"enum {name} \{{(.*?)\}};", HEADER.read_text(), re.DOTALL)
    return re.findall(r"^\s*([A-Z_]+)\b", re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL), re.MULTILINE)


def enum_values(gcc: str, folder: Path, name: str) -> dict[str, int]:
    names = enum_names(name)
    lines = [f'printf("%d\\n", (int){constant});' for constant in names]
    values = map(int, run_c(gcc, folder, "\n".join(lines)).split())
    return dict(zip(names, values, strict=True))


def test_wait_states(gcc: str, tmp_path: Path) -> None:
    values = enum_values(gcc, tmp_path, "wait_state")
    assert values.pop("WAIT_STATES") == len(records.STATES)
    assert values.pop("RUNNING") == records.RUNNING
    assert {name.removeprefix("WAIT_").lower(): value for name, value in values.items()} == {
        state: i for i, state in enumerate(records.STATES)
    }
    assert values["WAIT_PREEMPTED"] == records.PREEMPTED
    assert values["WAIT_NEW"] == records.NEW


def test_counters(gcc: str, tmp_path: Path) -> None:
    values = enum_values(gcc, tmp_path, "counter")
    assert values.pop("COUNTERS") == len(records.COUNTERS)
    assert {name.lower(): value for name, value in values.items()} == {n: i for i, n in enumerate(records.COUNTERS)}


def test_phases_and_record_types(gcc: str, tmp_path: Path) -> None:
    phases = enum_values(gcc, tmp_path, "phase")
    ours = {"PHASE_ON_CPU": records.ON_CPU, "PHASE_BLOCKED": records.BLOCKED, "PHASE_RUNNABLE": records.RUNNABLE}
    assert {name: phases[name] for name in ours} == ours
    ends = enum_values(gcc, tmp_path, "walk_end")
    assert list(ends.values()) == list(range(len(records.ENDS)))
    assert list(ends)[:2] == ["WALK_COMPLETE", "WALK_TOO_DEEP"]
    assert enum_values(gcc, tmp_path, "record_type") == {
        "RECORD_STACK": records.RECORD_STACK,
        "RECORD_EXEC": records.RECORD_EXEC,
        "RECORD_EXIT": records.RECORD_EXIT,
        "RECORD_CUT": records.RECORD_CUT,
        "RECORD_CHAIN": records.RECORD_CHAIN,
        "RECORD_IOCTL": records.RECORD_IOCTL,
        "RECORD_LOCK": records.RECORD_LOCK,
        "RECORD_STEP": records.RECORD_STEP,
        "RECORD_OBJECT": records.RECORD_OBJECT,
    }
    contexts = enum_values(gcc, tmp_path, "waker_context")
    assert list(contexts.values()) == list(range(len(contexts)))
    assert list(contexts) == ["WAKER_THREAD", "WAKER_SOFTIRQ", "WAKER_DEVICE", "WAKER_TIMER", "WAKER_CORE"]
    ours_too = (records.BY_THREAD, records.BY_SOFTIRQ, records.BY_DEVICE, records.BY_TIMER, records.BY_CORE)
    assert ours_too == tuple(contexts.values())
    assert not {records.BY_UNKNOWN, records.BY_NOBODY} & set(contexts.values())


def test_chain(gcc: str, tmp_path: Path) -> None:
    wakers = (
        Waker(ustack=1 << 63, kstack=12, tid=13, tgid=14, life=15, number=16, context=records.BY_SOFTIRQ),
        Waker(ustack=0, kstack=22, tid=0, tgid=0, life=0, number=(1 << 32) - 1, context=records.BY_DEVICE),
    )
    lines = ["struct chain_record r; memset(&r, 0xee, sizeof(r));"]
    lines += [f"r.type = {records.RECORD_CHAIN}; r.count = 2; r.id = {1 << 63 | 5}ULL;"]
    lines += [fill(f"r.of[{i}]", waker._asdict()) for i, waker in enumerate(wakers)]
    data = run_c(gcc, tmp_path, "\n".join([*lines, "fwrite(&r, sizeof(r), 1, stdout);"]))
    assert parse_chain(data) == (1 << 63 | 5, wakers)


def test_objects(gcc: str, tmp_path: Path) -> None:
    made = ObjectRecord(*range(1, 20), bytes(range(16)), bytes(range(16, 32)))
    fields = made._asdict()
    texts = {name: fields.pop(name) for name in ("local", "remote")}
    lines = ["struct object_record r; memset(&r, 0xee, sizeof(r));", fill("r", {"type": 9, **fields})]
    lines += [f"r.{name}[{i}] = {byte};" for name, text in texts.items() for i, byte in enumerate(text)]
    data = run_c(gcc, tmp_path, "\n".join([*lines, "fwrite(&r, sizeof(r), 1, stdout);"]))
    assert len(data) == RECORD.size
    assert parse_object(data) == made


def offsets(gcc: str, folder: Path, struct: str, names: list[str]) -> list[int]:
    """Offsets of these members, then the size of the struct."""
    lines = [f'printf("%zu\\n", __builtin_offsetof(struct {struct}, {name}));' for name in names]
    lines.append(f'printf("%zu\\n", sizeof(struct {struct}));')
    return list(map(int, run_c(gcc, folder, "\n".join(lines)).split()))


def test_scheduler_events(gcc: str, tmp_path: Path) -> None:
    for struct_name, dtype, known in (("sched_event", recorder.EVENT, 14), ("event_ring", recorder.RING, 6)):
        names = list(dtype.names or ())[:known]
        fields = dtype.fields
        assert fields is not None
        assert offsets(gcc, tmp_path, struct_name, names) == [*(fields[name][1] for name in names), timeline.SLOT]
        assert dtype.itemsize == timeline.SLOT
    assert offsets(gcc, tmp_path, "event_ring", ["first", "slots"])[0] == timeline._PLACE_OFFSET
    kinds = enum_values(gcc, tmp_path, "sched_event_kind")
    assert kinds == {name: getattr(recorder, name) for name in ("SWITCHED", "WOKEN", "MADE", "SAMPLED")}
    for_ever = int(run_c(gcc, tmp_path, 'printf("%d", LEFT_FOR_EVER);'))
    named = {"preempted": "runnable-preempted", "new": "runnable-preempted"}
    found = [states.BY_BITS[int(bits)] for bits in recorder.BITS]
    assert found[: len(records.STATES)] == [named.get(state, state) for state in records.STATES]
    assert found[for_ever] == states.ENDED
    assert len(found) == for_ever + 1
    exit_record = ["end", "comm", "thread.start", "thread.key.tid", "thread.key.tgid"]
    assert offsets(gcc, tmp_path, "thread_record", exit_record)[:5] == [
        8,
        16,
        timeline._EXIT_HEAD.size - 8,
        timeline._EXITED_TID,
        timeline._EXITED_TID + 4,
    ]


def test_most_frames(gcc: str, tmp_path: Path) -> None:
    assert int(run_c(gcc, tmp_path, 'printf("%d", MAX_FRAMES);')) == records.MAX_FRAMES


def test_buckets_of_waits_for_a_core(gcc: str, tmp_path: Path) -> None:
    source = (HEADER.parents[1] / "sched.bpf.c").read_text()
    (function,) = re.findall(r"^__weak (int latency_bucket\(.*?^}$)", source, re.DOTALL | re.MULTILINE)
    lengths = [n for i in range(64) for n in ((1 << i) - 1, 1 << i, (1 << i) + (1 << i >> 1))]
    lines = [f'printf("%d\\n", latency_bucket({n}ULL));' for n in lengths]
    body = "\n".join(lines)
    source_file, program = tmp_path / "buckets.c", tmp_path / "buckets"
    source_file.write_text(f"{PRELUDE}static {function}\nint main(void)\n{{\n{body}\n}}\n")
    subprocess.run([gcc, "-Wall", "-Werror", "-o", program, source_file], check=True)
    printed = subprocess.run([program], capture_output=True, check=True).stdout
    assert list(map(int, printed.split())) == [processes.latency_bucket(n) for n in lengths]
    constants = run_c(gcc, tmp_path, 'printf("%d %d", LATENCY_BUCKETS, LATENCY_SHIFT);')
    assert list(map(int, constants.split())) == [processes.LATENCY_BUCKETS, processes.LATENCY_SHIFT]


def test_wait(gcc: str, tmp_path: Path) -> None:
    data = run_c(gcc, tmp_path, written("origin", KEY._asdict()) + written("wait_sum", SUM._asdict()))
    assert len(data) == records.ORIGIN.size + records.WAIT_SUM.size
    assert Origin(*records.ORIGIN.unpack(data[: records.ORIGIN.size])) == KEY
    assert WaitSum(*records.WAIT_SUM.unpack(data[records.ORIGIN.size :])) == SUM


@pytest.mark.parametrize("comm", [b"", b"python3", b"fifteen bytes!!"])
def test_thread_record(comm: bytes, gcc: str, tmp_path: Path) -> None:
    fields = {"type": records.RECORD_EXIT, "end": 99, "comm": comm, "thread": THREAD}
    data = run_c(gcc, tmp_path, written("thread_record", fields))
    assert len(data) == records.THREAD_RECORD_SIZE
    assert parse_record(data) == ThreadRecord(99, comm, THREAD, exited=True)
    assert parse_thread_record(data, exited=False) == ThreadRecord(99, comm, THREAD, exited=False)


def test_thread(gcc: str, tmp_path: Path) -> None:
    data = run_c(gcc, tmp_path, written("thread", THREAD._asdict()))
    assert len(data) == records.THREAD_SIZE
    assert parse_thread(data) == THREAD


def test_packed_thread_is_a_new_one() -> None:
    data = pack_thread((7, 5), 4, "uninterruptible", records.BLOCKED, 1 << 40)
    assert len(data) == records.THREAD_SIZE
    thread = parse_thread(data)
    now = 1 << 40
    key = Origin(0, 0, 0, 7, 5, 4, records.STATES.index("uninterruptible"))
    nothing = Origin(0, 0, 0, 0, 0, 0, 0)
    sums = (0,) * 8, 0, (0,) * 24
    waits = WaitSum(*[0] * 7)
    expected = Thread(now, now, now, 0, 0, 0, *sums, key, nothing, waits, records.BLOCKED, 0, lived=now, first=4)
    assert thread == expected


def test_other_records(gcc: str, tmp_path: Path) -> None:
    execs = {"type": records.RECORD_EXEC, "tgid": 4711, "time": 1 << 50, "lived": 1 << 49, "life": 3, "first": 2}
    data = run_c(gcc, tmp_path, written("exec_record", execs))
    assert parse_record(data) == ExecRecord(4711, 1 << 50, 1 << 49, 3, 2)
    seeds = run_c(
        gcc, tmp_path, written("seed_record", {"tid": 2, "tgid": 1}) + written("seed_record", {"tid": 1, "tgid": 1})
    )
    assert parse_seeds(seeds) == [(2, 1), (1, 1)]
    assert parse_seeds(b"") == []


def test_compiled_probes_have_the_same_layout() -> None:
    compiled = Object(object_path())
    try:
        lost, threads = compiled.find_map("lost_waits"), compiled.find_map("thread_hash")
        assert lost.value_size == records.WAIT_SUM.size
        assert lost.max_entries == SLOTS * len(records.STATES)
        assert (threads.key_size, threads.value_size) == (4, records.THREAD_SIZE)
        assert compiled.find_map("counters").max_entries == len(records.COUNTERS)
        assert compiled.find_map("stack_scratch").value_size == 16 + 8 * records.STACK_WORDS
    finally:
        compiled.close()


def test_sink_takes_stacks_as_the_probes_send_them(gcc: str, tmp_path: Path) -> None:
    frames = ((1 << 64) - 1, 2, 3)
    stack = {"type": records.RECORD_STACK, "count": 3, "end": 0, "id": 1 << 63, "frames": frames}
    size = "__builtin_offsetof(struct stack_record, frames) + 3 * sizeof(u64)"
    full = {"type": records.RECORD_STACK, "count": 127, "end": 4, "id": 5, "frames": tuple(range(127))}
    whole = "__builtin_offsetof(struct stack_record, frames) + 127 * sizeof(u64)"
    sink = RecordSink()
    sink(run_c(gcc, tmp_path, written("stack_record", stack, size)))
    sink(run_c(gcc, tmp_path, written("stack_record", full, whole)))
    assert sink.stacks.find([1 << 63, 5, 7]) == ({1 << 63: frames, 5: tuple(range(127))}, {5: 4})


def test_sums_add_up() -> None:
    one = WaitSum(1, 10, 10, 10, 5, 5, 5)
    other = WaitSum(2, 8, 3, 5, 9, 1, 8)
    assert one + other == WaitSum(3, 18, 3, 10, 14, 1, 8)
    with pytest.raises(TypeError):
        one + 1  # type: ignore[operator]


def test_sink_knows_who_has_not_left_for_good(gcc: str, tmp_path: Path) -> None:
    sink = RecordSink()
    for exiting in (True, False):
        thread = THREAD._replace(exiting=exiting)
        fields = {"type": records.RECORD_EXIT, "end": 99, "comm": b"", "thread": thread}
        sink(run_c(gcc, tmp_path, written("thread_record", fields)))
        assert sink.exiting == exiting


def test_fields_of_packed_records(gcc: str, tmp_path: Path) -> None:
    dtype = ended.record_type()
    names = [name for name in dtype.names or () if name not in ("walk_end", "pad", "type", "cpu", "end", "comm")]
    members = ["type", "cpu", "end", "comm", *(f"thread.{name}" for name in names), "thread.end"]
    fields = dtype.fields
    assert fields is not None
    found = [fields[name][1] for name in ("type", "cpu", "end", "comm", *names, "walk_end")]
    assert offsets(gcc, tmp_path, "thread_record", members) == [*found, dtype.itemsize]
    assert offsets(gcc, tmp_path, "origin", list(fields["key"][0].names)) == [
        *(place for _, place in fields["key"][0].fields.values()),
        records.ORIGIN.size,
    ]
    assert offsets(
        gcc, tmp_path, "thread_record", ["thread.start", "thread.exiting", "thread.first", "thread.made_in"]
    ) == [
        ended._START_OFFSET,
        ended._EXITING_OFFSET,
        ended._FIRST_OFFSET,
        ended._MADE_IN_OFFSET,
        records.THREAD_RECORD_SIZE,
    ]


def test_account_since_a_boundary() -> None:
    asleep = THREAD._replace(phase=records.BLOCKED, cut=50, out=40, woken=0, since=40)
    record = ThreadRecord(300, b"x", asleep, exited=False)
    assert records.since_boundary(record, 50, 60) == record
    found = records.since_boundary(record, 200, 200)
    assert (found.end, found.comm, found.thread.key) == (300, b"x", asleep.key)
    assert (found.thread.start, found.thread.since, found.thread.out, found.thread.woken) == (200, 200, 200, 0)
    assert (found.thread.on_cpu, found.thread.runnable, sum(found.thread.blocked), found.thread.switches) == (0,) * 4
    assert (found.thread.sum.waits, sum(found.thread.latencies), found.thread.cut) == (0, 0, 200)
    woken = asleep._replace(phase=records.RUNNABLE, woken=45, since=45)
    found = records.since_boundary(record._replace(thread=woken), 200, 200)
    assert (found.thread.out, found.thread.woken, found.thread.since) == (200, 200, 200)
    runs = asleep._replace(phase=records.ON_CPU, out=40, since=45)
    found = records.since_boundary(record._replace(thread=runs), 200, 200)
    assert (found.thread.out, found.on_cpu) == (0, 100)
