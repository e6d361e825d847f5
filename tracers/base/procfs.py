"""Reads processes and threads from /proc. All functions tolerate processes that exit meanwhile.

Lines end in a newline alone: the kernel escapes no other character of names, and `splitlines` would end one at ``\\r``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..outside.reads import heads

PROC = Path("/proc")
_FLAGS, _PF_KTHREAD = 6, 0x00200000
"""The flags of a process: their field in /proc/PID/stat behind the name, and the one that threads of the kernel have
(include/linux/sched.h)."""
_LIMIT = 1 << 16
"""Maximum in bytes: a process may declare all of its memory to be its command line (PR_SET_MM_ARG_END)."""


def pids() -> Iterator[int]:
    """All processes (tgids) of this pid namespace."""
    for name in os.listdir(PROC):
        if name.isdigit():
            yield int(name)


def tids(pid: int) -> list[int]:
    """The threads of a process; empty when it is gone."""
    try:
        return [int(name) for name in os.listdir(PROC / str(pid) / "task")]
    except OSError:
        return []


def tgid_of(tid: int) -> int | None:
    """The process that a thread belongs to; None when it is gone."""
    for line in _read(PROC / str(tid) / "status").split(b"\n"):
        if line.startswith(b"Tgid:"):
            return int(line.split()[1])
    return None


def innermost_id(tid: int) -> int:
    """The id of a thread as it sees it itself, in its pid namespace; 0 when it is gone."""
    for line in _read(PROC / str(tid) / "status").split(b"\n"):
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return 0


def comm(pid: int, tid: int | None = None) -> str:
    """The name of a process or thread, which it may set itself (hostile input); "" when it has exited."""
    path = f"{PROC}/{pid}/comm" if tid is None else f"{PROC}/{pid}/task/{tid}/comm"
    return os.fsdecode(_read(path).removesuffix(b"\n"))


def command_line(pid: int) -> str:
    """The arguments joined by spaces, the first 64 KiB; "" for kernel threads and processes that have exited."""
    return command_lines([pid]).get(pid, "")


def command_lines(pids: Collection[int]) -> dict[int, str]:
    """Command lines of several processes; those are left out that do not answer (`outside`)."""
    return {
        pid: os.fsdecode((line or b"").rstrip(b"\0").replace(b"\0", b" "))
        for pid, (line,) in heads(pids, [("cmdline", _LIMIT)]).items()
    }


def state(tid: int) -> str:
    """The state letter of proc(5): R, S, D, …; "" when the thread is gone."""
    # Not /proc/TID/stat, for which the kernel adds up the times of all threads of the process.
    fields = _read(f"{PROC}/{tid}/task/{tid}/stat").rpartition(b")")[2].split()
    return fields[0].decode() if fields else ""


def is_of_kernel(pid: int) -> bool:
    """Whether the process is a thread of the kernel."""
    fields = _read(f"{PROC}/{pid}/stat").rpartition(b")")[2].split()
    return len(fields) > _FLAGS and bool(int(fields[_FLAGS]) & _PF_KTHREAD)


def began(pid: int, tid: int) -> int | None:
    """Time when a thread was made, in ticks of the clock since the machine has started; None when it is gone."""
    fields = _read(PROC / str(pid) / "task" / str(tid) / "stat").rpartition(b")")[2].split()
    return int(fields[19]) if len(fields) > 19 else None


def ancestors(pid: int) -> set[int]:
    """The ancestors of ``pid``, as far as they are visible."""
    found: set[int] = set()
    while (parent := _parent(pid)) and parent not in found:
        found.add(parent)
        pid = parent
    return found


def _parent(pid: int) -> int:
    fields = _read(PROC / str(pid) / "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def children(pid: int) -> list[int]:
    """The processes that the first thread of ``pid`` has forked; none where the kernel has no CONFIG_PROC_CHILDREN."""
    return [int(child) for child in _read(PROC / str(pid) / "task" / str(pid) / "children").split()]


def descendants(of: Iterable[int]) -> set[int]:
    """The children of these processes, their children, and so on."""
    children: dict[int, list[int]] = {}
    for pid in pids():
        children.setdefault(_parent(pid), []).append(pid)
    found: set[int] = set()
    pending = list(of)
    while pending:
        new = [child for child in children.get(pending.pop(), ()) if child not in found]
        found.update(new)
        pending += new
    return found


@dataclass(frozen=True)
class Origin:
    """Origin of a process. Its id and ``began`` tell it from all others."""

    parent: int
    """Id of the process that forked it, or that has it since that one has ended."""
    began: int
    """Begin in ticks of the clock since the machine has started."""


def origins() -> dict[int, Origin]:
    """All processes of this pid namespace, by id."""
    found = {}
    for pid in pids():
        fields = _read(PROC / str(pid) / "stat").rpartition(b")")[2].split()
        if len(fields) > 19:
            found[pid] = Origin(int(fields[1]), int(fields[19]))
    return found


def in_host_pid_namespace() -> bool:
    """Whether we are in the initial pid namespace: include/linux/proc_ns.h, PROC_PID_INIT_INO."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC
    except OSError:
        return False


def has_host_clocks() -> bool:
    """Whether our clocks since the start of the host are those of the kernel: time_namespaces(7)."""
    lines = _read(PROC / "self" / "timens_offsets").splitlines()
    return not any(int(word) for line in lines for word in line.split()[1:])


def has_ended(pid: int) -> bool:
    """Whether all threads of a process have ended. Its main thread may be a zombie while others run."""
    return all(state(tid) in ("", "Z", "X") for tid in (pid, *tids(pid)))


def cpu_times(pid: int) -> dict[int, bytes]:
    """Times that each thread of a process has had of the cores, and how often: it differs if the thread ran in
    between."""
    return {tid: _read(PROC / str(pid) / "task" / str(tid) / "schedstat") for tid in tids(pid)}


def schedstat(pid: int, tid: int) -> tuple[int, int] | None:
    """ns on a core and ns waiting for one; None when the thread is gone."""
    try:
        with open(f"/proc/{pid}/task/{tid}/schedstat", "rb") as file:
            words = file.read(256).split()
    except OSError:
        return None
    return (int(words[0]), int(words[1])) if len(words) > 1 else None


def _read(path: str | Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_LIMIT)
    except OSError:
        return b""
