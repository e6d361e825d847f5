"""Walks that must not go wrong: code whose table is still to come, threads and processes out of the ordinary."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from runner import Workload
from stacks_truth import reaches_start
from stallscope.converters.model import Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import probes as engine_module
from stallscope.tracers.engines.ebpf.assemble import profile_of
from stallscope.tracers.engines.ebpf.capture import Capture
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes, load_shape
from stallscope.tracers.engines.ebpf.session import Session
from stallscope.tracers.engines.ebpf.unwinding import Unwinding
from stallscope.tracers.images.elf import ElfFile
from stallscope.tracers.images.maps import Mapping
from stallscope.tracers.kernel.records import ENDS, RecordSink
from stallscope.tracers.kernel.shapes import BTF_SHAPES
from stallscope.tracers.kernel.sleepers import Pages, Sleeper, Sleepers
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.outside.reads import Memory
from stallscope.tracers.unwind import loader
from stallscope.tracers.unwind.compiling import Compiling

pytestmark = pytest.mark.usefixtures("live")

Require = Callable[[bool, str], None]
NAP = """
#include <time.h>
__attribute__((noinline)) void nap(void)
{
    struct timespec ms = {0, 1000000};
    long result;

    __asm__ volatile("syscall" : "=a"(result) : "a"(35), "D"(&ms), "S"(0) : "rcx", "r11", "memory");
}
"""
MAIN = """
#include <pthread.h>
void nap(void);
__attribute__((noinline, optimize("omit-frame-pointer"))) void middle(void) { nap(); __asm__ volatile(""); }
static void *work(void *unused) { for (;;) { middle(); __asm__ volatile(""); } return unused; }
int main(void)
{
    pthread_t thread;

    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
}
"""
LEADERLESS = """
#include <pthread.h>
#include <unistd.h>
static volatile int left;
__attribute__((noinline)) void alone(void) { usleep(1000); __asm__ volatile(""); }
static void *work(void *unused)
{
    for (;;)
        if (left) { alone(); __asm__ volatile(""); } else usleep(1000);
    return unused;
}
int main(void)
{
    pthread_t thread;

    pthread_create(&thread, 0, work, 0);
    read(0, (char[1]){0}, 1);
    left = 1;
    pthread_exit(0);
}
"""
WORKER = """
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    struct io_uring_params p;
    struct io_uring_sqe *entry;
    char *ring, byte;
    int ends[2], fd;

    memset(&p, 0, sizeof(p));
    if ((fd = syscall(SYS_io_uring_setup, 1, &p)) < 0 || pipe(ends))
        return 1;
    ring = mmap(0, p.sq_off.array + 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
    entry = mmap(0, sizeof(*entry), PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
    for (unsigned n = 1;; n++) {
        memset(entry, 0, sizeof(*entry));
        entry->opcode = IORING_OP_READ;
        entry->fd = ends[0];
        entry->addr = (unsigned long)&byte;
        entry->len = 1;
        entry->flags = IOSQE_ASYNC; /* by a worker thread of the kernel's */
        __atomic_store_n((unsigned *)(ring + p.sq_off.tail), n, __ATOMIC_RELEASE);
        syscall(SYS_io_uring_enter, fd, 1, 0, 0, 0, 0);
        usleep(2000);
        if (write(ends[1], "x", 1) != 1)
            return 1;
        syscall(SYS_io_uring_enter, fd, 0, 1, IORING_ENTER_GETEVENTS, 0, 0);
        *(unsigned *)(ring + p.cq_off.head) = n;
    }
}
"""
BITS_32 = """
.code32
.globl _start
.type nap, @function
.type outer, @function
.type _start, @function
nap: pushl %ebp
     movl %esp, %ebp
     movl $162, %eax
     movl $request, %ebx
     xorl %ecx, %ecx
     int $0x80
     popl %ebp
     ret
outer: pushl %ebp
     movl %esp, %ebp
     call *pointer
     popl %ebp
     ret
_start: FIRST
     call outer
     jmp _start
.data
request: .long 0, 1000000
pointer: .long nap
"""
CHAINS_32 = {
    "frame pointers": ("xorl %ebp, %ebp", ["nap", "outer", "_start"]),
    "what is no frame": ("leal -8(%esp), %ebp", ["nap", "outer", "_start"]),
    "no return address": ("pushl $outer\npushl $0\nmovl %esp, %ebp", ["nap", "outer", "_start"]),
}
"""Code with which a 32-bit program starts, and the functions on its stack, innermost first."""


def compiled(gcc: str, folder: Path, name: str, source: str, *options: str, libs: str = "-lc") -> Path:
    target = folder / name
    command = [gcc, "-O2", "-fomit-frame-pointer", *options, "-o", str(target), "-x", "c", "-", libs]
    subprocess.run(command, input=source, text=True, check=True, timeout=60)
    return target


@pytest.fixture
def gcc(require: Require) -> str:
    found = shutil.which("gcc")
    require(found is not None, "there is no gcc")
    return str(found)


@contextmanager
def running(*command: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE)
    try:
        time.sleep(0.3)  # past its start
        yield child
    finally:
        child.kill()
        child.communicate()


def trace(pid: int, seconds: float, on_poll: Callable[[], None] = lambda: None) -> tuple[Capture, Profile]:
    scope = Scope(pids=[pid])
    scope.resolve()
    sink = RecordSink()
    engine = Probes(ProbeOptions(scope, collectors([OffCpu()])), sink)
    try:
        capture = Session(engine, None, seconds).run(sink, lambda *_: on_poll())
        kept = replace(capture, stacks=dict(capture.stacks))  # which a profile is made out of
        return kept, profile_of(capture, "Off-CPU time")
    finally:
        engine.close()


def test_a_guess_for_want_of_a_table_is_no_whole_stack_and_is_not_remembered(
    gcc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`middle` keeps no frame pointer, `work` does: without the table of `nap` its rbp leads past both."""
    library = compiled(gcc, tmp_path, "libnap.so", NAP, "-shared", "-fPIC")
    program = compiled(
        gcc,
        tmp_path,
        "naps",
        MAIN,
        "-fno-omit-frame-pointer",
        "-L",
        str(tmp_path),
        f"-Wl,-rpath,{tmp_path}",
        libs="-lnap",
    )
    late = time.monotonic() + 2
    found: list[ElfFile | None] = []
    find, put = Unwinding._find, Compiling.put

    def noting(self: Unwinding, pid: int, mapping: Mapping) -> ElfFile | None:
        elf = find(self, pid, mapping)
        if mapping.path == str(library):
            found.append(elf)
        return elf

    def hesitating(self: Compiling[loader._File, object], file: loader._File, *, urgent: bool) -> None:
        if file.elf not in found or time.monotonic() > late:
            put(self, file, urgent=urgent)

    monkeypatch.setattr(Unwinding, "_find", noting)
    monkeypatch.setattr(Compiling, "put", hesitating)
    with running(program) as child:
        capture, _ = trace(child.pid, 5)
    waits: Counter[tuple[bool, int]] = Counter()
    for row in capture.rows:
        stack = row.origin.ustack
        if row.state == "interruptible" and not row.is_open and stack in capture.stacks:
            waits[stack not in capture.ends, len(capture.stacks[stack])] += row.values[1]
    whole = [frames for is_whole, frames in waits if is_whole]
    assert sum(waits[False, frames] for is_whole, frames in waits if not is_whole) > 100, "the table came too early"
    assert len(set(whole)) == 1, waits
    assert whole[0] == len(("nap", "middle", "work", "start_thread", "clone3"))
    assert waits[True, whole[0]] > 100


def test_threads_that_outlive_the_main_one(gcc: str, tmp_path: Path) -> None:
    with running(compiled(gcc, tmp_path, "leaderless", LEADERLESS, "-pthread")) as child:

        def leave() -> None:
            assert child.stdin
            child.stdin.write(b"x")
            child.stdin.flush()

        begun: list[bool] = []
        _, profile = trace(child.pid, 3, lambda: None if begun else (begun.append(True), leave())[1])
    waits = {True: 0, False: 0}
    for sample in profile.samples:
        if sample.label("state") == "interruptible" and sample.label("open") != "yes":
            names = [frame.name for frame in sample.stack]
            if "alone" in names or not reaches_start(sample.stack):
                waits[reaches_start(sample.stack)] += sample.values[1]
    assert waits[True] > 100
    assert waits[False] <= waits[True] // 50, waits


def test_workers_of_the_kernel_have_no_user_stack(gcc: str, tmp_path: Path, require: Require) -> None:
    program = compiled(gcc, tmp_path, "worker", WORKER)
    with running(program) as child:
        require(child.poll() is None, "there is no io_uring")
        capture, profile = trace(child.pid, 1)
    workers = [sample for sample in profile.samples if "iou-" in str(sample.label("thread"))]
    assert sum(sample.values[1] for sample in workers) > 50
    # A worker that began during the trace has "[not started yet]", which is of no code.
    assert not [frame for sample in workers for frame in sample.stack if frame.kind == "native"]
    assert capture.counters["stacks_failed"] == 0


@pytest.mark.parametrize("start", CHAINS_32)
def test_32_bit_code_is_walked_by_frame_pointers(start: str, tmp_path: Path, require: Require) -> None:
    """The walk goes up to what is no frame: never to an address that follows no call."""
    require(all(map(shutil.which, ("as", "ld"))), "there is no assembler and linker")
    first, expected = CHAINS_32[start]
    (tmp_path / "bits.s").write_text(BITS_32.replace("FIRST", first))
    subprocess.run(["as", "--32", "-o", tmp_path / "bits.o", tmp_path / "bits.s"], check=True, timeout=60)
    subprocess.run(["ld", "-m", "elf_i386", "-o", tmp_path / "bits", tmp_path / "bits.o"], check=True, timeout=60)
    try:
        subprocess.run([tmp_path / "bits"], timeout=0.2, check=False)
    except subprocess.TimeoutExpired:
        pass
    else:
        require(False, "the kernel runs no 32-bit programs")
    with running(tmp_path / "bits") as child:
        capture, profile = trace(child.pid, 1)
    stacks = {row.origin.ustack for row in capture.rows if row.origin.ustack and row.state == "interruptible"}
    assert stacks
    ends = {ENDS[capture.ends[stack]] for stack in stacks}
    assert ends - {"not read in time"} == {"32-bit code"}  # it may run before its first wait is read
    waits = [s for s in profile.samples if s.label("state") == "interruptible" and s.label("open") != "yes"]
    found = Counter[tuple[str, ...]]()
    for sample in waits:
        found[tuple(f.name for f in reversed(sample.stack) if f.kind == "native")] += sample.values[1]
    assert found.total() > 100
    # Callers may be missing, but no frame is invented.
    assert all(names == tuple(expected[: len(names)]) for names in found), found
    assert found[tuple(expected)] > 0.9 * found.total(), found
    assert any("32-bit code is walked by frame pointers" in comment for comment in worded(profile.comments))


def test_walking_again_takes_nobody_into_the_scope() -> None:
    """The process id of a target that ended may come back."""
    gone, stays = pausing(), pausing()
    scope = Scope(pids=[gone, stays])
    engine = Probes(ProbeOptions(scope, collectors([OffCpu()])), lambda data: None)
    other = 0
    try:
        scope.resolve()
        engine.begin()
        end(gone)
        for _ in range(100):
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(gone - 1))
            other = pausing()
            if other == gone:
                break
            end(other)
        assert other == gone
        engine.restack()
        assert [record.thread.key.tid for record in engine.stop()] == [stays]
    finally:
        engine.close()
        for pid in (other, stays):
            end(pid)


