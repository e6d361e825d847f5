"""Other names for what a program has called itself: its functions, files, processes and threads.

What libraries, runtimes and the kernel have named stays: these names tell what a wait is for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rewriting import Rewriting, is_main
from stallscope.converters.facts.frame_names import function_name, is_named, label, located, script_of
from stallscope.converters.facts.ownership import is_own
from stallscope.converters.facts.plumbing import is_plumbing
from stallscope.converters.facts.thread_names import name_pattern
from stallscope.converters.facts.wait_functions import LINKED_LOCKS, LOCKS_BY_TIMER
from stallscope.converters.model import Frame, Profile, ThreadTimes

_SYSTEM = ("/usr/", "/lib", "/bin/", "/sbin/")
"""Begins of the paths of what nobody has written for one job."""
_NUMBER = re.compile(r"\d+$")


class Names(NamedTuple):
    """New names, used one after the other; when they are used up, with a letter more."""

    functions: Sequence[str]
    executables: Sequence[str]
    libraries: Sequence[str]
    scripts: Sequence[str]
    processes: Sequence[str]
    threads: Sequence[str]
    families: Sequence[str]
    """Texts before the number of numbered processes and threads."""


NEUTRAL = Names(
    ("fn",), ("/opt/app/program",), ("/opt/app/library",), ("/opt/app/script",), ("program",), ("thread",), ("group-",)
)
HOSTILE = Names(
    functions=(
        *("cache_read", "recv", "sleep", "pthread_mutex_lock_stats", "wait_for_all", "my_fsync", "take_gil_helper"),
        *("poll_loop", "futex_wait", "WorkerThread::run", "take_gil", "read", "pthread_mutex_lock", "ProcSleep"),
        *("join", "nanosleep", "recvmsg", "queue.get", "type_call_handlers", "cfunction_registry"),
        *("PyThread_acquire_lock_timed", "CompileQueue::get", "pthread_join"),
    ),
    executables=("/srv/threading_helper", "/srv/ld-train", "/srv/python3-train", "/srv/libc-bench", "/srv/vdso_jobs"),
    libraries=("/srv/cuda-train/libqueue", "/srv/libpthread_pool", "/srv/libthreading", "/srv/cuda/libwait"),
    scripts=(
        *("/srv/queue", "/srv/threading_helper", "/srv/asyncio/tasks", "/srv/selectors", "/srv/threading"),
        *("/srv/multiprocessing/connection", "/srv/concurrent/futures/thread"),
    ),
    processes=("python3", "main", "kworker", "kworker/0:1", "postgres", "java", "sqlite3"),
    threads=("main", "python3", "kworker", "pool-1", "ksoftirqd"),
    families=("python3-", "kworker/", "main-", "Thread-"),
)


Rename = Callable[[Profile, Names], Rewriting]


def functions(profile: Profile, names: Names, first: int = 0) -> Rewriting:
    """Renames the program's own functions. ``first``: with which name to begin."""
    new = _fresh(names.functions, first)
    stems: dict[str, str] = {}
    variants: dict[str, list[str]] = {}
    shown: dict[str, str] = {}

    def renamed(frame: Frame) -> Frame:
        stem = _stem(frame)
        if not stem:
            return frame
        if stem not in stems:
            stems[stem] = next(new)
        others = variants.setdefault(stem, [])
        if frame.name not in others:
            others.append(frame.name)
        changed = frame._replace(name=_with_stem(frame, stem, stems[stem], others.index(frame.name)))
        shown[label(frame)] = label(changed)
        shown[located(frame)] = located(changed)
        return changed

    known = _by_frame(profile, renamed)
    shown.pop("", None)
    return Rewriting(frame=known.__getitem__, function=lambda text: shown.get(text, text))


def _stem(frame: Frame) -> str:
    """The function's name without what compilers add; "" if the program has not chosen it."""
    if not is_programs(frame) or not is_named(frame) or frame.name[:1] == "<":
        return ""
    if frame.kind == "jit":
        script = script_of(frame.name)
        return script.function if script else frame.name
    return frame.name if frame.kind == "python" else function_name(frame.name)


def _with_stem(frame: Frame, stem: str, name: str, variant: int) -> str:
    if frame.kind == "jit" and script_of(frame.name):
        return frame.name.replace(stem, name, 1)
    # Functions that differ in their arguments are shown with one name.
    return f"{name}({variant})" if variant and frame.kind not in ("python", "jit") else name


def is_programs(frame: Frame) -> bool:
    """Whether the program's authors have named it: not a library that is linked into it."""
    if frame.kind in ("kernel", "other", "api") or not is_own(frame):
        return False
    if frame.kind in ("python", "jit"):
        return True
    assert frame.module
    linked = is_plumbing(frame) or frame.name in LOCKS_BY_TIMER
    return not (frame.module.path.startswith(_SYSTEM) or linked or LINKED_LOCKS.match(label(frame)))


