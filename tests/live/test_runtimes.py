"""Stacks of C libraries without unwind rules, of Go, and of 32-bit code: complete where they can be, and right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from runtimes import Built, MissingError, build
from stacks_truth import native
from stallscope.converters.model import Profile
from stallscope.converters.phrases.remarks import worded
from test_walks import trace

pytestmark = pytest.mark.usefixtures("live")

Require = Callable[[bool, str], None]
WHOLE = "of the time in user code is in complete stacks"
CALLED = {
    "in_cond": ["pthread_cond_timedwait"],
    "in_sem": ["sem_timedwait"],
    "in_sleep": ["usleep"],
    "in_qsort": ["compare", "usleep"],
    "in_read": ["read"],
}
"""Functions of the workers, and what they call, among others: from the outermost to the innermost."""


@pytest.fixture
def built(tmp_path: Path, require: Require) -> Callable[[str], Built]:
    def make(name: str) -> Built:
        try:
            return build(name, tmp_path)
        except MissingError as error:
            require(False, str(error))
            raise AssertionError from error

    return make


def traced(program: Built, seconds: float = 2.5) -> Profile:
    with program.running() as child:
        return trace(child.pid, seconds)[1]


def incomplete(profile: Profile) -> list[str]:
    """Comments on stacks that are not complete, unless they are fewer than one in a hundred."""
    return [comment for comment in worded(profile.comments) if WHOLE in comment and float(comment.split("%")[0]) < 99]


def waits_of(profile: Profile) -> Counter[tuple[str, ...]]:
    """Number of waits by user stack, outermost function first. Not counted: of each thread at most one, which began
    before the trace and ended before its stack was read. Only its innermost function is known."""
    found: Counter[tuple[str, ...]] = Counter()
    unread: Counter[object] = Counter()
    for sample in profile.samples:
        if sample.label("state") == "interruptible" and sample.label("open") != "yes":
            stack = tuple(frame.name for frame in native(sample.stack))
            counted, key = (unread, sample.label("tid")) if len(stack) == 1 else (found, stack)
            counted[key] += sample.values[1]
    assert max(unread.values(), default=0) <= 1
    return found


@pytest.mark.parametrize("name", ["musl", "musl, static"])
def test_musl(name: str, built: Callable[[str], Built]) -> None:
    """Each worker is where the program says, between its start and the C library's system call."""
    profile = traced(built(name))
    assert not incomplete(profile)
    waits = waits_of(profile)
    seen: Counter[str] = Counter()
    for stack, count in waits.items():
        own = [name for name in stack if name.startswith("in_")]
        if own != ["in_poll"]:
            assert len(own) == 1, stack
            at = stack.index(own[0])
            assert stack[at - 1] == "work", stack
            assert at == 3, stack  # of the C library: what starts a thread, and what calls its function
            inner = iter(stack[at + 1 :])
            assert all(name in inner for name in CALLED.get(own[0], ())), stack
        else:
            assert stack[stack.index("in_poll") - 1] == "main", stack
        seen[own[0]] += count
    assert set(seen) >= {*CALLED, "in_poll", "in_printf"} - {"in_read"}, seen
    assert sum(seen.values()) == sum(waits.values()) > 1000


@pytest.mark.parametrize("name", ["Go", "Go with cgo, stripped"])
def test_go(name: str, built: Callable[[str], Built]) -> None:
    profile = traced(built(name))
    assert not incomplete(profile)
    stacks = waits_of(profile)
    assert sum(stacks.values()) > 500
    # Go's own table names the functions of what is stripped.
    roots = Counter(stack[0].removesuffix(".abi0") for stack in stacks.elements())
    assert set(roots) <= {"runtime.mcall", "runtime.mstart", "runtime.goexit", "runtime.systemstack"}, roots
    # The leaf of a wait has no frame of its own: its caller must not be skipped.
    futex = [stack for stack in stacks if stack[-1].startswith("runtime.futex")]
    assert futex
    assert all(stack[-2] in ("runtime.futexsleep", "runtime.futexwakeup") for stack in futex), futex
    assert any("runtime.sysmon" in stack for stack in stacks)


def test_frame_pointers_of_32_bit_code(built: Callable[[str], Built]) -> None:
    """Some callers are missing, because the C library keeps no frame pointers; none is invented."""
    profile = traced(built("glibc, static, 32 bits, frame pointers kept"))
    for stack, count in waits_of(profile).items():
        own = [name for name in stack if name.startswith("in_")]
        assert len(own) <= 1 or count < 5, stack
        if "main" in stack:
            assert set(own) <= {"in_poll"}, stack
    assert any("32-bit code is walked by frame pointers" in comment for comment in worded(profile.comments))
