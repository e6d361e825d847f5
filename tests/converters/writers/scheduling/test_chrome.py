from __future__ import annotations

import io
import json
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from scheduling_traces import HOSTILE, rows, run
from stallscope.converters.base.text import printable
from stallscope.converters.model import Frame, Profile, ValueType
from stallscope.converters.model.cores import tenants
from stallscope.converters.model.phases import STATES, phases
from stallscope.converters.model.scheduling import (
    BLOCKED,
    CALL,
    CREATION,
    EXIT,
    LOSS,
    OPEN,
    SWITCH,
    THREAD,
    WAKE_UP,
    CallName,
    Scheduling,
)
from stallscope.converters.model.states import BLOCKED as BLOCKED_STATES
from stallscope.converters.readers import detect
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.writers import chrome
from stallscope.converters.writers.base.options import WriteOptions

CORES = 1 << 22


def document(scheduling: Scheduling, unit: str = "nanoseconds", **about: Any) -> Any:
    """Numbers with a fraction stay exact."""
    file = io.BytesIO()
    chrome.write(Profile([ValueType("off-cpu", unit)], scheduling=scheduling, **about), file, WriteOptions())
    text = file.getvalue().decode("ascii")
    assert text.replace("\n", "").isprintable()
    return json.loads(text, parse_float=Decimal)


def slices(content: Any) -> list[dict[str, Any]]:
    return [event for event in content["traceEvents"] if event["ph"] == "X"]


def test_threads_and_cores_show_what_happened() -> None:
    scheduling = run(2_000, seed=3).scheduling()
    content = document(scheduling)
    found = slices(content)
    expected = Counter((STATES[p["state"]], Decimal(int(p["begin"])) / 1000) for p in phases(scheduling))
    assert Counter((each["cat"], each["ts"]) for each in found if each["pid"] != CORES) == expected
    cores = [each for each in found if each["pid"] == CORES]
    chains = tenants(scheduling)
    assert len(cores) == (chains["next_tid"] != 0).sum()
    busy = sum(int(p["end"] - p["begin"]) for p in phases(scheduling) if STATES[p["state"]] == "running")
    assert sum(each["dur"] for each in cores) * 1000 == busy
    assert {each["args"]["core"] for each in found if each["cat"] == "running"} == {0, 1, 2, 3}


def test_no_two_threads_share_a_track() -> None:
    """Threads that have had the same id have tracks of their own, too."""
    scheduling = run(2_000, seed=3).scheduling()
    content = document(scheduling)
    named = [event for event in content["traceEvents"] if event["name"] == "thread_name" and event["pid"] != CORES]
    places = {(event["pid"], event["tid"]) for event in named}
    assert len(named) == len(places) == len(scheduling.threads) > len(set(scheduling.threads["tid"].tolist()))
    for place in places:
        mine = sorted(
            (each["ts"], each["ts"] + each["dur"]) for each in slices(content) if (each["pid"], each["tid"]) == place
        )
        assert all(end <= begin for (_, end), (begin, _) in zip(mine, mine[1:], strict=False))


