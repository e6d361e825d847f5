from __future__ import annotations

import io
import random

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.perf import frames as perf_frames
from stallscope.converters.readers.perf import script as perf
from stallscope.converters.readers.perf.inline import Inliner, Place

A = Module("/bin/a")


def read(text: bytes, **options: object) -> Profile:
    return perf.read(Source(io.BytesIO(text), "x"), ReadOptions(**options))  # type: ignore[arg-type]


def sample(head: str, *frames: str) -> bytes:
    return "\n".join([head, *(f"\t 4{i:03} {name}+0x{i} (/bin/a)" for i, name in enumerate(frames)), "", ""]).encode()


def test_values_and_order() -> None:
    text = sample("a b 1/2 [000] 1.5: 100 cycles:", "leaf", "main") + sample(
        "a b 1/3 [001] 1.6: 50 cycles:", "leaf", "main"
    )
    profile = read(text)
    stack = (Frame("main", "native", A), Frame("leaf", "native", A))
    assert profile.value_types == [ValueType("samples", "count"), ValueType("period", "cycles")]
    assert profile.samples == [Sample(stack, (2, 150), (("process", "a b"),))]
    labels = (("pid", 1), ("process", "a b"), ("thread", "a b"), ("tid", 2))
    assert [each.values for each in read(text, pid=True).samples] == [(2, 150)]
    assert read(text, tid=True).samples[0] == Sample(stack, (1, 100), labels)


def test_chunks_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = random.Random(1)
    parts = [b"# a comment\n", b"\n", b"\tnot a frame\n", sample("java 9 1.5: cycles:", "Lx/y", "m")]
    parts += [
        sample(f"p{i} {i + 1}/{i + 2} 1.5: {i} {'cycles' if i % 3 else 'faults'}:", *"abcdef"[: i % 6])
        for i in range(9)
    ]
    text = b"".join(choice.choice(parts) for _ in range(400)) + sample("z 1/2 3.3: 1 cycles:", "end")
    whole = read(text, event="cycles")
    for size in (1, 7, 100):
        tally = perf._Tally(ReadOptions(event="cycles"), "x")
        pieces = [text[i : i + size * 40] for i in range(0, len(text), size * 40)]
        rest = b""
        for piece in pieces:
            data = rest + piece
            cut = data.rfind(b"\n") + 1
            rest = data[cut:]
            if cut:
                tally.add(data[:cut])
        again = tally.profile()
        assert sorted(again.samples, key=repr) == sorted(whole.samples, key=repr)
        assert again.lost == whole.lost
        assert worded(again.comments) == worded(whole.comments)


def test_place_of_the_first_bad_line() -> None:
    good = sample("a 1/2 1.5: 1 cycles:", "f")
    bad = b"a 1/2 1.5: 1 cycles:\n\t what?\n\t 40 f (/bin/a)\n\n"
    profile = read(good * 5 + bad * 3 + good)
    assert profile.total("samples") == 9
    assert profile.lost == {"lines not understood": 3}
    assert worded(profile.comments)[0].startswith("x, line 17: expected a sample of perf script")
    with pytest.raises(StallscopeError, match="x, line 1: expected a sample"):
        read(b"hello\nworld\n\n")


HEADER = b"a 1/2 1.5: 7 cycles:\n"


@pytest.mark.parametrize("end", [b"\n", b"\n\n", b"", b"\r\n"])
@pytest.mark.parametrize(
    "frames", [b"\t 40 f (/bin/a)", b"\t 40 f (/bin/a)\n\t 50 main (/bin/a)", b"\t 40 f\n\t 50 main"]
)
def test_a_last_sample_without_the_empty_line_counts(frames: bytes, end: bytes) -> None:
    for before in (b"", sample("a 1/2 1.5: 1 cycles:", "f")):
        profile = read(before + HEADER + frames + end)
        assert profile.total("period") == 7 + bool(before)
        assert profile.lost == {}


