"""The troubles that the first sentence of a summary has to name. One line adds a case: see README.md."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """A program with one known trouble, and what has to be said of it."""

    program: str
    """Program in programs/, in C or Python; with a space its arguments, or ``workload`` and one of tests/workloads."""
    first: tuple[str, ...]
    """Regular expressions, each of which has to match somewhere in the first sentence of the answer."""
    anywhere: tuple[str, ...] = ()
    """Regular expressions that have to match in the whole first screen, whose line breaks count as spaces."""
    command: str = "trace-offcpu"
    needs: str = ""
    """A variable of the environment with the Python that runs it; without it the case is skipped."""
    rows: int | None = None
    """Number of places; None: as many as a screen has. On a busy machine the waits for a core take one of them."""
    seconds: int = 1
    """Length of the trace: it takes ten meetings until it is told who is late."""

    @property
    def name(self) -> str:
        """Name of the case, and of its files in build/diagnoses. Numbers tell cases of one program apart only where the
        environment says what runs it."""
        first, *others = self.program.removeprefix("workload ").split()
        words = [first, *(word for word in others if self.needs or not word.isdigit())]
        return "-".join(words if self.command == "trace-offcpu" else [*words, self.command.removeprefix("trace-")])


MAIN = r"the main thread of "

CASES = (
    Case("straggler", (MAIN + "straggler .* all_reduce → recv",)),
    Case(
        "slow_loader_thread", (MAIN + "slow_loader_thr .* next_batch → pthread_cond_wait", "loader thread .* read_item")
    ),
    Case("slow_loader_process", (MAIN + "slow_loader_pro .* next_batch → read", "main thread of loader .* on a core")),
    Case("abba_deadlock", ("left", "right", "pthread_mutex_lock", "deadlock")),
    Case("stuck_fifos", ("3 worker threads .* write_to_cache → pthread_mutex_lock",), ("2 processes did not move",)),
    Case("flock", ("3 main threads", "update_index → flock")),
    Case("fsync", (MAIN + "fsync .* append_record → fsync",)),
    Case("writeback", (MAIN + "writeback .* save_checkpoint → sync_file_range",)),
    Case("slow_page_faults", (MAIN + ".* look_up → page fault of memory without a file, waiting in handle_userfault",)),
    Case(
        "workload crowd 60000 6 1", ("outnumber the cores|Others have most of the cores",)
    ),  # the latter on a busy machine
    Case("cgroup_quota", ("quota throttles",)),
    Case("workload pool_per_call 100000 4", ("makes its threads anew",)),
    Case("convoy", ("8 worker-.* threads .* pthread_mutex_lock", "allocate", "release")),
    Case("reader_writer_lock", ("4 reader threads .* look_up → pthread_rwlock_rdlock",)),
    Case("thundering_herd", ("16 consumer threads .* take_item", "woken in vain")),
    Case("polling", (MAIN + "polling .* wait_until_finished",)),
    Case("slow_server", (MAIN + "slow_server .* query → recv", "server .* handle_request")),
    Case("stopped_process", (MAIN + "stopped_process .* read_progress → read", "simulation .* stopped")),
    Case("parked_pool", ("2 cruncher-.* threads .* on a core",), (r"idle: park .* 8 × parked_pool/parked-\*",)),
    Case("slow_consumer", (MAIN + "slow_consumer .* write_log → write", "logger")),
    Case("tool_per_step", (MAIN + "tool_per_step .* run_tool → ",)),
    Case("python_gil", (r"4 python3 threads .* Python's interpreter lock \(GIL\)",)),
    Case("parked_pool", ("cruncher",), ("What runs .* compute",), command="trace-wall"),
    Case("postgres_hot_row", ("6 main threads of postgres .* XactLockTableWait(, LockTuple)? → .*ProcSleep",)),
    Case("many_callers", (MAIN + "many_callers .* → fsync", "append_journal", "append_index", "append_audit")),
    Case(
        "inside_a_library",
        (MAIN + r"inside_a_librar .* blocked on a lock of an SQLite database in answer_requests → save_session",),
    ),
    Case("node_session", (MAIN + "node .* loadSession → openSync → … → open",)),
    Case(
        "idle_threads",
        (MAIN + "idle_threads .* rebuild_index → fdatasync",),
        ("idle: accept_clients → accept", "idle: close_files → pthread_cond_wait"),
        rows=6,
    ),
    Case(
        "gloo_straggler",
        ("the main thread of python .* c10d::Work::wait .*; meanwhile the main thread .* time_sleep",),
        needs="TORCH_PYTHON",
    ),
    *(
        Case(f"gloo_causes {ranks} {cause}", (told,), (), "trace-nccl", "TORCH_PYTHON", 6, 4)
        for ranks in (4, 8)
        for cause, told in (
            ("loader", "Rank 1 of .* blocked in .* load_batch .* read"),
            # On a busy machine a thread waits for a core each time that a record is written, or the lock is free.
            ("disk", "Rank 1 of .* (blocked in .* write_log .* fsync|waits for a core)"),
            ("gc", "Rank 1 of .* (runs|waits for a core)"),
            ("gil", r"Rank 1 of .* waits for (Python's interpreter lock \(GIL\)|a core)"),
            ("quota", "(A quota throttles rank 1 of|Rank 1 of .* quota)"),
            ("neighbour", "Rank 1 of .* waits for a core"),
            ("link", r"ranks .* a round trip on the connection of rank [0-7] \(pid \d+\) to 10\.112\.0\..* takes 2"),
            ("rate", r"ranks .* the connection of rank [0-7] \(pid \d+\) to 10\.112\.0\.\S+ moves [23]\..* MiB/s"),
        )
    ),
)
