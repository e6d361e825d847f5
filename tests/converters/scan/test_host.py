"""The host in a scan: pressure, interrupts, who waits for whom, and threads that were created."""

from __future__ import annotations

import json

import pytest
from stallscope.converters.model import Profile, ThreadTimes, ValueType
from stallscope.converters.model.pressure import HARD, SOFT, STOLEN, Interrupts, Pressure
from stallscope.converters.model.waits_for import DEVICE, THREAD, Node, WaitGraph
from stallscope.converters.scan.host import Pair, host_of, sentences
from summary_profiles import MS, SECOND

TEN = 10 * SECOND
EMPTY: dict[str, list[object]] = {"contended": [], "cores": [], "outsiders": []}


def profile(*parts: Pressure | Interrupts, threads: tuple[ThreadTimes, ...] = ()) -> Profile:
    made = Profile([ValueType("blocked", "nanoseconds")], duration_ns=TEN, threads=list(threads))
    made.pressure = [each for each in parts if isinstance(each, Pressure)]
    made.interrupts = [each for each in parts if isinstance(each, Interrupts)]
    return made


def test_nothing_is_said_of_a_host_that_lacks_nothing() -> None:
    calm = profile(
        Pressure("cpu", 4 * SECOND, 0, TEN),
        Pressure("io", SECOND, SECOND // 2, TEN),
        Pressure("memory", 0, 0, TEN),
        Interrupts(HARD, "", TEN // 50, 1_000, TEN),
        Interrupts(SOFT, "", TEN // 20, 1_000, TEN),
        Interrupts(STOLEN, "", TEN // 100, 0, TEN),
    )
    assert sentences(host_of(calm, None)) == ()


def test_what_is_short_is_told_of_the_host_first() -> None:
    short = profile(
        Pressure("io", 9 * SECOND, 9 * SECOND, TEN, "/job"),
        Pressure("io", 4 * SECOND, 2 * SECOND, TEN),
        Pressure("memory", MS, 0, TEN),
        Pressure("memory", SECOND, 0, TEN, "/job"),
    )
    assert sentences(host_of(short, None)) == (
        "Tasks wait for a disk for 40.0 % of the time, all of them for 20.0 %.",
        "Tasks in the control group /job wait for memory for 10.0 % of the time.",
    )


def test_ranks_that_poll_while_they_stand_still_want_the_cores() -> None:
    threads = tuple(ThreadTimes(pid, "train", pid, "train", TEN, 4 * SECOND, 5 * SECOND, {}) for pid in (1, 2, 3))
    short = profile(Pressure("cpu", 9 * SECOND, 0, TEN), threads=threads)
    (told,) = sentences(host_of(short, None, polling={1, 2}))
    assert told == (
        "Tasks wait for a core for 90.0 % of the time: 66.7 % of the time that is run or waited for one is of ranks "
        "that poll while they stand still."
    )
    (told,) = sentences(host_of(short, None, polling={1}))
    assert told == "Tasks wait for a core for 90.0 % of the time.", "others want most of it"


def test_what_is_taken_from_the_cores() -> None:
    taken = profile(
        Interrupts(HARD, "", TEN // 5, 9_000, 2 * TEN),
        Interrupts(SOFT, "", TEN // 2, 9_000, 2 * TEN),
        Interrupts(STOLEN, "", TEN // 4, 0, 2 * TEN),
        Interrupts(HARD, "24 PCI-MSI mlx5_comp0", 0, 8_000, 2 * TEN),
        Interrupts(SOFT, "NET_RX", 0, 7_000, 2 * TEN),
    )
    assert sentences(host_of(taken, None)) == (
        "Interrupts take the cores' time: hard ones 10.0 % and soft ones 25.0 %; most come from 24 PCI-MSI mlx5_comp0.",
        "The host of this virtual machine gives 12.5 % of its cores' time to others.",
    )


def test_merged_captures_are_added_up() -> None:
    """Tasks of one of two captures wait for a disk for 30 %: 15 % of both."""
    merged = profile(
        Pressure("io", 3 * SECOND, SECOND, TEN),
        Pressure("io", 0, 0, TEN),
        Interrupts(STOLEN, "", SECOND, 0, TEN),
        Interrupts(STOLEN, "", SECOND, 0, TEN),
    )
    host = host_of(merged, None)
    assert host.pressure == (Pressure("io", 3 * SECOND, SECOND, 2 * TEN),)
    assert host.interrupts == (Interrupts(STOLEN, "", 2 * SECOND, 0, 2 * TEN),)
    assert sentences(host) == ("The host of this virtual machine gives 10.0 % of its cores' time to others.",)
    assert merged.pressure[0].some == 3 * SECOND, "what was merged stays as it was"


def test_who_waits_for_whom_is_added_up_by_name() -> None:
    graph = WaitGraph()
    one, two, other, disk = Node(THREAD, 1, 1), Node(THREAD, 2, 2), Node(THREAD, 9, 9), Node(DEVICE, name="nvme")
    own = Node(THREAD, 1, 5)
    graph.names = {
        one: ("train", "a"),
        two: ("train", "b"),
        other: ("feed", ""),
        own: ("train", "w"),
        disk: ("nvme", ""),
    }
    graph.ends = {(one, other): 3, (two, other): 4, (one, disk): 90, (one, own): 80, (two, one): 2, (other, one): 0}
    assert host_of(profile(), graph).pairs == (
        Pair("train", (1, 2), "feed", (9,), 7),
        Pair("train", (2,), "train", (1,), 2),
    )


def thread(tid: int, creator: int, *, exited: bool = True, number: int = 1) -> ThreadTimes:
    return ThreadTimes(1, "a\udcff", tid, "w", 10, 2, 3, {}, exited=exited, creator=creator, count=number)


def test_threads_that_were_created() -> None:
    threads = thread(1, 0), thread(2, 1), thread(3, 1, exited=False), thread(0, -1, number=40)
    (made,) = host_of(profile(threads=threads), None).made
    assert (made.began, made.ended, made.on_cpu, made.runnable) == (42, 41, 6, 9)


def test_a_new_process_creates_no_thread_by_having_one() -> None:
    assert host_of(profile(threads=(thread(1, -1),)), None).made == ()


def test_json_of_hostile_names() -> None:
    parts = (
        Pressure("io", 9, 0, TEN, "/a\x1b[2J\udcff"),
        Interrupts(HARD, "", 5, 6, 10),
        Interrupts(HARD, "24 \x1b[2J\udcff", 0, 3, 10),
        Interrupts(STOLEN, "", 5, 0, 10),
    )
    data = host_of(profile(*parts, threads=(thread(2, 1),)), None).to_json()
    assert json.loads(json.dumps(data, ensure_ascii=False).encode()) == data
    assert data["pressure"][0]["cgroup"] == "/a\x1b[2J\\xff"
    assert data["interrupts"][2]["source"] == "24 \x1b[2J\\xff"
    assert [each["time_ns"] for each in data["interrupts"]] == [5, 5, None]
    assert [each["share"] for each in data["interrupts"]] == [pytest.approx(0.5), pytest.approx(0.5), None]
    assert data["threads_made"][0]["began_per_second"] == pytest.approx(0.1)


def test_json_of_a_capture_without() -> None:
    data = host_of(profile(), None).to_json()
    assert data == {"pressure": None, "interrupts": None, "waits_for": [], "threads_made": [], **EMPTY}
