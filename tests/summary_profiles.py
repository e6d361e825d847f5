"""Off-CPU profiles made by hand: the numbers are chosen, so that every expected text is known."""

from __future__ import annotations

from collections.abc import Callable, Collection

from stallscope.converters.facts.contention import contention_of
from stallscope.converters.facts.facts import Beside, Facts, Recorded
from stallscope.converters.facts.gil import gil_shares
from stallscope.converters.facts.polled_locks import with_polled_locks
from stallscope.converters.facts.ranks import ranks_of
from stallscope.converters.facts.runs import add_up_runs
from stallscope.converters.facts.shed_stacks import with_shed_stacks
from stallscope.converters.facts.started import started_processes, with_waits_for_started
from stallscope.converters.facts.thread_roles import roles_of
from stallscope.converters.facts.timed_selects import with_timed_selects
from stallscope.converters.facts.wait_sums import LOST, Place, add_up_waits, merged_threads
from stallscope.converters.facts.waits import wait_of
from stallscope.converters.facts.waits_for_servers import with_waits_for_servers
from stallscope.converters.model import Frame, Module, Profile, Sample, Stack, ThreadTimes, ValueType
from stallscope.converters.model.sites import Site
from stallscope.converters.model.waits_for import has_wakers, waits_for

MS = 1_000_000
SECOND = 1_000 * MS
VALUE_TYPES = [
    ValueType("off-cpu", "nanoseconds"),
    ValueType("count", "count"),
    ValueType("min", "nanoseconds", "min"),
    ValueType("max", "nanoseconds", "max"),
]
EXE = Module("/opt/demo/demo")
CUDA = Module("/opt/demo/libdemo_cuda.so")
LIBC = Module("/usr/lib/x86_64-linux-gnu/libc.so.6")
LIBSTDCXX = Module("/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30")


def user(module: Module | None, *names: str) -> Stack:
    return tuple(Frame(name, "native", module) for name in names)


def kernel(*names: str) -> Stack:
    """Kernel frames of a system call (or of what comes first in ``names``), then the scheduler and the probe."""
    entry = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64")
    probe = ("schedule", "__schedule", "__traceiter_sched_switch", "bpf_trace_run4", "bpf_prog_6deef7357e7b4530_x")
    return tuple(Frame(name, "kernel") for name in (*entry, *names, *probe))


FUTEX = kernel("__x64_sys_futex", "do_futex", "futex_wait", "__futex_wait", "futex_do_wait")
MUTEX = kernel("__x64_sys_ioctl", "tun_chr_ioctl", "__mutex_lock.constprop.0", "schedule_preempt_disabled")
EPOLL = kernel("__x64_sys_epoll_wait", "do_epoll_wait", "ep_poll", "schedule_hrtimeout_range")
TIMER = kernel("asm_sysvec_apic_timer_interrupt", "irqentry_exit")

