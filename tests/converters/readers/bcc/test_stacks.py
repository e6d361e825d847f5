from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.bcc import reader as bcc
from stallscope.converters.readers.bcc import stacks as bcc_stacks

OWNER = "    -                my app (12)\n"
KERNEL = "    schedule\n    do_syscall_64\n    entry_SYSCALL_64_after_hwframe\n"
USER = "    read(int, char)\n    main\n"


def read(text: str, *, pid: bool = False) -> Profile:
    return bcc.read(Source(io.BytesIO(text.encode(errors="surrogateescape")), "x"), ReadOptions(pid=pid))


def kinds(profile: Profile) -> list[tuple[str, str]]:
    (sample,) = profile.samples
    return [(frame.name, frame.kind) for frame in sample.stack]


BOTH = [
    ("main", "native"),
    ("read(int, char)", "native"),
    ("entry_SYSCALL_64_after_hwframe", "kernel"),
    ("do_syscall_64", "kernel"),
    ("schedule", "kernel"),
]


def test_stacks_are_added_up_by_process() -> None:
    one = f"{KERNEL}{USER}{OWNER}        5\n\n"
    profile = read("Sampling at 49 Hertz of all threads by user + kernel stack.\n\n" + one * 2)
    assert profile.value_types == [ValueType("samples", "count")]
    assert kinds(profile) == BOTH
    assert [(each.values, each.labels) for each in profile.samples] == [((10,), (("process", "my app"),))]
    assert profile.lost == {}
    assert read(one, pid=True).samples[0].labels == (("pid", 12), ("process", "my app"))


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        (f"{KERNEL}    --\n{USER}", BOTH),
        ("    k\n    --\n    u\n", [("u", "native"), ("k", "kernel")]),
        (USER, BOTH[:2]),
        (KERNEL, BOTH[2:]),
        ("", []),
    ],
)
def test_whose_a_frame_is(stack: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(read(f"{stack}{OWNER}        1\n")) == expected


def test_off_cpu_times_are_microseconds() -> None:
    profile = read(f"Tracing off-CPU time (us) of PID 12 by user + kernel stack for 1 secs.\n{USER}{OWNER}        7\n")
    assert profile.value_types == [ValueType("off-cpu", "nanoseconds")]
    assert profile.total("off-cpu") == 7000


def test_stackcount() -> None:
    head = 'Tracing 1 functions for "t:sched:sched_switch"... Hit Ctrl-C to end.\n\n'
    profile = read(f"{head}  g\n  f\n    3\n\n  f\n    comm;[x] [77]\n    4\n\nDetaching...\n", pid=True)
    assert [([f.name for f in each.stack], each.values, each.labels) for each in profile.samples] == [
        (["f", "g"], (3,), ()),
        (["f"], (4,), (("pid", 77), ("process", "comm;[x]"))),
    ]
    assert profile.lost == {}


def test_what_is_left_out_is_counted() -> None:
    profile = read(f"hello\n{USER}{OWNER}        1\n        2\n{USER}{OWNER}        {'9' * 19}\n    f\n")
    assert [each.values for each in profile.samples] == [(1,)]
    assert profile.lost == {"lines not understood": 3, "stacks without a value at the end": 1}
    assert worded(profile.comments) == [f"x, line 1: expected {bcc_stacks.EXPECTED}"]


def test_nothing_useful_is_refused() -> None:
    with pytest.raises(StallscopeError, match="x, line 2: expected a stack of bcc"):
        read('Tracing 2 functions for "x"... Hit Ctrl-C to end.\nhello\n')


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (f"{USER}{OWNER}        1\n", True),
        (f"{USER}{OWNER}\n", False),
        (f"{USER}        1\n", False),
        ("a;-;b 1\n", False),
        ("", False),
    ],
)
def test_sniff(text: str, known: bool) -> None:
    assert bcc_stacks.sniff(text.encode()) is known


@given(st.lists(st.sampled_from([KERNEL, USER, OWNER, "        3\n", "    --\n", "\n", "x", "\udcff", "\t1\n"])))
def test_anything_is_read_or_refused(parts: list[str]) -> None:
    try:
        profile = read(f"{USER}{OWNER}        1\n" + "".join(parts))
    except StallscopeError:
        return
    assert profile.total("samples") >= 1


def test_a_line_with_a_nul_byte_is_skipped() -> None:
    text = f"{KERNEL}    x\0y\n{USER}{OWNER}        5\n\n"
    assert bcc.sniff(text.encode())
    profile = read(text)
    assert kinds(profile) == BOTH
    assert profile.lost == {"lines with a NUL byte": 1}
    assert worded(profile.comments) == ["x, line 4: expected text without NUL bytes"]
