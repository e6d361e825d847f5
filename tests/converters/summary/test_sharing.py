"""Sentences on calls that serialise."""

from __future__ import annotations

import json

from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.calls import CallTimes
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.model.sharing import SharedCall
from stallscope.converters.summary.sharing import serialised, shared_calls
from stallscope.converters.summary.summarize import summarize

SLOW = {(1, 3): 70, (2, 3): 70, (3, 1): 5, (3, 2): 5}


def shared(**fields: object) -> SharedCall:
    call = SharedCall("A", "/dev/x", 100, 90, 250, 100, 3400, 20, 200, {1: 10, 2: 10, 3: 80}, dict(SLOW))
    for name, value in fields.items():
        setattr(call, name, value)
    return call


def profile(*calls: SharedCall, process: str = "train", blocked: int = 0) -> Profile:
    timed = [CallTimes("A", "/dev/x", pid, process, 3, 100, 1, 50, blocked) for pid in (1, 2, 3)]
    values = [ValueType("ioctl", "nanoseconds"), ValueType("calls", "count")]
    return Profile(values, calls=timed, shared=list(calls))


def test_the_holder_is_named() -> None:
    assert serialised(shared_calls(profile(shared()))) == (
        "3 processes serialise in A on /dev/x: for 90.0 % of its time two or more were inside, 2.5 on average; "
        "a call takes 4.0 times as long as alone.",
        "While train (3) was inside and the next to return, 2 other processes waited: 93.3 % of all waiting in this "
        "call. Its turns take 8.0 times as long as theirs on average.",
    )
    assert "serialise" in " ".join(summarize(profile(shared())).answer)


def test_a_holder_that_is_a_rank_is_named_by_it() -> None:
    made = profile(shared(), process="\x1b[2J")
    made.processes = [ProcessTimes(pid, "train", ranks={"rank": str(pid + 10)}) for pid in (1, 2, 3)]
    assert serialised(shared_calls(made))[1].startswith("While rank 13 (pid 3) was inside and the next to return, ")


def test_a_call_with_little_time_is_not_what_processes_wait_for() -> None:
    long = shared(name="B", alone_time=800)  # it does not get longer
    assert serialised(shared_calls(profile(long, shared()))) != ()
    assert serialised(shared_calls(profile(long, shared(inside=24, busy=20, shared=18)))) == ()


def test_the_driver_works_or_waits_itself() -> None:
    """The driver is on a core for 60 or 6 of 300 ns inside; the turns are 100 ns."""
    works = serialised(shared_calls(profile(shared(), blocked=80)))[-1]
    assert works.startswith("The process that returns next is mostly on a core meanwhile")
    waits = serialised(shared_calls(profile(shared(), blocked=98)))[-1]
    assert waits.startswith("The process that returns next is mostly blocked meanwhile, too")


def test_no_one_is_named_if_turns_are_equal() -> None:
    (told,) = serialised(shared_calls(profile(shared(turns={1: 10, 2: 10, 3: 11}))))
    assert "serialise" in told


def test_a_call_that_was_never_alone_is_compared_with_its_turn() -> None:
    told = serialised(shared_calls(profile(shared(alone=9, alone_time=9, time=400))))[0]
    assert told.endswith("a call takes 4.0 times as long as its turn, from the return before it to its own.")


def test_nothing_is_said_of_calls_that_do_not_get_longer() -> None:
    assert serialised(shared_calls(profile(shared(alone_time=800)))) == ()
    assert serialised(shared_calls(profile(shared(shared=5)))) == ()
    assert shared_calls(profile(shared(shared=0))) == ()


def test_json() -> None:
    data = json.loads(json.dumps(summarize(profile(shared(), process="a\udcff")).to_json()["shared_calls"]))
    (entry,) = data
    assert entry["factor"] == 4
    assert (entry["alone_mean_ns"], entry["alone_count"]) == (10, 20)
    assert (entry["with_others_mean_ns"], entry["with_others_count"]) == (40, 80)
    assert entry["turns"][2] == {"pid": 3, "process": "a\\xff", "ns": 80}
    assert entry["waits"][0] == {"waiter": 1, "inside": 3, "ns": 70}