def test_sleeping_threads_have_the_same_stacks_in_every_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads wait at the workload's gate: every program of the walk reads the same memory."""
    found: list[dict[int, tuple[int, ...]]] = []
    with Workload("python_threads", 1) as workload:
        tids = workload.tids
        for shape in BTF_SHAPES:
            monkeypatch.setattr(engine_module, "BTF_SHAPES", (shape,))
            capture, profile = trace(workload.pid, 0.5)
            waits = {record.thread.key.tid: record.thread.key.ustack for record in capture.threads}
            assert waits.keys() == set(tids), shape.name
            assert all(reaches_start(sample.stack) for sample in profile.samples), shape.name
            assert not any(stack in capture.ends for stack in waits.values()), shape.name
            found.append({tid: capture.stacks[stack] for tid, stack in waits.items()})
    assert all(len(stack) > 3 for stack in found[0].values())
    assert found[0] == found[1] == found[2]


def test_walk_by_user_space_ends_where_memory_cannot_be_read() -> None:
    scope = Scope(pids=[child := pausing()])
    scope.resolve()
    loaded = load_shape(ProbeOptions(scope, collectors([OffCpu()])), BTF_SHAPES[1])
    sleepers = Sleepers(loaded, BTF_SHAPES[1].sleepers)
    memory = Memory(child)
    try:
        for sp in (0, 8, 0xFFFF_8000_0000_0000, (1 << 64) - 8, 7):
            stack, why = sleepers._stack(Pages(memory), Sleeper(child, child, 0, 0x1234, sp, 0x10, 0))
            assert stack and ENDS[why] != "complete", (hex(sp), ENDS[why])
    finally:
        end(child)  # first: it has copies of all descriptors
        memory.close()
        sleepers.close()
        loaded.close()


def pausing() -> int:
    pid = os.fork()
    if not pid:
        signal.pause()
        os._exit(0)
    return pid


def end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