def test_arrows_begin_where_the_waker_runs_and_end_where_the_other_waits() -> None:
    content = document(run(2_000, seed=3).scheduling())
    by_place: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for each in slices(content):
        by_place.setdefault((each["pid"], each["tid"]), []).append(each)
    flows = [event for event in content["traceEvents"] if event["ph"] in "sf"]
    starts = {event["id"]: event for event in flows if event["ph"] == "s"}
    ends = {event["id"]: event for event in flows if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert len(starts) > 100
    for number, start in starts.items():
        end = ends[number]
        assert start["ts"] == end["ts"]
        around = [e for e in by_place[start["pid"], start["tid"]] if e["ts"] <= start["ts"] <= e["ts"] + e["dur"]]
        assert any(each["cat"] == "running" for each in around)
        assert any(e["cat"] == "runnable-woken" and e["ts"] == end["ts"] for e in by_place[end["pid"], end["tid"]])


def test_waits_have_their_stack_in_the_tree_of_frames() -> None:
    scheduling = run(2_000, seed=3).scheduling()
    content = document(scheduling)
    frames = content["stackFrames"]
    waits = [each for each in slices(content) if each["cat"] in BLOCKED_STATES and "sf" in each]
    assert len(waits) > 300
    stacks = {tuple(frame.name for frame in stack) for stack in scheduling.stacks}
    for wait in waits:
        names, number = [], str(wait["sf"])
        while number:
            names.append(frames[number]["name"])
            number = frames[number].get("parent", "")
        assert tuple(reversed(names)) in stacks
        assert wait["name"] in ("ioctl: __mutex_lock", "read: pipe_read")


def test_hostile_names() -> None:
    switches = rows(SWITCH, time=[40, 50], prev_tid=[7, 98], next_tid=[98, 7], prev_state=[1, 0])
    blocked = rows(BLOCKED, begin=[40], end=[50], tid=[7], state=[1])
    threads = rows(THREAD, tid=[7], tgid=[7])
    made = Scheduling(90, switches=switches, blocked=blocked, threads=threads, names=[HOSTILE])
    made.stacks = [(Frame(HOSTILE, "python"),)]
    content = document(made)
    name = printable(HOSTILE)
    assert {e["args"]["name"] for e in content["traceEvents"] if e["ph"] == "M" and e["pid"] == 7} == {name}
    assert content["stackFrames"] == {"1": {"category": "python", "name": name}}
    assert {each["name"] for each in slices(content)} == {"running", name, f"{name} 7", "thread 98"}


def test_losses_and_strangers_are_told() -> None:
    switches = rows(SWITCH, time=[40, 60], prev_tid=[7, 99], next_tid=[98, 7], prev_state=[1, 0])
    made = Scheduling(90, switches=switches, threads=rows(THREAD, tid=[7], tgid=[7]), names=["one"], every_switch=False)
    assert [each["name"] for each in slices(document(made)) if each["pid"] == CORES] == [
        "one 7",
        "[not traced]",
        "one 7",
    ]
    made.losses = rows(LOSS, time=[60], count=[5])
    content = document(made, lost={"other": 1})
    assert [each["name"] for each in slices(content) if each["pid"] == CORES] == ["one 7", "[events lost]", "one 7"]
    assert content["otherData"]["lost"] == {"other": 1, "scheduler events": 5}


def test_who_has_a_core_for_no_time_is_not_drawn_on_it() -> None:
    switches = rows(SWITCH, time=[40, 60], prev_tid=[7, 8], next_tid=[8, 7], prev_state=[1, 2])
    made = Scheduling(90, switches=switches, threads=rows(THREAD, tid=[7, 8], tgid=[7, 7]), names=["one"])
    made.losses = rows(LOSS, time=[60], count=[5])
    cores = [each for each in slices(document(made)) if each["pid"] == CORES]
    assert [(each["name"], each["dur"]) for each in cores] == [
        ("one 7", Decimal("0.04")),
        ("[events lost]", Decimal("0.02")),
        ("one 7", Decimal("0.03")),
    ]


def test_a_thread_made_by_nobody_known_has_no_arrow() -> None:
    threads = rows(THREAD, tid=[7], tgid=[7], begin=[10])
    created = rows(CREATION, time=[10], tid=[7], tgid=[7])
    wakeups = rows(WAKE_UP, time=[30], tid=[7], waker=[55])
    made = Scheduling(90, threads=threads, created=created, wakeups=wakeups, names=["one"])
    made.exited = rows(EXIT, time=[80], tid=[7], tgid=[7])
    assert [event["ph"] for event in document(made)["traceEvents"] if event["ph"] in "sf"] == []


def test_nothing_at_all() -> None:
    assert slices(document(Scheduling(10))) == []


def test_another_value_than_time_shows_its_stacks() -> None:
    assert "positions" in document(Scheduling(10), unit="count")["otherData"]


@pytest.mark.parametrize("seed", [1, 2])
def test_it_is_read_again(seed: int, tmp_path: Any) -> None:
    path = tmp_path / "x.trace.json"
    scheduling = run(500, seed=seed).scheduling()
    with path.open("wb") as file:
        chrome.write(Profile([ValueType("off-cpu", "nanoseconds")], scheduling=scheduling), file, WriteOptions())
    name, profile = detect.read(str(path), ReadOptions())
    assert name == "chrome"
    running = sum(sample.values[0] for sample in profile.samples if sample.stack[-1].name == "running")
    assert running == sum(int(p["end"] - p["begin"]) for p in phases(scheduling) if p["state"] == 0)


def test_calls_have_tracks_of_their_own() -> None:
    calls = rows(CALL, begin=[10, 15, 70, 10], end=[50, 55, OPEN, 20], tid=[7, 7, 7, 99], name=[0, 1, 0, 0],
                 level=[0, 8, 0, 0])  # fmt: skip
    names = [CallName("cudaMalloc"), CallName(HOSTILE, "ioctl")]
    made = Scheduling(1_000, threads=rows(THREAD, tid=[7], tgid=[5]), names=["one"], calls=calls, call_names=names)
    content = document(made)
    found = [each for each in slices(content) if each["cat"] in ("call", "ioctl")]
    micros = [(each["name"], each["cat"], int(each["ts"] * 1000), int(each["dur"] * 1000)) for each in found]
    assert micros == [
        ("cudaMalloc", "call", 10, 40),
        (printable(HOSTILE), "ioctl", 15, 35),
        ("cudaMalloc", "call", 70, 930),
    ]
    (track,) = {(each["pid"], each["tid"]) for each in found}
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in content["traceEvents"] if e["name"] == "thread_name"}
    assert named[track] == "one: calls"
    assert track[0] == 5
    assert track[1] > CORES
