"""Locks on files in words: who has one, and on which file. Names are unescaped (hostile)."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.units import plural
from ..facts.file_locks import FileHolder, InCycle


def having(holder: FileHolder) -> str:
    """``gzip (pid 7, not traced) has the lock of /var/log/x all the time``"""
    return f"{_who(holder)} has the lock of {_what(holder)} {_when(holder)}{_sharing(holder)}"


def cycle(processes: Sequence[InCycle]) -> str:
    """``a (pid 1) waits for the lock of /x, which b (pid 2) has; b (pid 2) for that of /y, which …``"""
    told = []
    for each, other in zip(processes, (*processes[1:], processes[0]), strict=True):
        what = f"the lock of {each.path or 'a file'}"
        told.append(f"{_named(each.process, each.pid)} waits for {what}, which {_named(other.process, other.pid)} has")
    return "; ".join(told)


def _who(holder: FileHolder) -> str:
    if holder.took_and_ended and not holder.process:
        return f"a process that has ended (pid {holder.pid})"
    told = f"pid {holder.pid}" if holder.is_traced else f"pid {holder.pid}, not traced"
    return f"{holder.process} ({told})" if holder.process else f"a process ({told})"


def _named(process: str, pid: int) -> str:
    return f"{process or 'a process'} (pid {pid})"


def _what(holder: FileHolder) -> str:
    path = holder.path or "a file whose name is not known"
    if not holder.first and not holder.last:
        return path
    if holder.last == holder.first:
        return f"byte {holder.first:,} of {path}"
    return f"bytes {holder.first:,} to {f'{holder.last:,}' if holder.last else 'the end'} of {path}"


def _when(holder: FileHolder) -> str:
    if holder.always:
        return "all the time"
    if holder.seen == holder.of:
        return "whenever this was looked at" if holder.of > 1 else "at the one look at this"
    return f"at {holder.seen:,} of {plural(holder.of, 'look')}"


def _sharing(holder: FileHolder) -> str:
    """Words for how else the lock is kept."""
    taken = ", from a process that took it and has ended" if holder.took_and_ended and holder.process else ""
    if holder.sharers:
        share = "shares" if holder.sharers == 1 else "share"
        taken += f", together with {plural(holder.sharers, 'process')} that {share} its open file"
    if holder.others:
        taken += f", and so {'has' if holder.others == 1 else 'have'} {plural(holder.others, 'other process')}"
    return taken