@pytest.mark.parametrize(
    "frames",
    [b"\t 40 f (/bin", b"\t 40 f", b"\t 4", b"\t 40 f (/bin/a)\n\t 50 mai", b"\t 40 f (/bin/a)\n\t 50 main (/bi"],
)
def test_a_line_that_is_cut_is_counted(frames: bytes) -> None:
    profile = read(sample("a 1/2 1.5: 1 cycles:", "f") + HEADER + frames)
    assert profile.total("samples") == 1
    assert profile.lost == {"samples cut short at the end": 1}


def test_what_has_no_header_is_counted() -> None:
    profile = read(b"\t 40 f (/bin/a)\n\n" + sample("a 1/2 1.5: 1 cycles:", "f"))
    assert profile.total("samples") == 1
    assert profile.lost == {"stacks without a header": 1}


@pytest.mark.parametrize(
    ("event", "unit"),
    [
        ("cpu-clock", "nanoseconds"),
        ("task-clock:ppp", "nanoseconds"),
        ("cpu-clock/freq=99/u", "nanoseconds"),
        ("sched:sched_stat_runtime", "nanoseconds"),
        ("cycles:u", "cycles:u"),
        ("my-cpu-clock", "my-cpu-clock"),
        ("cpu-clocks", "cpu-clocks"),
    ],
)
def test_periods_of_clocks_are_a_time(event: str, unit: str) -> None:
    assert read(sample(f"a 1/2 1.5: 250000 {event}:", "f")).value_types[1] == ValueType("period", unit)
    assert read(sample(f"a 1/2 1.5: {event}:", "f")).value_types[1] == ValueType("period", event)


def test_the_default_is_the_period_where_there_is_one() -> None:
    assert read(sample("a 1/2 1.5: 250000 cycles:", "f")).default_value == "period"
    assert read(sample("a 1/2 1.5: cycles:", "f")).default_value == ""


def test_samples_that_were_recorded_without_stacks_are_told() -> None:
    lines = [
        b"               a 1/2 [000] 1.5:          5 cycles:u:  ffffffff8100 f+0x1 (/bin/a)\n",
        b"            a bc   3 [001] 1.6:          7 cycles:u:          4100 g(int)+0x1 (/lib/x (deleted))\n",
        b"               a 1/2 [000] 1.7:          9 cycles:k:  ffffffff8100 f+0x1 ([kernel.kallsyms])\n",
    ]
    for text in (b"".join(lines), b"\n".join(lines), b"".join(line.lstrip() for line in lines)):
        assert perf.sniff(text)
        profile = read(text)
        found = {(sample.label("process"), sample.stack[0].name): sample.values for sample in profile.samples}
        assert found == {("a", "f"): (1, 5), ("a bc", "g"): (1, 7)}
        assert profile.lost == {"samples of other events": 1}
        assert worded(profile.comments) == ["recorded without stacks (perf record -g): one function for each sample"]
    profile = read(lines[0] + b"\n" + sample("a 1/2 1.5: 1 cycles:u:", "f"))
    assert (profile.total("samples"), profile.lost) == (2, {})


def test_other_events_on_one_line_are_no_samples() -> None:
    for line in (b"a 1 [000] 1.5: sched:sched_switch: a:1 [120] S ==> b:2 [120]\n", b"a 1 1.5: x: what (ever)\n"):
        with pytest.raises(StallscopeError, match=r"expected a sample .*record with -g"):
            read(line * 5)


def test_cache_that_is_full_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"".join(
        sample(f"a {i % 5}/{i % 7 + 1} 1.5: {i} cycles:", f"f{i % 50}", f"g{i % 9}", "m") for i in range(500)
    )
    whole = read(text, tid=True)
    monkeypatch.setattr(perf, "_MAX_CACHED", 300)
    monkeypatch.setattr(perf, "_MAX_LINES", 3)
    monkeypatch.setattr(perf, "_MAX_LEAVES", 2)
    monkeypatch.setattr(perf_frames, "_MAX_LINES", 3)
    assert read(text, tid=True) == whole


