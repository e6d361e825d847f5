"""Data for which pprof has no field, stored in a field of our own that other programs skip.

It is one JSON object with ``version``, ``title``, ``host``, ``lost``, ``threads`` (the fields of ThreadTimes),
``processes`` (those of ProcessTimes, except the script and the ranks; omitted if there are none), ``calls`` and
``shared`` (those of CallTimes and SharedCall, its dictionaries as lists; omitted if there are none), ``call_ioctls``,
``copies``, ``answers``, ``locks``, ``file_locks``, ``gil``, ``neighbours``, ``objects``, ``group_limits``,
``origins``, ``slices``, ``pressure``, ``interrupts``, ``core_threads``, ``gpus``, ``watched``, ``steps``,
``found_steps`` and ``collectives`` (those of CallIoctls, Copies, AskedValues, LockTimes, FileLock, GilTimes, Neighbour,
WaitObject, GroupLimit, ProcessOrigin, ThreadSlices, Pressure, Interrupts, CoreThread, Gpu, Watched, Steps and
Collectives; omitted if there are none), ``scripts`` and ``ranks`` (one per process; omitted if there are none),
``lives`` (of threads and of processes: the index, and the fields with a default, of those that have other values;
omitted if none has), ``display``
(how the answer was shown; omitted if it was not), ``value_types`` (``[name, unit, aggregate, label key]``, the key ""
for a sum), ``generated`` (the comments for people, which load() removes again), ``remarks`` (those of the comments
that are codes, with their places; omitted if there are none), ``made_in`` (where threads were created: ``places``,
each a list of functions, and ``of``, each the index of a thread and of its place; omitted if there are none),
``critical`` (only of a profile that is inside another one: the path of which the answer tells) and ``foreign``
(whether the profile has `Details`).
Files of version 0.1 have it in their last comment, behind the word ``stallscope:``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any, NamedTuple

from ..base.errors import StallscopeError
from ..model import Profile, ThreadTimes, ValueType
from ..model.call_ioctls import CallIoctls
from ..model.calls import BUCKETS, CallTimes
from ..model.collectives import Watched
from ..model.copies import Copies
from ..model.neighbours import Neighbour
from ..model.pressure import ALL, KINDS, RESOURCES, CoreThread, Interrupts, Pressure
from ..model.processes import LATENCY_BUCKETS, THREAD_VARIABLES, CpuLimit, ProcessTimes, cpu_set
from ..model.ranks import LABELS
from ..model.sharing import SharedCall
from ..phrases.remarks import worded
from . import (
    answers,
    checks,
    collectives,
    display,
    gpus,
    group_limits,
    locks,
    origins,
    remarks,
    slices,
    steps,
    threads,
    wait_objects,
)

_PREFIX, _VERSION = "stallscope:", 1
_PLAIN = (
    *("calls", "call_ioctls", "copies", "answers", "locks", "file_locks", "gil"),
    *("neighbours", "objects", "group_limits", "origins", "slices", "pressure", "interrupts", "core_threads", "gpus"),
    *("watched",),
)
_SLACK = 10**9
"""Nanoseconds that a thread may have done beyond twice its time."""

_THREAD_LIVES, _PROCESS_LIVES = ("pid_life", "tid_life", "count"), ("pid_life",)
"""Fields that are 1 in most threads and processes."""


class Column(NamedTuple):
    """A value type and the numeric label that carries it; "" for a sum, which is a pprof sample value."""

    value_type: ValueType
    label: str


def for_people(profile: Profile) -> list[str]:
    """Comments for users: what was measured, what was lost, and remarks. pprof prints them first, so one that was
    read from another program's pprof gets no title."""
    lines = [profile.title] if profile.title and profile.details is None else []
    if profile.lost:
        lines.append("lost: " + ", ".join(f"{kind} {count}" for kind, count in profile.lost.items()))
    return lines + worded(comment for comment in profile.comments if not isinstance(comment, str))


