"""Truths of all captures: what is to be said of each."""

from __future__ import annotations

from job import Job, Truth
from jobs import database_servers, gpus, pipelines, python_programs, runtimes, training, web_servers

JOBS: tuple[Job, ...] = (
    *python_programs.JOBS,
    *web_servers.JOBS,
    *database_servers.JOBS,
    *runtimes.JOBS,
    *pipelines.JOBS,
    *training.JOBS,
    *gpus.JOBS,
)

DIAGNOSES = {
    "abba_deadlock": Truth(("deadlock",), ("abba_deadlock",), ("left", "right", "pthread_mutex_lock")),
    "cgroup_quota": Truth(("quota",), ("python3 -c",), ("quota",)),
    "convoy": Truth(("lock",), ("8 worker-.* threads",), ("allocate", "release", "pthread_mutex_lock")),
    "crowd": Truth(("cores",), ("crowd",), ("threads",)),
    "flock": Truth(("file-lock",), ("3 main threads",), ("update_index", "flock")),
    "fsync": Truth(("io",), ("main thread of fsync",), ("append_record", "fsync")),
    "idle_threads": Truth(("io",), ("main thread of idle_threads",), ("rebuild_index", "fdatasync")),
    "inside_a_library": Truth(
        ("database-lock",), ("main thread of inside_a_librar",), ("answer_requests → save_session", "SQLite")
    ),
    "many_callers": Truth(
        ("io",), ("main thread of many_callers",), ("fsync", "append_journal", "append_index", "append_audit")
    ),
    "node_session": Truth(("io", "peer"), ("main thread of node",), ("loadSession", "open")),
    "parked_pool": Truth(("cpu", "thread"), ("cruncher-",), ()),
    "parked_pool-wall": Truth(("cpu", "thread"), ("cruncher-",), ("compute",)),
    "polling": Truth(("polling",), ("main thread of polling",), ("wait_until_finished",)),
    "pool_per_call": Truth(("cores", "pool-anew"), ("pool_per_call",), ("makes its threads anew",)),
    "postgres_hot_row": Truth(("database-lock",), ("6 main threads of postgres",), ("XactLockTableWait",)),
    "python_gil": Truth(("gil",), ("4 python3 threads",), ("GIL",)),
    "reader_writer_lock": Truth(("lock",), ("4 reader threads",), ("look_up", "pthread_rwlock_rdlock")),
    "slow_consumer": Truth(("peer",), ("main thread of slow_consumer",), ("write_log → write", "logger")),
    "slow_loader_process": Truth(
        ("slow-loader", "peer"), ("main thread of slow_loader_pro",), ("next_batch → read", "loader")
    ),
    "slow_loader_thread": Truth(
        ("slow-loader", "thread"), ("main thread of slow_loader_thr",), ("next_batch", "loader thread", "read_item")
    ),
    "slow_page_faults": Truth(("memory",), ("main thread of",), ("look_up → page fault",)),
    "slow_server": Truth(("peer",), ("main thread of slow_server",), ("query → recv", "handle_request")),
    "stopped_process": Truth(
        ("peer",), ("main thread of stopped_process",), ("read_progress", "simulation", "stopped")
    ),
    "straggler": Truth(("peer",), ("main thread of straggler",), ("all_reduce → recv",)),
    "stuck_fifos": Truth(("lock",), ("3 worker threads",), ("write_to_cache", "pthread_mutex_lock")),
    "thundering_herd": Truth(("herd", "thread", "lock"), ("16 consumer threads",), ("take_item", "in vain")),
    "tool_per_step": Truth(("child",), ("main thread of tool_per_step",), ("run_tool",)),
    "writeback": Truth(("io",), ("main thread of writeback",), ("save_checkpoint", "sync_file_range")),
}
"""Truths of the programs of tests/diagnoses."""

GPU_RANKS = {
    "gpu_ranks_busy": Truth(("late-rank",), ("Rank 1 ",), ("augment",)),
    "gpu_ranks_checkpoint": Truth(("late-rank",), ("Rank 0 ",), ("save_checkpoint", "write")),
    "gpu_ranks_loader": Truth(("late-rank",), ("Rank 2 ",), ("load_batch", "read_shard")),
    "gpu_ranks_missing": Truth(("collective",), ("rank 1 .* is not in it",), ("Queue.get",)),
    "gpu_ranks_pipeline": Truth(("late-messages",), ("Rank 1 ",), ("stage", "read_shard", "rank 2")),
}
"""Truths of `gpu_ranks.py` of jobs/programs, four ranks on one GPU (docs/nccl.md): recorded by hand."""

TRUTHS: dict[str, Truth] = {
    **GPU_RANKS,
    **DIAGNOSES,
    **{job.capture(command): job.truth for job in JOBS for command in job.commands},
}
"""Truths by the capture's name, without the suffix."""