def test_without_any_header() -> None:
    """perf script -F ip,sym: a blank line where the header would be."""
    text = b"\n\t 40 leaf\n\t 50 main\n\n" * 3 + b"\n\t 41 other\n\n" + b"\n\n\n"
    assert perf.sniff(text)
    profile = read(text)
    assert profile.samples == [
        Sample((Frame("main"), Frame("leaf")), (3, 3)),
        Sample((Frame("other"),), (1, 1)),
    ]
    assert profile.lost == {}
    mixed = read(sample("a 1/2 1.5: 7 cycles:", "f") + text)
    assert mixed.total("samples") == 1
    assert mixed.lost == {"stacks without a header": 4}


def test_leaf_by_column_is_the_leaf_by_parsing() -> None:
    """The part that is cut off by column must be what the parser would leave out, or the line is parsed."""
    usual = b"\t%16x f+0x1 (/bin/a)"
    odd = [b"\t%16x f+0xzz (/bin/a)" % 64, b"\t%16x f+0x1 (/bin/a) (b)" % 64, b"\t         what no f+0x1 (/bin/a)"]
    odd += [b"\t%12x f+0x1 (/bin/a)" % 64, b" %16x f+0x1 (/bin/a)" % 64, b"\t          64-32 f+0x1 (/bin/a)"]
    for line in [usual % 65, usual % 2**63, *odd]:
        block = b"a 1/2 1.5: 1 cycles:\n%b\n\n"
        alone = read(block % line)
        both = read(block % (usual % 64) * 2 + block % line)
        known = Sample((Frame("f", "native", A),), (2, 2), (("process", "a"),))
        expected = {known[0]: 2}
        for each in alone.samples:
            expected[each.stack] = expected.get(each.stack, 0) + 1
        assert {each.stack: each.values[0] for each in both.samples} == expected


def test_leaves_that_look_alike_below_the_same_callers() -> None:
    """The first leaf's function is remembered with its callers: others must not be taken for it."""
    callers = b"\t            4100 main+0x1 (/bin/a)"
    leaves = {
        b"\t            4000 f+0x1 (/bin/a)": "f",
        b"\t            4000 f+0xff (/bin/a)": "f",
        b"\t            4000 f+0x1 (/bin/aa)": "f",
        b"\t            4000 f+0x (/bin/a)": "f+0x",
        b"\t            4000 f+0x1g (/bin/a)": "f+0x1g",
        b"\t            4000 f+0x1+0x2 (/bin/a)": "f+0x1",
        b"\t         40 00 f+0x1 (/bin/a)": "00 f",
        b"\t            4000 f2+0x1 (/bin/a)": "f2",
        b"                40004 f+0x1 (/bin/a)": "f",
    }
    text = b"".join(b"a 1/2 1.5: 1 cycles:\n%b\n%b\n\n" % (leaf, callers) for leaf in leaves)
    found = [(each.stack[-1].name, each.values[0]) for each in read(text * 3).samples]
    expected = [("f", 9), ("f", 3), *((name, 3) for name in leaves.values() if name != "f")]
    assert sorted(found) == sorted(expected)


