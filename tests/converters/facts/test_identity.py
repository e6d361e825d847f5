"""Threads and processes whose ids came back, and sums of threads that ended, in summaries and outputs."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from stallscope.converters import pprof
from stallscope.converters.facts import identity
from stallscope.converters.model import Frame, Labels, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.model.slices import ThreadSlices
from stallscope.converters.readers.merging import merge
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize
from stallscope.converters.transforms.labels import merge_processes, root_name
from stallscope.converters.writers import chrome, folded, speedscope
from stallscope.converters.writers.base.options import WriteOptions

COLUMNS = [
    ValueType("off-cpu", "nanoseconds"),
    ValueType("count", "count"),
    ValueType("min", "nanoseconds", "min"),
    ValueType("max", "nanoseconds", "max"),
]
SECOND = 1_000_000_000


def labels(process: str, thread: str, **ids: int) -> Labels:
    """``ids`` with _ for -."""
    found: dict[str, str | int] = {"process": process, "thread": thread, "state": "interruptible"}
    return tuple(sorted((found | {key.replace("_", "-"): number for key, number in ids.items()}).items()))


def times(pid: int, process: str, tid: int, thread: str, **more: int) -> ThreadTimes:
    made = ThreadTimes(pid, process, tid, thread, SECOND, 0, 0, {"interruptible": SECOND}, 3)
    return replace(made, exited=True, **more)  # type: ignore[arg-type]


def profile() -> Profile:
    """A process, another one with its pid, two threads with one tid, and sums of threads that ended."""
    stack = (Frame("main"), Frame("work"))
    who = [
        labels("first", "first", pid=7, tid=7),
        labels("second", "second", pid=7, tid=7, pid_life=2),
        labels("second", "worker", pid=7, tid=8, pid_life=2),
        labels("second", "helper", pid=7, tid=8, pid_life=2, tid_life=2),
        labels("second", "pool", pid=7, pid_life=2, tid_life=1 << 24),
        labels("storm", "storm", pid_life=2, tid_life=2),
        labels("storm", "inner", pid_life=2, tid_life=(1 << 24) + 1),
    ]
    threads = [
        times(7, "first", 7, "first"),
        times(7, "second", 7, "second", pid_life=2),
        times(7, "second", 8, "worker", pid_life=2),
        times(7, "second", 8, "helper", pid_life=2, tid_life=2),
        times(7, "second", 0, "pool", pid_life=2, tid_life=1 << 24, count=500, creator=7),
        times(0, "storm", 0, "storm", pid_life=2, tid_life=2, count=400),
        times(0, "storm", 0, "inner", pid_life=2, tid_life=(1 << 24) + 1, count=300),
    ]
    samples = [Sample(stack, (SECOND, 2, 1, SECOND - 1), each) for each in who]
    processes = [ProcessTimes(7, "first"), ProcessTimes(7, "second", pid_life=2), ProcessTimes(0, "storm", pid_life=2)]
    return Profile(COLUMNS, samples, duration_ns=SECOND, threads=threads, processes=processes, lost={"stacks": 0})


def test_the_summary_tells_them_apart() -> None:
    summary = summarize(profile())
    assert summary.times.threads == 4 + 500 + 400 + 300
    assert [(each.name, each.number, each.ended) for each in summary.processes] == [
        ("storm", 400, 400),
        ("first", 1, 0),
        ("second", 1, 0),
    ]
    (wait,) = summary.waits
    assert (wait.threads, wait.processes, wait.time) == (1204, 402, 7 * SECOND)
    assert {(who.process, who.thread, who.main, who.threads, who.processes) for who in wait.who} == {
        ("first", "first", True, 1, 1),
        ("second", "second", True, 1, 1),
        ("second", "worker", False, 1, 1),
        ("second", "helper", False, 1, 1),
        ("second", "pool", False, 500, 1),
        ("storm", "storm", True, 400, 400),
        ("storm", "inner", False, 300, 300),
    }
    assert {group.process: group.threads for group in summary.contention} == {"first": 1, "second": 503, "storm": 700}
    text = io.StringIO()
    render(summary, text)
    assert (
        "400 × storm (400 of them only as a sum), first (pid 7), second (pid 7 (second)): 1,204 threads"
        in text.getvalue()
    )


def test_json_has_the_kernels_ids() -> None:
    told = summarize(profile()).to_json()
    assert [(each["name"], each["pids"], each["ended"]) for each in told["processes"]] == [
        ("storm", [], 400),
        ("first", [7], 0),
        ("second", [7], 0),
    ]
    assert {tid for who in told["waits"][0]["who"] for tid in who["tids"]} == {7, 8}
    assert {pid for each in told["contention"] for pid in each["pids"]} == {7}


def test_a_main_thread_that_another_one_replaced_is_one() -> None:
    made = profile()
    made.threads = [times(7, "x", 7, "x"), times(7, "x", 7, "x", tid_life=2)]
    made.samples = [
        made.samples[0]._replace(labels=labels("x", "x", pid=7, tid=7)),
        made.samples[0]._replace(labels=labels("x", "x", pid=7, tid=7, tid_life=2)),
    ]
    summary = summarize(made)
    assert (summary.times.threads, summary.times.wall) == (1, 2 * SECOND)


def test_nothing_changes_without_such_ids() -> None:
    made = profile()
    made.samples, made.threads = made.samples[:1], made.threads[:1]
    assert identity.with_own_ids(made) is made


@pytest.mark.parametrize(
    ("life", "shown"), [(1, "7"), (2, "7 (second)"), (3, "7 (third)"), (4, "7 (4th)"), (12, "7 (12th)")]
)
def test_ids_for_people(life: int, shown: str) -> None:
    assert identity.shown_id(7 | life - 1 << 32) == shown


def test_they_are_saved() -> None:
    made, file = profile(), io.BytesIO()
    pprof.save(made, file)
    file.seek(0)
    again = pprof.load(file)
    assert (again.threads, again.processes) == (made.threads, made.processes)
    assert [sample.labels for sample in again.samples] == [sample.labels for sample in made.samples]


def written(writer: object, **options: bool) -> str:
    file = io.BytesIO()
    writer.write(profile(), file, WriteOptions(**options))  # type: ignore[attr-defined, arg-type]
    return file.getvalue().decode()


def test_outputs_tell_them_apart() -> None:
    lines = written(folded).splitlines()
    assert {line.split(";")[0] for line in lines} == {"first-7", "second-7#2", "storm"}
    lines = written(folded, per_thread=True).splitlines()
    assert {line.split(";")[0] for line in lines} == {
        "first-7/7", "second-7#2/7", "worker-7#2/8", "helper-7#2/8#2", "pool-7#2", "storm", "inner",
    }  # fmt: skip
    text = written(speedscope, per_thread=True)
    assert all(name in text for name in ("second-7#2 worker/8", "second-7#2 helper/8#2", "storm inner"))
    assert written(chrome, per_thread=True).count('"process_name"') == 3


def test_processes_of_one_name_share_a_root() -> None:
    merged = merge_processes(profile())
    assert {frozenset(dict(sample.labels)) for sample in merged.samples} == {frozenset({"process", "state", "thread"})}
    assert root_name(labels("x", "x", pid=7, pid_life=3), "process") == "x-7#3"


def test_sums_of_intervals_that_are_merged_are_those_of_their_names() -> None:
    """Each interval has numbered them by itself."""
    one, other = profile(), profile()
    other.threads = [times(0, "other", 0, "other", pid_life=2, tid_life=2, count=7)]
    other.threads.append(times(0, "storm", 0, "storm", pid_life=3, tid_life=3, count=30))
    other.samples = [
        other.samples[0]._replace(labels=labels("other", "other", pid_life=2, tid_life=2)),
        other.samples[0]._replace(labels=labels("storm", "storm", pid_life=3, tid_life=3)),
    ]
    other.processes = []
    summary = summarize(merge([one, other]))
    assert {each.name: each.number for each in summary.processes} == {
        "storm": 430, "other": 7, "first": 1, "second": 1,
    }  # fmt: skip
    (wait,) = summary.waits
    assert (wait.time, wait.threads) == (9 * SECOND, 1204 + 37)


def test_processes_that_are_added_up_are_as_many_as_their_main_threads() -> None:
    main = times(0, "storm", 0, "storm", pid_life=2, tid_life=2, count=151)
    others = times(0, "storm", 0, "storm", pid_life=2, tid_life=1 << 24, count=3000)
    both = Profile(COLUMNS, [], threads=[main, others])
    (process,) = summarize(both).processes
    assert (process.number, process.ended) == (151, 151)
    found = identity.with_own_ids(both).threads
    assert identity.processes_of(found) == 151
    assert identity.processes_of(found[1:]) == 3000, "at most"
    alone = summarize(Profile(COLUMNS, [], threads=[times(7, "storm", 7, "storm"), others]))
    assert [each.number for each in alone.processes] == [1]


def test_slices_have_own_ids() -> None:
    one = ThreadSlices("app", "t", 7, 8, 10, 0)
    profile = Profile([], slices=[one, replace(one, pid_life=2, tid_life=3), replace(one, tid=0, pid_life=2)])
    found = [(each.pid, each.tid, each.pid_life, each.tid_life) for each in identity.with_own_ids(profile).slices]
    assert found == [(7, 8, 1, 1), (7 | 1 << 32, 8 | 2 << 32, 1, 1), (7 | 1 << 32, 0, 1, 1)]