TOPK = (
    *user(LIBC, "[libc.so.6+0x891c5]", "start_thread"),
    *user(EXE, "worker", "topk"),
    *user(CUDA, "cudaGetDeviceProperties"),
    *user(LIBC, "ioctl"),
    *MUTEX,
)
WAIT_FOR_WORKER = (
    *user(EXE, "_start"),
    *user(LIBC, "__libc_start_main"),
    *user(EXE, "main", "wait_for_worker"),
    *user(LIBC, "pthread_cond_wait@@GLIBC_2.3.2", "__futex_abstimed_wait_common"),
    *FUTEX,
)
SLEEP = (*user(EXE, "main", "nap"), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))
READ = (*user(EXE, "main", "fetch"), *user(LIBC, "read"), *kernel("ksys_read", "vfs_read", "pipe_read"))
CHILD = (*user(EXE, "main", "run_tool"), *user(LIBC, "wait4"), *kernel("kernel_wait4", "do_wait"))
POLL = (*user(EXE, "main", "loop"), *user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll"))
POOL = (
    *user(LIBC, "start_thread"),
    *user(LIBSTDCXX, "execute_native_thread_routine"),
    *user(EXE, "pool_main"),
    *user(LIBSTDCXX, "std::condition_variable::wait(std::unique_lock<std::mutex>&)"),
    *user(LIBC, "pthread_cond_wait"),
    *FUTEX,
)
SPIN = (*user(LIBC, "start_thread"), *user(EXE, "spin"), *TIMER)


class Tracee:
    """A thread; ``wait()`` adds a sample and books its time."""

    def __init__(self, profile: Profile, pid: int, process: str, tid: int, thread: str) -> None:
        self.profile = profile
        self.times = ThreadTimes(pid, process, tid, thread, wall=0, on_cpu=0, runnable=0, blocked={})
        profile.threads.append(self.times)

    def wait(
        self, stack: Stack, state: str, time: int, count: int = 1, *, least: int = 1, most: int = 0, still: bool = False
    ) -> Tracee:
        times = self.times
        labels: dict[str, str | int] = {
            "pid": times.pid,
            "process": times.process,
            "tid": times.tid,
            "thread": times.thread,
            "state": state,
            **({"open": "yes"} if still else {}),
        }
        values = (time, count, least, most or time)
        self.profile.samples.append(Sample(stack, values, tuple(sorted(labels.items()))))
        if state.startswith("runnable"):
            times.runnable += time
        else:
            times.blocked[state] = times.blocked.get(state, 0) + time
        times.wall += time
        return self

    def run(self, time: int) -> Tracee:
        self.times.on_cpu += time
        self.times.wall += time
        return self


def empty(seconds: int = 10) -> Profile:
    lost = {"lost intervals": 0, "stacks cut short": 0}
    return Profile(list(VALUE_TYPES), duration_ns=seconds * SECOND, host="node7", lost=lost)


def model_case(main_runs: int = 300 * MS) -> Profile:
    """Eight processes of 10 s: main waits for the worker, the worker in topk for the kernel's mutex."""
    profile = empty()
    profile.title = "off-CPU time of 8 processes"
    profile.lost["stacks cut short"] = 3
    for pid in range(4711, 4719):
        main = Tracee(profile, pid, "demo", pid, "demo").run(main_runs)
        main.wait(WAIT_FOR_WORKER, "interruptible", 9_990 * MS - main_runs, 3900, least=20_000, most=18 * MS)
        main.wait(WAIT_FOR_WORKER, "interruptible", 10 * MS, still=True)
        worker = Tracee(profile, pid, "demo", pid + 1000, "worker").run(1_500 * MS)
        worker.wait(TOPK, "uninterruptible", 8_420 * MS, 3900, least=20_000, most=17_900_000)
        worker.wait(TOPK, "runnable-woken", 80 * MS, 3900, most=900_000)
    return profile


def idle_pool() -> Profile:
    """64 threads that wait for work all the time, one of the same pool that works, and a contended lock."""
    profile = empty()
    for i in range(64):
        Tracee(profile, 7, "srv", 100 + i, f"pool-{i}").wait(POOL, "interruptible", 10 * SECOND, still=True)
    Tracee(profile, 7, "srv", 200, "pool-64").run(6 * SECOND).wait(POOL, "interruptible", 4 * SECOND, 2000)
    Tracee(profile, 7, "srv", 7, "srv").run(4 * SECOND).wait(TOPK, "uninterruptible", 6 * SECOND, 1000)
    return profile


def two_spinners_on_one_core() -> Profile:
    profile = empty()
    for tid in (7, 8):
        spinner = Tracee(profile, 7, "spinner", tid, "spinner").run(5 * SECOND)
        spinner.wait(SPIN, "runnable-preempted", 5 * SECOND, 1250, least=4 * MS, most=4 * MS)
    return profile


def many_places(pids: int) -> Profile:
    """Processes that wait at a dozen places each."""
    profile = empty()
    profile.comments = ["a note", "another note"]
    for pid in range(1, pids + 1):
        tracee = Tracee(profile, pid, f"p{pid}", pid, "main").run(SECOND)
        for i in range(12):
            stack = (*user(EXE, "main", f"a_function_whose_name_is_longer_than_one_line_allows_{i}"), *MUTEX)
            tracee.wait(stack, "uninterruptible", 700 * MS, 10)
    return profile


def hostile() -> Profile:
    """Names that try to steer a terminal, to be markup, to break JSON or a line."""
    profile = empty()
    profile.host = "node\x1b[2J"
    profile.title = "[bold]title[/bold]"
    profile.comments = ["first\nsecond\u202e"]
    profile.lost = {"lost\x07 events": 1}
    name = '<script>alert(1)</script>;x\n\x1b]0;owned\x07[red]"\\'
    stack = (*user(EXE, "f\x1b[31m", "[bold]g\u202e", 'quote"&amp;\udcff'), *MUTEX)
    Tracee(profile, 1, name, 1, name).run(SECOND).wait(stack, "uninterruptible", 9 * SECOND, 9)
    return profile


def place_of(frames: tuple[str, ...], kernel_wait: str = "", state: str = "interruptible") -> Place:
    """A place as it is shown; its wait is that of a stack of the program's functions, but for the innermost one, which
    is of the C library."""
    own, library = (frames[:-1], frames[-1:]) if len(frames) > 1 else (frames, ())
    below = (Frame(kernel_wait, "kernel"),) if kernel_wait else ()
    return Place(state, Site(frames, kernel_wait), wait_of((*user(EXE, *own), *user(LIBC, *library), *below), state))


def waiting(stack: Stack, *others: tuple[int, int, str, Stack, int]) -> Profile:
    """Process 1 waits nearly always; others: pid, tid, name, where, for how many ms, and on a core for the rest."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(100 * MS).wait(stack, "interruptible", 9_900 * MS, 500)
    for pid, tid, name, where, ms in others:
        tracee = Tracee(profile, pid, "app" if pid == 1 else name, tid, name).run((10_000 - ms) * MS)
        if ms:
            tracee.wait(where, "interruptible", ms * MS, 500)
    return profile


def facts_of(profile: Profile, pools: Callable[[], Collection[int]] | None = None, has_samples: bool = False) -> Facts:
    """Facts of a profile with waits. ``pools``: see `Beside`. ``has_samples``: it is known where threads
    run, but of none of these."""
    threads = merged_threads(profile.threads)
    started = started_processes(threads)
    objects = {each.id: each for each in profile.objects}
    sums = with_waits_for_started(with_shed_stacks(add_up_waits(profile, threads)), threads, started)
    sums = with_timed_selects(with_waits_for_servers(sums, objects), objects)
    sums = with_polled_locks(sums, profile.file_locks)
    columns = {value_type.name for value_type in profile.value_types}
    runs = add_up_runs(profile, threads) if "samples" in columns else {}
    known = Beside(
        profile.threads,
        contention_of(profile),
        gil_shares(profile.gil, profile.threads),
        pools,
        profile.neighbours,
        Recorded(profile, waits_for(profile)) if has_wakers(profile) else None,
        runs or ({LOST: {}} if has_samples else {}),
        profile.steps,
        objects=objects,
        group_limits=profile.group_limits,
        started=started,
        file_locks=profile.file_locks,
        collectives=profile.collectives,
        ranks=ranks_of(profile),
        labels={each.pid: each.ranks for each in profile.processes if each.ranks},
        origins={each.pid: each for each in profile.origins},
    )
    return Facts(sums, threads, roles_of(sums, threads), profile.duration_ns, known)