def test_source_lines_below_the_frames() -> None:
    text = b"""a 1/2 1.5: 1 cycles:
\t            4000 add+0x1
  a b.c:3 (inlined)
\t            4000 leaf+0x1 (/bin/a)
  b.c:9
\t            4100 main+0x1 (/bin/a)
  ??:0
\tffffffff81000000 k+0x1 ([kernel.kallsyms])
  [kernel.kallsyms][ffffffff81000000]

"""
    stack = (
        Frame("k", "kernel", Module("[kernel.kallsyms]")),
        Frame("main", "native", A),
        Frame("leaf", "native", A, 0, "b.c", 9),
        Frame("add", "native", None, 0, "a b.c", 3),
    )
    bad = b"a 1/2 1.5: 1 cycles:\n\t what?\n\n"
    for source in (text, text.replace(b"\n", b"\r\n")):
        for copies in (1, 30_000 // len(text) * 10):
            profile = read(source * copies + bad)
            assert [(each.stack, each.values) for each in profile.samples] == [(stack, (copies, copies)), ((), (1, 1))]
            assert profile.lost == {"lines not understood": 1}
            assert worded(profile.comments)[0].startswith(f"x, line {10 * copies + 2}: ")


def test_branch_stacks_end_a_sample_and_are_told() -> None:
    branches = b"leaf+0x26 (/bin/a)/leaf+0x11 (/bin/a)/P/-/-/1 [unknown]/main+0x1 (/bin/a)/M/-/-/0"
    for line in (b" 0x4000/0x5000/P/-/-/0 0x1/0x2/M/-/-/3 ", branches, b" 0x4000/0x5000/PN/-/-/1/COND/- "):
        one = sample("a 1/2 1.5: 1 cycles:", "f", "main")[:-1] + line + b"\n"
        for text in (one * 3, (one + b"\n") * 3):
            profile = read(text)
            assert [each.values for each in profile.samples] == [(3, 3)]
            assert [frame.name for frame in profile.samples[0].stack] == ["main", "f"]
            assert profile.lost == {"branch stacks": 3}
    with pytest.raises(StallscopeError, match="record with -g"):
        read(b"a 1/2 1.5: 1 cycles:  4000 f+0x1 (/bin/a) 0x4000/0x5000/P/-/-/0\n" * 3)


def test_inlined_functions_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def places(_: object, address: bytes, function: bytes, module: bytes) -> list[Place]:
        assert (address, function, module) == (b"4000", b"leaf+0x0", b"/bin/a")
        return [Place(b"inner", b"a.c:3"), Place(b"leaf", b"a.c:9")]

    monkeypatch.setattr(Inliner, "places", places)
    text = sample("a 1/2 1.5: 1 cycles:", "leaf")
    assert [frame.name for frame in read(text).samples[0].stack] == ["leaf"]
    assert [frame.name for frame in read(text, inline=True).samples[0].stack] == ["leaf", "inner"]
    (named,) = read(text, inline=True, context=True).samples
    assert named.stack == (
        Frame("leaf:a.c:9", "native", A, 0, "a.c", 9),
        Frame("inner:a.c:3", "native", A, 0, "a.c", 3),
    )


def test_a_blank_symbol_is_unknown() -> None:
    lines = ("\t 40  (/bin/a)", "\t 40 (/bin/a)", "\t 40 +0x1 (/bin/a)", "\t 40 [unknown] (/bin/a)")
    for line in lines:
        (only,) = read(f"a 1/2 1.5: 1 cycles:\n{line}\n\n".encode()).samples
        assert [frame.name for frame in only.stack] == ["[a]"], line


def test_text_whose_lines_never_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = random.Random(1)
    modules = ["/bin/a", "/bin/b (deleted)"]
    parts = []
    for i in range(400):
        lines = [
            f"\t{choice.randrange(1 << 44):16x} {name}+{choice.randrange(1 << 20):#x} ({choice.choice(modules)})"
            for name in choice.choices(["f", "operator+", "g<int>", "[unknown]", "a->b"], k=5)
        ]
        head = f"comm+0x{i % 3} (x) {i % 5}/{i % 7 + 1} 1.5: {i} cycles:"
        parts.append("\n".join([head, *lines, "", ""]).encode())
    parts += [b"\tno frame+0x12\n", sample("a 1/2 1.5: 7 cycles:", "f"), b"a 1/2 1.5: 7 cycles:\n\t 40 f+0x1 (/bin"]
    whole = read(b"".join(parts), tid=True)
    monkeypatch.setattr(perf, "_MANY", 0)
    tally = perf._Tally(ReadOptions(tid=True), "x")
    for part in parts:
        tally.add(part)
    again = tally.profile()
    assert tally._placeless
    assert sorted(again.samples, key=repr) == sorted(whole.samples, key=repr)
    assert (again.lost, worded(again.comments)) == (whole.lost, worded(whole.comments))
    tally = perf._Tally(ReadOptions(addrs=True), "x")
    for part in parts:
        tally.add(part)
    assert not tally._placeless