def encode(profile: Profile, columns: list[Column], generated: list[str], *, with_path: bool = False) -> str:
    """The data that pprof's own fields cannot hold; lone surrogates are kept. ``with_path``: its critical path, too."""
    meta: dict[str, Any] = {
        "version": _VERSION,
        "title": profile.title,
        "host": profile.host,
        "lost": profile.lost,
        "value_types": [[*column.value_type, column.label] for column in columns],
        "generated": generated,
        "threads": _threads(profile.threads),
        "foreign": profile.details is not None,
    }
    # Scripts and lives are apart: versions that do not know them refuse other fields of a thread or process.
    lives = {"threads": _taken_out(meta["threads"], _THREAD_LIVES)}
    made_in = threads.taken_out(meta["threads"])
    if profile.processes:
        meta["processes"] = [asdict(process) for process in profile.processes]
        scripts = [entry.pop("script") for entry in meta["processes"]]
        if any(scripts):
            meta["scripts"] = scripts
        ranks = [entry.pop("ranks") for entry in meta["processes"]]
        if any(ranks):
            meta["ranks"] = ranks
        lives["processes"] = _taken_out(meta["processes"], _PROCESS_LIVES)
    if any(lives.values()):
        meta["lives"] = lives
    if profile.shared:
        meta["shared"] = [_shared_fields(call) for call in profile.shared]
    for name in _PLAIN:
        if entries := getattr(profile, name):
            meta[name] = [asdict(each) for each in entries]
    others = {
        "display": profile.display and display.encoded(profile.display),
        "steps": [steps.encoded(each) for each in profile.steps],
        "found_steps": [steps.encoded(each) for each in profile.found_steps],
        "collectives": [asdict(each) for each in profile.collectives],
        "remarks": remarks.encoded(profile.comments),
        "made_in": made_in,
        "critical": _path(profile) if with_path else None,
    }
    meta |= {name: entry for name, entry in others.items() if entry}
    return json.dumps(meta, ensure_ascii=False, separators=(",", ":"))


def _path(profile: Profile) -> dict[str, Any] | None:
    if profile.critical is None or profile.scheduling is None:
        return None
    from . import critical  # it needs numpy

    return critical.encoded(profile.critical, profile.scheduling)


def _threads(threads: Sequence[ThreadTimes]) -> list[dict[str, Any]]:
    """Fields of the threads, as `asdict` gives them, which would copy what is in the fields, too."""
    names = [each.name for each in fields(ThreadTimes)]
    return [{name: getattr(thread, name) for name in names} for thread in threads]


def _taken_out(entries: list[dict[str, Any]], names: Sequence[str]) -> list[list[int]]:
    """The index and these fields of those entries in which one of them is not 1; removes them from all."""
    found = [[i, *(entry.pop(name) for name in names)] for i, entry in enumerate(entries)]
    return [each for each in found if any(number != 1 for number in each[1:])]


def _put_back(lives: Any, entries: Sequence[ThreadTimes] | Sequence[ProcessTimes], names: Sequence[str]) -> None:
    for each in checks.listed(lives):
        i, *numbers = map(checks.integer, checks.listed(each))
        checks.require(0 <= i < len(entries) and len(numbers) == len(names) and min(numbers) > 0, "lives")
        for name, number in zip(names, numbers, strict=True):
            setattr(entries[i], name, number)


def _put_ranks(ranks: list[Any], processes: Sequence[ProcessTimes]) -> None:
    checks.require(len(ranks) in (0, len(processes)), "ranks")
    for entry, process in zip(ranks, processes, strict=False):
        checks.require(isinstance(entry, dict) and entry.keys() <= {*LABELS}, "ranks")
        process.ranks = {label: checks.text(value) for label, value in entry.items()}


def in_comments(comments: list[str]) -> str | None:
    """Removes and returns the comment in which version 0.1 wrote it; None when there is none."""
    for i in reversed(range(len(comments))):
        if comments[i].startswith(_PREFIX):
            return comments.pop(i)[len(_PREFIX) :]
    return None


