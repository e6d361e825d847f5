"""Sentences on Python's interpreter lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gil_profiles import HOG, gil, threads
from stallscope.converters.facts.facts import Beside, Facts
from stallscope.converters.facts.gil import GilShare, gil_shares
from stallscope.converters.facts.thread_roles import roles_of
from stallscope.converters.model import Frame, Module, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.gil import GilThread, GilTimes
from stallscope.converters.phrases.gil import gil_sentence, held_up_main
from stallscope.converters.rules.gil_main import find
from stallscope.converters.rules.verdict import Verdict
from stallscope.converters.summary.summarize import summarize
from summary_profiles import EXE, LIBC, MS, SECOND, Tracee, empty, user


def sentence(*gils: GilTimes, wall: int = 500) -> str:
    return gil_sentence(gil_shares(gils, [each for of in gils for each in threads(of.pid, wall)]))


def test_who_has_it_and_where() -> None:
    assert sentence(gil()) == (
        "For 30.0 % of their time, 2 threads of train.py (pid 7) wait for Python's interpreter lock (GIL), "
        "66.7 % of that while thread loader (tid 9) has it, most often in main → train.py:3 hog."
    )


def test_two_threads_take_turns() -> None:
    having = [GilThread("python3", 7, 150, 4, HOG), GilThread("loader", 9, 120, 1), GilThread("third", 10, 30, 1)]
    assert sentence(gil(holders=having)).endswith(
        ", 50.0 % of that while the main thread has it, most often in main → train.py:3 hog and 40.0 % while thread "
        "loader (tid 9) has it."
    )


def test_functions_are_named_if_they_have_much_of_it() -> None:
    having = [GilThread("loader", 9, 290, 9), GilThread("loader", 9, 10, 1, HOG)]
    assert sentence(gil(holders=having)).endswith("of that while thread loader (tid 9) has it.")


def test_nobody_is_named_without_a_holder() -> None:
    assert sentence(gil(holders=[])).endswith("wait for Python's interpreter lock (GIL).")


def test_what_does_not_matter_is_not_told() -> None:
    assert sentence(gil(40)) == ""
    assert sentence(gil(), wall=0) == ""
    assert gil_sentence(()) == ""


def test_several_processes() -> None:
    assert sentence(gil(), gil(200, pid=20)).endswith(" 1 other process waits for its own, too.")
    assert sentence(gil(), gil(200, pid=20), gil(200, pid=30)).endswith(" 2 other processes wait for theirs, too.")


def test_in_a_summary() -> None:
    columns = [ValueType(name, "nanoseconds") for name in ("blocked", "min", "max")] + [ValueType("count", "count")]
    labels = (("pid", 7), ("process", "train.py"), ("tid", 7), ("thread", "python3"), ("state", "interruptible"))
    profile = Profile(columns, [Sample((), (500, 1, 500, 3), labels)], threads=threads(wall=900), gil=[gil()])
    summary = summarize(profile)
    assert summary.answer[-1] == sentence(gil(), wall=900)
    assert summary.to_json()["gil"][0]["pid"] == 7


def test_a_pool_is_told_together() -> None:
    lines = [("load", f"t.py:{line} tokenise") for line in (8, 9, 8)]
    having = [GilThread(f"pool-{i}", 9 + i, 70, 4, frames) for i, frames in enumerate(lines)]
    having += [GilThread("pool-7", 16, 40, 4, HOG), GilThread("pool-8", 17, 50, 4)]
    assert sentence(gil(holders=having)).endswith(
        ", 70.0 % of that while 3 pool-* threads have it, most often in load → tokenise and 16.7 % while thread pool-8 "
        "(tid 17) has it."
    )


def test_the_lines_of_a_function_are_added_up() -> None:
    having = [GilThread("loader", 9, 20, 1, ("load", f"t.py:{line} tokenise")) for line in range(9)]
    having.append(GilThread("loader", 9, 50, 1, HOG))
    assert sentence(gil(holders=having)).endswith("has it, most often in load → tokenise.")


def verdicts(shares: Sequence[GilShare]) -> list[Verdict]:
    return find(Facts({}, {}, roles_of({}, {}), 1000, Beside(gil=shares)))


def said(verdict: Verdict) -> str:
    assert isinstance(verdict.detail, GilShare)
    return held_up_main(verdict.detail)


def test_a_main_thread_that_is_held_up() -> None:
    (held,) = verdicts(gil_shares([gil()], threads()))
    assert held.pids == {7}
    assert said(held) == (
        "For 60.0 % of its time, the main thread of train.py (pid 7) waits for Python's interpreter lock (GIL), "
        "66.7 % of that while thread loader (tid 9) has it, most often in main → train.py:3 hog."
    )
    several = gil()
    several.waiters.append(GilThread("loader", 9, 10, 1))
    (held,) = verdicts(gil_shares([several], threads()))
    assert "; of all such waits of this process, 66.7 % while thread loader" in said(held)
    others = gil()
    others.waiters = [GilThread("loader", 9, 300, 1)]
    for of, walls in ((others, 500), (gil(), 601), (gil(), 0)):
        assert verdicts(gil_shares([of], threads(wall=walls))) == []


def test_a_main_thread_that_is_held_up_comes_first() -> None:
    columns = [ValueType(name, "nanoseconds") for name in ("blocked", "min", "max")] + [ValueType("count", "count")]
    labels = (("pid", 7), ("process", "train.py"))
    main = (*labels, ("tid", 7), ("thread", "python3"), ("state", "interruptible"))
    loader = (*labels, ("tid", 8), ("thread", "python3"), ("state", "runnable-preempted"))
    futex = Frame("futex_wait", "kernel")
    waits = [
        Sample((Frame("take_gil", module=Module("/usr/bin/python3")), futex), (300, 1, 300, 3), main),
        Sample((Frame("spin", module=Module("/srv/spin")),), (400, 1, 400, 3), loader),
    ]
    of = [
        ThreadTimes(7, "train.py", 7, "python3", 500, 200, 0, {"interruptible": 300}),
        ThreadTimes(7, "train.py", 8, "python3", 500, 100, 400, {}),
    ]
    profile = Profile(columns, waits, duration_ns=500, threads=of, gil=[gil()])
    (held,) = verdicts(gil_shares([gil()], of))
    summary = summarize(profile)
    assert summary.answer[0] == said(held)
    assert sum("(GIL)" in each for each in summary.answer) == 1
    assert "waiting for a core" in summary.answer[1]
    assert summary.next_step and summary.next_step.command.startswith("trace-wakeup")


def test_who_has_it_is_told_once() -> None:
    take = (Frame("take_gil", module=Module("/usr/bin/python3")), Frame("futex_wait", "kernel"))
    write = (*user(EXE, "flush_log"), *user(LIBC, "fsync"), Frame("ext4_sync_file", "kernel"))
    profile = empty()
    for tid in range(8, 12):
        thread = Tracee(profile, 7, "train.py", tid, f"pool-{tid}").run(MS)
        thread.wait(take, "interruptible", 8 * SECOND, 1000, most=20 * MS)
        thread.wait(write, "uninterruptible", SECOND, 1000).run(MS)
    told = [summarize(replace(profile, gil=gils)).answer for gils in ([], [gil(32 * SECOND)])]
    assert ["; the rest of their time: " in " ".join(each) for each in told] == [True, False]
