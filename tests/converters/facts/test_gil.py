from __future__ import annotations

import json

from gil_profiles import HOG, gil, threads
from stallscope.converters.facts.gil import gil_shares
from stallscope.converters.model.gil import GilThread

HOSTILE = 'x"\x1b[2J\udcff'


def test_json() -> None:
    having = [GilThread(HOSTILE, 9, 180, 4, (HOSTILE,))]
    (made,) = (each.to_json() for each in gil_shares([gil(holders=having)], threads()))
    json.dumps(made).encode()
    assert made["holders"] == [
        {"thread": 'x"\x1b[2J\\xff', "tid": 9, "time_ns": 180, "waits": 4, "frames": ['x"\x1b[2J\\xff']}
    ]
    assert (made["threads"], made["threads_ns"], made["share"]) == (2, 1000, 0.3)
    (unknown,) = (each.to_json() for each in gil_shares([gil()], ()))
    assert (unknown["process"], unknown["threads"], unknown["share"]) == ("python3", 0, None)


def test_waits_beside_the_time_of_the_threads() -> None:
    most, least = gil_shares([gil(200), gil(300, pid=20)], [*threads(wall=400), *threads(20, number=3)])
    assert (most.gil.pid, most.process, most.threads, most.wall, most.main) == (20, "train.py", 3, 1500, 500)
    assert (least.gil.pid, least.threads, least.wall, least.main) == (7, 2, 800, 400)


def test_of_as_much_the_process_with_the_lower_pid_comes_first() -> None:
    assert [each.gil.pid for each in gil_shares([gil(pid=9), gil(pid=7)], ())] == [7, 9]


def test_a_main_thread_that_was_not_traced_has_no_time() -> None:
    (share,) = gil_shares([gil()], threads()[1:])
    assert (share.wall, share.main) == (500, 0)


def test_functions_of_holders_are_those_of_their_stacks() -> None:
    (share,) = gil_shares([gil()], ())
    assert share.to_json()["holders"][0]["frames"] == list(HOG)