def decode(text: str, profile: Profile) -> tuple[list[Column], bool]:
    """Inverse of `encode`: fills ``profile``, returns its columns and whether it should have details.

    Raises ValueError for text that `encode` did not write, and StallscopeError for that of a newer version.
    """
    try:
        meta = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    checks.require(isinstance(meta, dict), "object expected")
    _check_version(meta.get("version"))
    profile.title = checks.text(meta.get("title", ""))
    profile.host = checks.text(meta.get("host", ""))
    profile.lost = checks.counts(meta.get("lost", {}))
    checks.require(all(0 <= number < checks.MOST for number in profile.lost.values()), "what was lost")
    profile.threads = [_thread(entry) for entry in checks.listed(meta.get("threads", []))]
    processes = checks.listed(meta.get("processes", []))
    scripts = checks.listed(meta.get("scripts", [""] * len(processes)))
    checks.require(len(scripts) == len(processes), "scripts")
    profile.processes = [_process(entry, checks.text(script)) for entry, script in zip(processes, scripts, strict=True)]
    _put_ranks(checks.listed(meta.get("ranks", [])), profile.processes)
    lives = meta.get("lives", {})
    checks.require(isinstance(lives, dict), "lives")
    _put_back(lives.get("threads", []), profile.threads, _THREAD_LIVES)
    threads.put_back(meta.get("made_in"), profile.threads)
    _put_back(lives.get("processes", []), profile.processes, _PROCESS_LIVES)
    for name, read in _LISTS.items():
        setattr(profile, name, [read(entry) for entry in checks.listed(meta.get(name, []))])
    profile.display = display.decoded(meta["display"]) if meta.get("display") is not None else None
    for line in checks.listed(meta.get("generated", [])):
        if line in profile.comments:
            profile.comments.remove(line)
    remarks.put_back(meta.get("remarks", []), profile.comments)
    if meta.get("critical") is not None:
        from . import critical  # it needs numpy

        profile.critical, profile.scheduling = critical.decoded(meta["critical"])
    columns = [_column(entry) for entry in checks.listed(meta.get("value_types"))]
    profile.value_types = [column.value_type for column in columns]
    return columns, meta.get("foreign") is True


def _check_version(version: Any) -> None:
    if isinstance(version, int) and _VERSION < version < checks.MOST:
        raise StallscopeError(
            f"a newer version of these commands wrote this profile: its data have version {version}, not {_VERSION}",
            "read it with the version that recorded it",
        )
    checks.require(version == _VERSION, f"not version {_VERSION}")


def _column(entry: Any) -> Column:
    checks.require(isinstance(entry, list) and len(entry) == 4, "value type")
    name, unit, aggregate, label = map(checks.text, entry)
    checks.require(aggregate in ("sum", "min", "max"), "aggregate")
    return Column(ValueType(name, unit, aggregate), label)  # type: ignore[arg-type]  # checked above


def _thread(entry: Any) -> ThreadTimes:
    checks.require(isinstance(entry, dict), "thread")
    entry = {"creator": 0} | entry  # missing in files before 0.1
    checks.require(entry.keys() == {f.name for f in fields(ThreadTimes)} - {*_THREAD_LIVES, "made_in"}, "thread")
    return _possible(
        ThreadTimes(
            pid=checks.integer(entry["pid"]),
            process=checks.text(entry["process"]),
            tid=checks.integer(entry["tid"]),
            thread=checks.text(entry["thread"]),
            wall=checks.integer(entry["wall"]),
            on_cpu=checks.integer(entry["on_cpu"]),
            runnable=checks.integer(entry["runnable"]),
            blocked=checks.counts(entry["blocked"]),
            switches=checks.integer(entry["switches"]),
            exited=bool(entry["exited"]),
            creator=checks.integer(entry["creator"]),
        )
    )


def _possible(thread: ThreadTimes) -> ThreadTimes:
    """Returns this thread. ValueError if it did more than its time allows; clocks of some engines differ a little."""
    done = (thread.on_cpu, thread.runnable, *thread.blocked.values())
    checks.require(
        all(0 <= figure < checks.MOST for figure in (*done, thread.wall, thread.switches)), "figures of threads"
    )
    checks.require(not thread.wall or sum(done) <= 2 * thread.wall + _SLACK, "figures of threads")
    return thread


def _neighbour(entry: Any) -> Neighbour:
    made = checks.flat(Neighbour, entry)
    cpu_set(made.cpus)  # ValueError if it is no list of cores
    return made


def _pressure(entry: Any) -> Pressure:
    made = checks.flat(Pressure, entry)
    checks.require(made.resource in RESOURCES, "pressure")
    return made


def _interrupts(entry: Any) -> Interrupts:
    """Interrupts, with the core if it is of one: older captures have no field for it."""
    checks.require(isinstance(entry, dict), "interrupts")
    core = entry.get("core", ALL)
    core = ALL if core == ALL else checks.figure(core)
    made = checks.flat(Interrupts, {**entry, "core": 0})
    checks.require(made.kind in KINDS, "interrupts")
    return replace(made, core=core)


