"""Reads inputs with several processes: big text files in parts, other files as a whole.

A reader whose text can be cut is a `protocol.ReaderInParts`. The result is the same as with one process. If the
parts cannot give that result (one has nothing useful in it, numbers have to be rounded, the values differ), the input
is read again by one process.
"""

from __future__ import annotations

import os
import signal
import stat
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..base.errors import StallscopeError
from ..base.memory import used_up
from ..model import Profile
from ..model.remarks import FirstSkipped
from . import detect
from .base.options import ReadOptions
from .base.protocol import ReaderInParts, ReaderOfContext
from .base.skipped import LINE, ROUNDED
from .base.source import HEAD, STDIN, open_source
from .merging import merge

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

_MIN_PART = 8 << 20
"""Minimum size in bytes of a part."""
_WINDOW = HEAD
"""Number of bytes in which a separator is searched for."""
_Result = tuple[str, Profile] | StallscopeError


class _Task(NamedTuple):
    """A whole input, or the ``part`` of it between two offsets."""

    path: str
    name: str
    options: ReadOptions
    part: tuple[int, int] | None = None


def read_all(paths: Sequence[str], options: ReadOptions, name: str = "", *, jobs: int = 1) -> list[tuple[str, Profile]]:
    """The result of `detect.read` for each path, using up to ``jobs`` processes. Raises StallscopeError."""
    if jobs == 1:
        return [detect.read(path, options, name) for path in paths]
    plans = [_plan(path, options, name, jobs) for path in paths]
    results = _run([task for plan in plans for task in plan], jobs)
    found = []
    for path, plan in zip(paths, plans, strict=True):
        parts = [results.popleft() for _ in plan]
        found.append(_whole(plan, parts) or detect.read(path, options, name))
    return found


def _plan(path: str, options: ReadOptions, name: str, jobs: int) -> list[_Task]:
    """The parts of one input; none if it must be read in this process: a pipe, for example, can be opened only once."""
    if path == STDIN or (size := _size(path)) < 0:
        return []
    with open_source(path) as source:
        name = name or detect.detect(source)
        reader = detect.module(name)
        count = min(jobs, 0 if source.packed else size // _MIN_PART)
        if count < 2 or not isinstance(reader, ReaderInParts):
            return [_Task(path, name, options)]
        if isinstance(reader, ReaderOfContext):
            options = reader.settled(source.head, options)
    cuts = _cuts(path, size, count, reader.SEPARATOR)
    return [_Task(path, name, options, part) for part in zip(cuts, cuts[1:], strict=False)]


def _size(path: str) -> int:
    """Size in bytes; -1 if it is not a regular file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return -1
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def _cuts(path: str, size: int, count: int, separator: bytes) -> list[int]:
    """Offsets from 0 to ``size`` at which the parts begin and end: each after a separator."""
    cuts = [0]
    for i in range(1, count):
        start = max(size * i // count, cuts[-1])
        with open_source(path, (start, min(start + _WINDOW, size))) as source:
            found = source.read(_WINDOW).find(separator)
        if found >= 0:
            cuts.append(start + found + len(separator))
    return [*cuts, size]


def _run(tasks: Sequence[_Task], jobs: int) -> deque[_Result]:
    """The results in the order of the tasks. Always ends the processes."""
    import multiprocessing
    from multiprocessing.connection import wait

    # A forked process has all modules loaded. A fork copies no other threads, but there are none here.
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
    results: list[_Result | None] = [None] * len(tasks)
    waiting = deque(enumerate(tasks))
    running: dict[Connection, tuple[int, BaseProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                i, task = waiting.popleft()
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(task, sender), daemon=True)
                process.start()
                sender.close()
                running[receiver] = i, process
            for receiver in cast("list[Connection]", wait(list(running))):
                i, process = running[receiver]
                results[i] = _received(receiver, tasks[i])
                process.join()
                receiver.close()
                del running[receiver]
    finally:
        for receiver, (_, process) in running.items():
            process.kill()
            process.join()
            receiver.close()
    return deque(result for result in results if result is not None)


def _received(receiver: Connection, task: _Task) -> _Result:
    try:
        kind, content = receiver.recv()
    except EOFError:
        return StallscopeError(
            f"a process that read {task.path!a} ended before it was done", "is there enough memory? try without --jobs"
        )
    return StallscopeError(*content) if kind == "error" else (task.name, content)


def _work(task: _Task, sender: Connection) -> None:
    """Runs in a process of its own, which the parent ends on Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sender.send(("profile", _read(task)))
    except StallscopeError as error:
        sender.send(("error", (error.cause, error.remedy)))
    except MemoryError:
        sender.send(("error", (used_up().cause, used_up().remedy)))


def _read(task: _Task) -> Profile:
    with open_source(task.path, task.part) as source:
        return detect.read_source(source, task.options, task.name)


def _whole(plan: Sequence[_Task], parts: Sequence[_Result]) -> tuple[str, Profile] | None:
    """Joins the parts of one input; None when it has to be read in one piece. Raises the error of a whole input."""
    for part in parts:
        if isinstance(part, StallscopeError):
            if len(plan) == 1:
                raise part
            return None
    profiles = [part[1] for part in parts if not isinstance(part, StallscopeError)]
    if not profiles or (len(profiles) > 1 and not _can_be_joined(profiles)):
        return None
    if len(profiles) > 1:
        _place(plan, profiles)
        return plan[0].name, merge(profiles)
    return plan[0].name, profiles[0]


def _can_be_joined(profiles: Sequence[Profile]) -> bool:
    """Whether the sum of the parts equals the whole."""
    types = [profile.value_types for profile in profiles]
    return types.count(types[0]) == len(types) and not any(profile.lost.get(ROUNDED) for profile in profiles)


def _place(plan: Sequence[_Task], profiles: list[Profile]) -> None:
    """Keeps the first of the comments that name a line, with the line's number in the whole input."""
    told = False
    for i, (task, profile) in enumerate(zip(plan, profiles, strict=True)):
        comments = []
        for comment in profile.comments:
            if not (isinstance(comment, FirstSkipped) and comment.unit == LINE):
                comments.append(comment)
            elif not told:
                comments.append(replace(comment, number=comment.number + _lines_before(task)))
                told = True
        profiles[i] = replace(profile, comments=comments)


def _lines_before(task: _Task) -> int:
    count, start = 0, task.part[0] if task.part else 0
    if start:
        with open_source(task.path, (0, start)) as source:
            while data := source.read():
                count += data.count(b"\n")
    return count
