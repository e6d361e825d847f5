"""Jobs of Python's own library: threads, pools, queues, SQLite, event loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from job import Job, Truth
from stage import PYTHON, Stage

PYTHON_HERE = {PYTHON: "python3"}


def alone(script: str, *arguments: object) -> Callable[[Stage], Sequence[int]]:
    """Starts one program, which is traced."""
    return lambda stage: [stage.python(script, *arguments)]


def on_slow_disk(script: str) -> Callable[[Stage], Sequence[int]]:
    return lambda stage: [stage.python(script, groups=[stage.slow_disk()])]


def sqlite_orders(client: str) -> Callable[[Stage], Sequence[int]]:
    def start(stage: Stage) -> Sequence[int]:
        return [stage.python("sqlite_report.py"), *(stage.python(client) for _ in range(2))]

    return start


def full_pipe(stage: Stage) -> Sequence[int]:
    return stage.tree(stage.python("pipe_full.py", "seq", 1_000_000), least=2)


def full_queue(stage: Stage) -> Sequence[int]:
    return stage.tree(stage.python("queue_full.py"), least=3)


def pool_straggler(stage: Stage) -> Sequence[int]:
    return stage.tree(stage.python("pool_straggler.py"), least=4)


def full_backlog(stage: Stage) -> Sequence[int]:
    port = stage.port()
    server = stage.python("no_accept.py", port)
    return [stage.python("full_backlog.py", port), server]


JOBS = (
    Job(
        "python_deadlock",
        Truth(
            ("deadlock",),
            ("python3 deadlock.py", "2 .*threads"),
            ("transfer", "deadlock|each other"),
            "two threads wait for each other's lock; the main thread sleeps 10 ms at a time",
        ),
        alone("deadlock.py"),
        PYTHON_HERE,
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "executor_lock",
        Truth(
            ("lock",),
            ("4 .*threads|ThreadPool", "python3 executor_lock.py"),
            ("add_to_totals", "ask_for_rate|sleep"),
            "four workers of a pool in one lock, whose holder sleeps; the main thread joins them",
        ),
        alone("executor_lock.py"),
        PYTHON_HERE,
        commands=("offcpu", "wall"),
    ),
    Job(
        "logging_fsync",
        Truth(
            ("lock", "io"),
            ("6 .*threads", "python3 logging_fsync.py"),
            ("emit|handle|acquire", "fsync"),
            "threads wait for the lock of a log, whose holder is in fsync",
        ),
        on_slow_disk("logging_fsync.py"),
        PYTHON_HERE,
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "sqlite_busy",
        Truth(
            ("database-lock",),
            ("2 main threads|sqlite_order",),
            ("SQLite|database", "sqlite_report.py|make_report"),
            "two clients wait for an SQLite database in its busy handler; the holder makes a report",
        ),
        sqlite_orders("sqlite_order.py"),
        PYTHON_HERE,
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "sqlite_retry",
        Truth(
            ("database-lock", "polling"),
            ("2 main threads|sqlite_retry",),
            ("sell_item", "sqlite_report.py|make_report|again"),
            "two clients sleep and try again while another one has the SQLite database",
        ),
        sqlite_orders("sqlite_retry.py"),
        PYTHON_HERE,
    ),
    Job(
        "executor_io",
        Truth(
            ("io",),
            ("thread of", "python3 executor_io.py"),
            ("save_order", "fsync|fdatasync|unlink"),
            "an event loop is idle while its worker thread commits to the disk",
        ),
        on_slow_disk("executor_io.py"),
        PYTHON_HERE,
    ),
    Job(
        "loop_and_gil",
        Truth(
            ("gil",),
            ("main thread", "python3 loop_and_gil.py"),
            ("GIL", "rebuild_index"),
            "an event loop waits for the GIL, which a computing thread has",
        ),
        alone("loop_and_gil.py"),
        PYTHON_HERE,
        commands=("offcpu", "wall"),
    ),
    Job(
        "child_full_pipe",
        Truth(
            ("child", "deadlock", "peer"),
            ("python3 pipe_full.py",),
            ("export_rows|wait4|waitpid", "seq", "write|pipe"),
            "a program waits for its child, which is stuck in a full pipe that the program does not read",
        ),
        full_pipe,
        {**PYTHON_HERE, "seq": "coreutils"},
    ),
    Job(
        "queue_full",
        Truth(
            ("cpu", "peer", "thread"),
            ("python3 queue_full.py", "main thread"),
            ("parse_record",),
            "two processes wait for room in a queue; the one that takes from it computes all the time",
        ),
        full_queue,
        PYTHON_HERE,
        commands=("wall",),
    ),
    Job(
        "pool_straggler",
        Truth(
            ("cpu", "child", "thread", "peer"),
            ("python3 pool_straggler.py",),
            ("simulate",),
            "a pool of processes waits for the one that has the longest task",
        ),
        pool_straggler,
        PYTHON_HERE,
        commands=("wall", "offcpu"),
    ),
    Job(
        "future_of_a_thread",
        Truth(
            ("thread", "cpu"),
            ("main thread", "python3 future.py"),
            ("upload_backup|compress_file",),
            "the main thread waits for one thread of a pool, which compresses",
        ),
        alone("future.py"),
        PYTHON_HERE,
        commands=("wall", "offcpu"),
    ),
    Job(
        "poll_file",
        Truth(
            ("polling", "cpu"),
            ("python3 poll_file.py",),
            ("wait_for_result",),
            "a loop looks for a file again and again, without a pause",
        ),
        alone("poll_file.py"),
        PYTHON_HERE,
        commands=("wall",),
    ),
    Job(
        "yield_queue",
        Truth(
            ("polling",),
            ("python3 yield_queue.py",),
            ("next_item", "sched_yield|polls|spins"),
            "a worker calls sched_yield until its queue has an item",
        ),
        alone("yield_queue.py"),
        PYTHON_HERE,
        commands=("wall",),
    ),
    Job(
        "slow_pattern",
        Truth(("cpu",), ("python3 slow_pattern.py",), ("check_address",), "a pattern takes long to match"),
        alone("slow_pattern.py"),
        PYTHON_HERE,
        commands=("wall",),
    ),
    Job(
        "tunnels",
        Truth(
            ("lock", "driver"),
            ("threads", "python3 tunnels.py"),
            ("open_tunnel|connect_clients", "ioctl|close|driver"),
            "threads wait in the kernel for the lock of a driver's calls",
        ),
        alone("tunnels.py"),
        PYTHON_HERE,
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "starved_pool",
        Truth(
            ("deadlock", "thread"),
            ("python3 starved_pool.py", "thread"),
            ("render_page",),
            "a task waits for another one of the same pool, whose only thread it occupies",
        ),
        alone("starved_pool.py"),
        PYTHON_HERE,
    ),
    Job(
        "full_backlog",
        Truth(
            ("network", "peer"),
            ("python3 full_backlog.py",),
            ("connect_to_ledger|connect",),
            "a connection is not made, because the server's queue is full",
        ),
        full_backlog,
        PYTHON_HERE,
    ),
)