def _process(entry: Any, script: str) -> ProcessTimes:
    known = {f.name for f in fields(ProcessTimes)} - {"script", "ranks", *_PROCESS_LIVES}
    checks.require(isinstance(entry, dict) and entry.keys() == known, "process")
    latencies = tuple(map(checks.integer, checks.listed(entry["latencies"])))
    checks.require(
        len(latencies) in (0, LATENCY_BUCKETS) and all(0 <= waits < checks.MOST for waits in latencies), "latencies"
    )
    cpus = checks.text(entry["cpus"])
    cpu_set(cpus)  # ValueError if it is no list of cores
    environment = entry["environment"]
    if environment is not None:
        checks.require(isinstance(environment, dict) and len(environment) <= len(THREAD_VARIABLES), "environment")
        environment = {name: checks.text(value) for name, value in environment.items()}
    return ProcessTimes(
        pid=checks.integer(entry["pid"]),
        process=checks.text(entry["process"]),
        latencies=latencies,
        cpus=cpus,
        limits=tuple(_limit(limit) for limit in checks.listed(entry["limits"])),
        environment=environment,
        script=script,
    )


def _call(entry: Any, *, of_thread: bool = False) -> CallTimes:
    checks.require(isinstance(entry, dict) and entry.keys() == {f.name for f in fields(CallTimes)}, "call")
    latencies = tuple(map(checks.integer, checks.listed(entry["latencies"])))
    checks.require(len(latencies) in (0, BUCKETS), "latencies of calls")
    errors = checks.counts(entry["errors"])
    texts = {key: checks.text(entry[key]) for key in ("name", "device", "process", "locks", "library", "thread")}
    numbers = {
        key: checks.integer(entry[key]) for key in entry.keys() - texts.keys() - {"latencies", "errors", "threads"}
    }
    figures = [*latencies, *errors.values(), *numbers.values()]
    checks.require(all(0 <= figure < checks.MOST for figure in figures), "figures of calls")
    nested = checks.listed(entry["threads"])
    checks.require(not (nested and of_thread), "threads of calls")
    threads = [_call(thread, of_thread=True) for thread in nested]
    return CallTimes(**texts, **numbers, latencies=latencies, errors=errors, threads=threads)  # type: ignore[arg-type]


def _shared_fields(call: SharedCall) -> dict[str, Any]:
    turns, waits = list(call.turns.items()), [(*pair, ns) for pair, ns in call.waits.items()]
    return asdict(call) | {"turns": turns, "waits": waits}


def _shared(entry: Any) -> SharedCall:
    checks.require(isinstance(entry, dict) and entry.keys() == {f.name for f in fields(SharedCall)}, "shared call")
    rows = {
        key: [tuple(map(checks.integer, checks.listed(row))) for row in checks.listed(entry[key])]
        for key in ("turns", "waits")
    }
    checks.require(all(len(row) == size for key, size in (("turns", 2), ("waits", 3)) for row in rows[key]), "turns")
    numbers = {key: checks.integer(value) for key, value in entry.items() if key not in ("name", "device", *rows)}
    figures = [*numbers.values(), *(number for each in rows.values() for row in each for number in row)]
    checks.require(all(0 <= figure < checks.MOST for figure in figures), "figures of shared calls")
    return SharedCall(
        name=checks.text(entry["name"]),
        device=checks.text(entry["device"]),
        **numbers,
        turns={row[0]: row[1] for row in rows["turns"]},
        waits={row[:2]: row[2] for row in rows["waits"]},  # type: ignore[misc]  # of 3
    )


def _limit(entry: Any) -> CpuLimit:
    checks.require(isinstance(entry, dict) and entry.keys() == {f.name for f in fields(CpuLimit)}, "limit")
    numbers = {name: checks.integer(value) for name, value in entry.items() if name != "cgroup"}
    checks.require(all(0 <= number < checks.MOST for number in numbers.values()) and numbers["period_us"] > 0, "limit")
    return CpuLimit(checks.text(entry["cgroup"]), **numbers)


_LISTS: dict[str, Callable[[Any], Any]] = {
    "calls": _call,
    "shared": _shared,
    "call_ioctls": partial(checks.flat, CallIoctls),
    "neighbours": _neighbour,
    "pressure": _pressure,
    "interrupts": _interrupts,
    "core_threads": partial(checks.flat, CoreThread),
    "gpus": gpus.decoded,
    "copies": partial(checks.flat, Copies),
    "answers": answers.decoded,
    "locks": locks.decoded,
    "file_locks": locks.decoded_file,
    "gil": locks.decoded_gil,
    "objects": wait_objects.decoded,
    "origins": origins.decoded,
    "group_limits": group_limits.decoded,
    "slices": slices.decoded,
    "steps": steps.decoded,
    "found_steps": steps.decoded_found,
    "collectives": collectives.decoded,
    "watched": partial(checks.flat, Watched),
}
"""Readers of the entries of each list of a profile."""
