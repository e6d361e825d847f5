"""Profiles of processes that wait for locks on files, made by hand."""

from __future__ import annotations

from dataclasses import replace

from stallscope.converters.model import Profile
from stallscope.converters.model.file_locks import FileLock
from summary_profiles import EXE, LIBC, SECOND, SLEEP, Tracee, empty, kernel, user

PATH = "/srv/db.lock"
FLOCK = (*user(EXE, "main", "build"), *user(LIBC, "flock"), *kernel("__x64_sys_flock", "locks_lock_inode_wait"))
SEEN = FileLock("flock", "app", 1, "gzip", 9, False, 0, PATH, 8 << 20 | 1, 99, 0, 0, "write", 10, 10, 0, 10 * SECOND)


def waits_for(pid: int, owner: int, path: str = PATH, seen: int = 10, looks: int = 10) -> FileLock:
    names = {"owner": f"p{owner}", "process": f"p{pid}", "path": path}
    return replace(SEEN, pid=pid, owner_pid=owner, seen=seen, looks=looks, **names)


def held(*seen: FileLock, pids: tuple[int, ...] = (1,), waits: int = 1, sleeper: int = 0) -> Profile:
    """Processes that wait for a lock all the time; ``sleeper``: a process that sleeps."""
    profile = empty()
    for pid in pids:
        tracee = Tracee(profile, pid, f"p{pid}", pid, f"p{pid}").run(1000 * (waits - 1))
        tracee.wait(FLOCK, "interruptible", 10 * SECOND, waits, still=waits == 1)
    if sleeper:
        tracee = Tracee(profile, sleeper, f"p{sleeper}", sleeper, f"p{sleeper}")
        tracee.wait(SLEEP, "interruptible", 10 * SECOND, still=True)
    profile.file_locks = list(seen)
    return profile
