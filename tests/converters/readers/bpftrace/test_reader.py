from __future__ import annotations

import io
import json

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.bpftrace import reader as bpftrace

KERNEL, USER = "\n    schedule+46\n    entry_SYSCALL_64_after_hwframe+61\n", "\n    read+13\n    main+1\n"
BOTH = "main;read;entry_SYSCALL_64_after_hwframe_[k];schedule_[k]"


def read(text: str, size: int = 1 << 20, **options: object) -> Profile:
    data = text.encode(errors="surrogateescape")
    source = Source(io.BytesIO(data), "x")
    whole = io.BytesIO(data)
    source.read = lambda _=0: whole.read(size)  # type: ignore[method-assign, assignment]
    return bpftrace.read(source, ReadOptions(**options))  # type: ignore[arg-type]


def folded(profile: Profile) -> list[str]:
    return [
        ";".join(frame.name + ("_[k]" if frame.kind == "kernel" else "") for frame in each.stack)
        + f" {each.values[0]} {dict(each.labels)}"
        for each in profile.samples
    ]


def test_equal_stacks_add_up() -> None:
    text = f"Attaching 1 probe...\n@[{USER}]: 2\n@[{USER.replace('13', '99')}]: 3\n\n@[{USER}]: 4\n\n"
    assert folded(read(text)) == ["main;read 9 {}"]


@pytest.mark.parametrize(
    ("keys", "stack"),
    [
        (f"{KERNEL}, {USER}, my app", BOTH),
        (f"{USER}, {KERNEL}, my app", BOTH),
        (f"my app, {KERNEL}, {USER}", BOTH),
        (f"{KERNEL}, my app, {USER}", BOTH),
        (f"{USER}, \n, my app", "main;read"),
        (f"\n, {USER}, my app", "main;read"),
        (", my app", ""),
    ],
)
def test_order_of_keys(keys: str, stack: str) -> None:
    assert folded(read(f"@[{keys}]: 5\n")) == [f"{stack} 5 {{'process': 'my app'}}"]
    compact = keys.replace(", ", ",").replace("    ", "")
    document = json.dumps({"type": "map", "data": {"@": {compact: 5}}})
    assert folded(read(document)) == [f"{stack} 5 {{'process': 'my app'}}"]


def test_numbers_are_ids_on_request() -> None:
    text = f"@[{USER}, app, 12, 13]: 1\n@[{USER}, app, 12, 14]: 1\n"
    assert folded(read(text)) == ["main;read 2 {'process': 'app'}"]
    assert folded(read(text, pid=True)) == ["main;read 2 {'pid': 12, 'process': 'app'}"]
    assert [dict(each.labels)["tid"] for each in read(text, tid=True).samples] == [13, 14]


def test_one_map_is_read() -> None:
    text = f"@start[4711]: 99\n@a[{USER}]: 1\n@b[{USER}]: 10\n@a[{KERNEL}]: 2\n@n: 3\n"
    assert read(text).total("samples") == 3
    assert read(text).lost == {"entries without a stack": 2, "entries of other maps": 1}
    for name in ("b", "@b"):
        assert folded(read(text, event=name)) == ["main;read 10 {}"]


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("", ValueType("samples", "count"), 5),
        ("ns", ValueType("time", "nanoseconds"), 5),
        ("usecs", ValueType("time", "nanoseconds"), 5000),
        ("bytes", ValueType("bytes", "bytes"), 5),
        ("nsomething", ValueType("samples", "count"), 5),
    ],
)
def test_units_by_the_name_of_the_map(name: str, kind: ValueType, value: int) -> None:
    found = read(f"@{name}[{USER}]: 5\n")
    assert (found.value_types, found.samples[0].values) == ([kind], (value,))


def test_what_is_no_sum_is_counted() -> None:
    bucket = "[1, 2)                 9 |@@@@@@@@@@@@@@|\n"
    text = f"@[{USER}]:\n{bucket}{bucket}\n@[{USER}]: -5\n@[{USER}]: count 3, average 5, total 15\n@h: \n{bucket}"
    text += f"printed: 5\n@[{USER}]: 7\nLost 5 events\nmore\n@[\n cut"
    found = read(text)
    assert folded(found) == ["main;read 7 {}"]
    assert found.lost == {
        "histograms": 2,
        "values other than sums": 2,
        "lines of other output": 2,
        "entries cut short": 1,
    }
    assert worded(found.comments)[0].startswith("x, line 25: expected an entry of a map")


