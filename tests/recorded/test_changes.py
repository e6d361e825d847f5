"""The changes of captures change what they say, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
import renaming
from changes import CHANGES, doubled, halves, split_and_merged, with_events_dropped, with_other_ids
from kept import NAMES, capture
from lock_profiles import lock
from renaming import HOSTILE, NEUTRAL
from rewriting import Rewriting, rewritten
from stallscope.converters.facts.frame_names import label
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ThreadTimes
from stallscope.converters.model.gil import GilThread, GilTimes
from stallscope.converters.model.processes import CpuLimit, ProcessTimes
from stallscope.converters.model.wakers import WAKER
from summary_profiles import EXE, FUTEX, LIBC, MS, SECOND, VALUE_TYPES, user
from wait_graphs import chained, profile_of

SCRIPT = "/srv/job/train.py"


def small() -> Profile:
    """Process 7 with the threads 7, 9 and 8, in Python, C++ and JavaScript."""
    stacks = [
        (*user(EXE, "_start"), *user(LIBC, "__libc_start_main"), *user(EXE, "main", "ops::wait<int>(int)"), *FUTEX),
        (*user(EXE, "main", "ops::wait<char>(char)", "[demo+0x10]"), *user(LIBC, "recv"), *FUTEX),
        (
            Frame("Thread.run", "python", file="/usr/lib/python3.11/threading.py", line=9),
            Frame("load", "python", file=SCRIPT, line=7),
            Frame("JS:^answer /srv/job/server.js:8:23", "jit"),
            Frame("JS:^readSync node:fs:708:18", "jit"),
            *FUTEX,
        ),
    ]
    names = {7: "train", 9: "worker-1", 8: "worker-2"}
    samples = [
        Sample(stack, (100 * MS + 1, 41, 1, 9 * MS), _labels(tid, names[tid]))
        for tid, stack in zip(names, stacks, strict=True)
    ]
    times = {"wall": SECOND, "on_cpu": 800 * MS, "runnable": 100 * MS, "blocked": {"interruptible": 100 * MS}}
    holder = GilThread("worker-1", 9, 50 * MS, 3, ("Thread.run", "train.py:7 load"))
    limit = CpuLimit("/job", 20_000, 100_000, 9, 5, 80 * MS)
    return Profile(
        list(VALUE_TYPES),
        samples,
        start_ns=SECOND,
        duration_ns=SECOND,
        threads=[
            ThreadTimes(7, "train", tid, name, creator=7 if tid == 8 else 0, **times) for tid, name in names.items()
        ],
        processes=[ProcessTimes(7, "train", (0, 4, 2), "0-1", (limit,), script="train.py")],
        gil=[GilTimes("train", 7, 50 * MS, 3, MS, 0, 0, [GilThread("train", 7, 50 * MS, 3)], 0, [holder])],
        locks=[lock()],
    )


def _labels(tid: int, thread: str) -> Labels:
    return (("pid", 7), ("process", "train"), ("state", "interruptible"), ("thread", thread), ("tid", tid))


def functions_of(profile: Profile) -> list[list[str]]:
    return [[label(frame) for frame in sample.stack if frame.kind != "kernel"] for sample in profile.samples]


def test_only_functions_of_the_program_are_renamed() -> None:
    made = rewritten(small(), renaming.functions(small(), NEUTRAL))
    assert functions_of(made) == [
        ["_start", "__libc_start_main", "fn", "fn_b"],
        ["fn", "fn_b", "[demo]", "recv"],
        ["Thread.run", "fn_c", "fn_d", "readSync"],
    ]
    assert made.samples[0].stack[3].name != made.samples[1].stack[1].name, "of other arguments"
    assert made.samples[2].stack[2].name == "JS:^fn_d /srv/job/server.js:8:23"
    assert made.gil[0].holders[0].frames == ("Thread.run", "train.py:7 fn_c")
    assert [sample.labels for sample in made.samples] == [sample.labels for sample in small().samples]
    assert (made.threads, made.processes) == (small().threads, small().processes)


def test_only_files_of_the_program_are_renamed() -> None:
    made = rewritten(small(), renaming.files(small(), NEUTRAL))
    paths = [[frame.module.path for frame in sample.stack if frame.module] for sample in made.samples]
    new = "/opt/app/program"
    assert paths == [[new, LIBC.path, new, new], [new, new, new, LIBC.path], []]
    assert made.samples[1].stack[2].name == "[program+0x10]"
    assert [frame.file for frame in made.samples[2].stack[:2]] == [
        "/usr/lib/python3.11/threading.py",
        "/opt/app/script.py",
    ]
    assert made.samples[2].stack[2].name == "JS:^answer /opt/app/script_b.js:8:23"
    assert made.processes[0].script == "script.py"
    assert made.gil[0].holders[0].frames == ("Thread.run", "script.py:7 load")
    library = Profile(VALUE_TYPES, [Sample(user(Module("/srv/libjob.so.2"), "f"), (1, 1, 1, 1))])
    (frame,) = rewritten(library, renaming.files(library, NEUTRAL)).samples[0].stack
    assert frame.module == Module("/opt/app/library.so.2")


def test_processes_and_threads_are_renamed_in_all_parts() -> None:
    made = rewritten(small(), renaming.processes(small(), NEUTRAL))
    assert {(times.process, times.thread) for times in made.threads} == {
        ("program", "program"),
        *(("program", "worker-1"), ("program", "worker-2")),
    }
    assert {dict(sample.labels)["process"] for sample in made.samples} == {"program"}
    assert (made.gil[0].process, made.gil[0].waiters[0].thread) == ("program", "program")
    assert (made.processes[0].process, made.locks[0].holders[0].process) == ("program", "program")
    made = rewritten(small(), renaming.threads(small(), NEUTRAL))
    assert [times.thread for times in made.threads] == ["train", "group-1", "group-2"], "numbered ones stay numbered"
    assert [dict(sample.labels)["thread"] for sample in made.samples] == ["train", "group-1", "group-2"]
    assert (made.gil[0].waiters[0].thread, made.gil[0].holders[0].thread) == ("train", "group-1")


@pytest.mark.parametrize("rename", [renaming.functions, renaming.files, renaming.processes, renaming.threads])
@pytest.mark.parametrize("name", NAMES)
def test_distinct_names_stay_distinct(name: str, rename: renaming.Rename) -> None:
    before = capture(name)
    for names in (NEUTRAL, HOSTILE):
        after = rewritten(before, rename(before, names))
        stacks = zip(before.samples, after.samples, strict=True)
        frames = [pair for old, new in stacks for pair in zip(old.stack, new.stack, strict=True)]
        assert one_to_one(frames)
        # A function of the program may be called as one of a library. A waker's label has its arguments, too.
        own = [(old, new) for old, new in frames if renaming.is_programs(old) and old.kind != WAKER]
        assert one_to_one((label(old), label(new)) for old, new in own)
        threads = zip(before.threads, after.threads, strict=True)
        assert one_to_one((_named(old), _named(new)) for old, new in threads)


def one_to_one(pairs: Iterable[tuple[object, object]]) -> bool:
    found = set(pairs)
    return len(found) == len({old for old, _ in found}) == len({new for _, new in found})


def _named(times: ThreadTimes) -> tuple[str, str, bool]:
    return times.process, times.thread, times.pid == times.tid


def test_ids_are_exchanged_everywhere() -> None:
    changed = with_other_ids(small(), seed=None)
    made = changed.profile
    assert [(times.pid, times.tid, times.creator) for times in made.threads] == [(9, 9, 0), (9, 7, 0), (9, 8, 9)]
    assert [(dict(sample.labels)["pid"], dict(sample.labels)["tid"]) for sample in made.samples] == [
        *((9, 9), (9, 7)),
        (9, 8),
    ]
    assert (made.processes[0].pid, made.gil[0].pid, made.gil[0].holders[0].tid) == (9, 9, 7)
    assert [(thread.pid, thread.tid) for thread in made.locks[0].waiters] == [(9, 8), (9, 7)]
    assert changed.ids == {9: 7, 7: 9, 8: 8}


def test_wakers_are_rewritten() -> None:
    profile = profile_of(
        chained(7, 8, 5 * MS, ("app-7", 7, "app"), ("disk-9", 9, "t9")),
        chained(7, 7, 5 * MS, ("[timer]", 0, "")),
    )
    by = Rewriting(
        ident=lambda number: number + 100 if number else 0,
        process=str.upper,
        thread=lambda thread, process, is_main: f"{thread} of {process}{' (main)' if is_main else ''}",
    )
    first, second = rewritten(profile, by).samples
    assert dict(first.labels) == {
        "pid": 107,
        "process": "APP",
        "tid": 108,
        "thread": "t8 of app",
        "state": "interruptible",
        "waker": "APP-107",
        "waker_tid": 107,
        "waker_thread": "app of app (main)",
        "chain_tids": "107 109",
        "chain_thread": "t9 of disk (main)",
    }
    assert [frame.name for frame in first.stack[2:]] == [
        "--",
        "write_app-7",
        "APP-107",
        "--",
        "write_disk-9",
        "DISK-109",
    ]
    assert (second.label("waker"), second.stack[-1].name) == ("[timer]", "[timer]")


def test_all_times_are_doubled() -> None:
    made = doubled(small()).profile
    assert made.samples[0].values == (200 * MS + 2, 41, 2, 18 * MS)
    assert (made.duration_ns, made.threads[0].wall, made.threads[0].blocked) == (
        *(2 * SECOND, 2 * SECOND),
        {"interruptible": 200 * MS},
    )
    (limit,) = made.processes[0].limits
    assert (limit.cores, limit.periods, limit.throttled_ns) == (0.2, 9, 160 * MS)
    assert made.processes[0].latencies == (0, 0, 6)
    assert (made.gil[0].time, made.gil[0].waiters[0].time, made.locks[0].places[0].time) == (
        *(100 * MS, 100 * MS),
        180 * MS,
    )


def test_two_halves_are_merged_to_the_whole() -> None:
    given = small()
    given.threads[2] = replace(given.threads[2], wall=SECOND // 4, exited=True)
    first, second = halves(given)
    assert (first.duration_ns, second.start_ns, second.duration_ns) == (SECOND // 2, 3 * SECOND // 2, SECOND // 2)
    assert [times.tid for times in first.threads] == [7, 9, 8], "the third one lived in the first half"
    assert [times.tid for times in second.threads] == [7, 9]
    assert [sample.values for sample in first.samples] == [
        *[(50 * MS + 1, 21, 1, 9 * MS)] * 2,
        (100 * MS + 1, 41, 1, 9 * MS),
    ]
    made = split_and_merged(given).profile
    assert sorted(made.samples) == sorted(given.samples)
    assert (made.start_ns, made.duration_ns, made.locks) == (given.start_ns, given.duration_ns, given.locks)
    assert sum(times.wall for times in made.threads) == sum(times.wall for times in given.threads)


@pytest.mark.parametrize("name", NAMES)
def test_about_5_percent_of_events_are_dropped(name: str) -> None:
    before, column = capture(name), capture(name).index("count")
    after = with_events_dropped(before, seed=1).profile
    whole, left = (sum(sample.values[column] for sample in each.samples) for each in (before, after))
    # Rows with few events are dropped whole: one that has more of them than others makes it a little more.
    assert 0.9 * whole <= left <= whole
    assert left < whole or whole < 20 * len(before.samples)
    assert after.threads == before.threads


def test_no_change_changes_the_capture() -> None:
    for name in NAMES[:3]:
        before = repr(capture(name))
        for change in CHANGES.values():
            change(capture(name))
        assert repr(capture(name)) == before
