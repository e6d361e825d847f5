"""Calls processes of interpreters by what they run: ``python3 train.py`` and ``python3 serve.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..model import Profile
from ..model.locks import LockThread, LockTimes
from ..model.processes import ProcessTimes

_COMM = 15
"""Longest name that the kernel keeps: a script that is executed gives its process its own."""


def with_scripts(profile: Profile) -> tuple[Profile, dict[str, str]]:
    """The profile with longer names for processes that run a script, and the names that these had before, by the
    longer ones."""
    longer = {process.pid: name for process in profile.processes if (name := _name(process))}
    if not longer:
        return profile, {}
    before = {longer[process.pid]: process.process for process in profile.processes if process.pid in longer}
    threads = [replace(times, process=longer.get(times.pid, times.process)) for times in profile.threads]
    processes = [replace(each, process=longer.get(each.pid, each.process)) for each in profile.processes]
    return replace(profile, threads=threads, processes=processes), before


def named_locks(locks: Sequence[LockTimes], names: Mapping[int, str]) -> list[LockTimes]:
    """The locks with longer names, by pid, of their processes, and of others that wait for them or have them."""
    return [
        replace(
            lock,
            process=_longer(lock.process, lock.pid, names),
            waiters=[each if each.pid == lock.pid else _named_thread(each, names) for each in lock.waiters],
            holders=[each if each.pid == lock.pid else _named_thread(each, names) for each in lock.holders],
        )
        for lock in locks
    ]


def _named_thread(thread: LockThread, names: Mapping[int, str]) -> LockThread:
    """Main threads have the name of their process."""
    name = _longer(thread.process, thread.pid, names)
    return replace(thread, process=name, thread=name if thread.thread == thread.process else thread.thread)


def _longer(name: str, pid: int, names: Mapping[int, str]) -> str:
    """The name that a process has with its script; another process may have had its pid."""
    found = names.get(pid, "")
    return found if name and found.startswith(f"{name} ") else name


def _name(process: ProcessTimes) -> str:
    """The name with the script; "" if that tells nothing more."""
    if not process.script or process.script[:_COMM] == process.process:
        return ""
    return f"{process.process} {process.script}"