def test_json() -> None:
    pairs = '{"\\n    read+1\\n,a": 1, "\\n    read+1\\n,a": 2, "\\n    \\"q\\"+1\\n,a": "4", "k": 8}'
    text = '{"type": "attached_probes", "data": {"probes": 1}}\n{"type": "map", "data": {"@": ' + pairs + "}}\n"
    text += '{"type": "hist", "data": {"@": {"x": []}}}\n{"type": "lost_events", "data": {"events": 6}}\n'
    text += '{"type": "map", "data": {"@": {"\\n f+1\\n": 1.5, "\\n g+1\\n": {"count": 3}}}}\n[\n'
    text += "[" * 5000 + "\n" + '{"type": "map", "data": {"@": {"\\ud800\\n f+1\\n": 1}}}\n' + "9" * 5000
    found = read(text)
    assert folded(found) == ["read 3 {'process': 'a'}", "\"q\" 4 {'process': 'a'}"]
    assert found.lost == {
        "entries without a stack": 1,
        "histograms": 1,
        "lost events": 6,
        "values other than sums": 2,
        "lines not understood": 4,
    }
    assert worded(found.comments)[0].startswith("x, line 6: ")


def test_chunks_of_any_size_give_the_same() -> None:
    text = f"Attaching 1 probe...\n\n@[{USER}, a]: 2\n\n@[\n cut\n@[{KERNEL}, {USER}, b]: 3\n@s: 4\n@[{USER}, a]: 2\n"
    whole = read(text)
    assert whole.total("samples") == 7
    assert worded(whole.comments)[0].startswith("x, line 8: ")
    for size in (1, 7, 50):
        assert read(text, size) == whole


def test_nothing_understood() -> None:
    with pytest.raises(StallscopeError, match="line 1: expected an entry of a map"):
        read("@[\n a\n")


def test_bytes_that_are_no_text_survive() -> None:
    (sample,) = read("@[\n a\udcff+1\n, c\udcfe]: 1\n").samples
    assert (sample.stack[0].name, sample.labels) == ("a\udcff", (("process", "c\udcfe"),))


def test_sniff() -> None:
    assert bpftrace.sniff(b"Attaching 1 probe...\n\n@[\n    a+1\n]: 1\n")
    assert bpftrace.sniff(b"@ns[comm, \n    a+1\n]: 1\n")
    assert bpftrace.sniff(b'{"type": "attached_probes", "data": {"probes": 1}}\n')
    assert not bpftrace.sniff(b'{"profiles": [], "shared": {}}')
    assert not bpftrace.sniff(b"@[x 1/2 1.5: 1 cycles:\n\t 40 f (/bin/a)\n\n")
    assert not bpftrace.sniff(b"@[a;b 1\n")


@pytest.mark.parametrize(
    ("text", "event", "cause", "remedy"),
    [
        ("@a[]: 1\n@a[sh]: 2\n", "", "no map has stacks that can be read: @a: 2 entries without a stack", "@[kstack"),
        ("@a[sh]: 2\n@b[\nf\n]: 3\n", "a", "the map @a has no stacks that can be read: 1 entry without", "of: @b"),
        ("@a[\nf\n]: \n[1] 5 |@@|\n\n@b[\nf\n]: 3\n", "@a", "the map @a has no stacks that can be read: 1 hist", "@b"),
        ("@a: 5\n@b[\nf\n]: 3\n", "@a", "the map @a has no stacks that can be read: 1 entry without a stack", "@b"),
        ("@a[\nf\n]: count 1, average 2, total 3\n", "", "that can be read: @a: 1 value other than sums", "@[kstack"),
        ('{"type": "map", "data": {"@a": {"sh": 5}}}\n', "", "be read: @a: 1 entry without a stack", "@[kstack"),
        ("@a[sh]: 2\n@b[\nf\n]: 3\n", "c", "there is no map called @c", "choose one of: @b"),
    ],
)
def test_maps_without_stacks_are_told_with_what_they_have(text: str, event: str, cause: str, remedy: str) -> None:
    with pytest.raises(StallscopeError) as caught:
        read(text, event=event)
    assert cause in caught.value.cause
    assert remedy in caught.value.remedy


def test_a_map_of_zeros_is_there() -> None:
    assert read("@a[\nf\n]: 0\n@b[\nf\n]: 3\n", event="a").samples == []


def test_json_that_is_cut_is_told_as_cut() -> None:
    text = '{"type": "map", "data": {"@": {"\\n    read+1\\n,a": 12, "\\n  main+1\\n": 3}}}'
    for end in (len(text) - 1, len(text) - 5, len(text) - 20, 40, 31):
        with pytest.raises(StallscopeError, match="x is cut short: it ends in line 2, within its JSON"):
            read('{"type": "attached_probes", "data": {"probes": 1}}\n' + text[:end])
        found = read(f"{text}\n{text[:end]}")
        assert (found.total("samples"), found.lost) == (15, {"messages cut short at the end": 1})
    assert read(text).lost == {}
    with pytest.raises(StallscopeError, match="line 1: expected an entry"):
        read('{"type": "map", "data": {"@": {"a" 3}}}')