def files(profile: Profile, names: Names, first: int = 0) -> Rewriting:
    """Renames the program's executables, libraries and scripts."""
    executables, libraries = _fresh(names.executables, first), _fresh(names.libraries, first)
    scripts = _fresh(names.scripts, first)
    paths: dict[str, str] = {}
    shown: dict[str, str] = {}

    def moved(frame: Frame) -> Frame:
        if frame.kind in ("kernel", "other", "api") or not is_own(frame):
            return frame
        changed = _moved_script(frame) if frame.kind in ("python", "jit") else _moved_module(frame)
        shown[label(frame)] = label(changed)
        shown[located(frame)] = located(changed)
        return changed

    def _moved_script(frame: Frame) -> Frame:
        found = script_of(frame.name) if frame.kind == "jit" else None
        path = found.file if found else frame.file
        if not path or path[:1] == "<":
            return frame
        if path not in paths:
            name, dot, suffix = path.rpartition("/")[2].rpartition(".")
            paths[path] = f"{next(scripts)}{dot}{suffix if name else ''}"
        return frame._replace(name=frame.name.replace(path, paths[path])) if found else frame._replace(file=paths[path])

    def _moved_module(frame: Frame) -> Frame:
        assert frame.module
        path = frame.module.path
        if path.startswith(_SYSTEM):
            return frame
        if path not in paths:
            library = re.search(r"\.so(\.\d[\w.]*)?$", path)
            paths[path] = f"{next(libraries)}{library.group()}" if library else next(executables)
        old, new = path.rpartition("/")[2], paths[path].rpartition("/")[2]
        name = frame.name if is_named(frame) else frame.name.replace(old, new)
        return frame._replace(name=name, module=frame.module._replace(path=paths[path]))

    known = _by_frame(profile, moved)
    shown.pop("", None)
    bases = {old.rpartition("/")[2]: new.rpartition("/")[2] for old, new in paths.items()}
    return Rewriting(
        frame=known.__getitem__,
        function=lambda text: shown.get(text, text),
        script=lambda text: paths.get(text) or bases.get(text, text),
    )


def processes(profile: Profile, names: Names, first: int = 0) -> Rewriting:
    """Renames processes, and threads that have the name of their process."""
    new = _families((times.process for times in _of_user(profile)), names.processes, names.families, first)

    def thread_of(thread: str, process: str, is_main: bool) -> str:
        return new.get(thread, thread) if is_main or thread == process else thread

    return Rewriting(process=lambda name: new.get(name, name), thread=thread_of)


def threads(profile: Profile, names: Names, first: int = 0) -> Rewriting:
    """Renames all threads but main threads."""
    others = (times.thread for times in _of_user(profile) if not is_main(times))
    new = _families(others, names.threads, names.families, first)
    return Rewriting(thread=lambda thread, _process, is_main: thread if is_main else new.get(thread, thread))


def _of_user(profile: Profile) -> list[ThreadTimes]:
    """Threads of processes that are not the kernel's."""
    user = {sample.label("pid") for sample in profile.samples if any(f.kind != "kernel" for f in sample.stack)}
    return [times for times in profile.threads if times.pid in user]


def _families(given: Iterable[str], single: Sequence[str], numbered: Sequence[str], first: int) -> dict[str, str]:
    """New names: distinct ones for distinct ones, numbered ones with one beginning for numbered ones with one."""
    alone, several = _fresh(single, first), _fresh(numbered, first)
    begins: dict[str, str] = {}
    found: dict[str, str] = {}
    for name in dict.fromkeys(given):
        pattern = name_pattern(name)
        if name[:1] == "[":
            continue
        if pattern == name:
            found[name] = next(alone)
            continue
        if pattern not in begins:
            begins[pattern] = next(several)
        number = _NUMBER.search(name)
        assert number
        found[name] = f"{begins[pattern]}{number.group()}"
    return found


def _fresh(names: Sequence[str], first: int) -> itertools.chain[str]:
    """The names from that one on, then all of them again with a letter more."""
    rounds = itertools.count()
    return itertools.chain.from_iterable(
        (_longer(names[(i + first) % len(names)], turn) for i in range(len(names))) for turn in rounds
    )


def _longer(name: str, turn: int) -> str:
    if not turn:
        return name
    letters = "".join(chr(ord("a") + int(digit)) for digit in str(turn))
    end = name[-1] if name[-1] in "-_" else ""
    stem = name[: len(name) - len(end)]
    return f"{stem}_{letters}{end}"


def _by_frame(profile: Profile, change: Callable[[Frame], Frame]) -> dict[Frame, Frame]:
    known: dict[Frame, Frame] = {}
    seen: set[int] = set()
    for sample in profile.samples:
        for frame in sample.stack:
            if id(frame) not in seen:
                seen.add(id(frame))
                if frame not in known:
                    known[frame] = change(frame)
    return known
