from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from scheduling_traces import HOSTILE, rows, run
from stallscope.converters.base.text import printable
from stallscope.converters.model import Frame, Profile, ValueType
from stallscope.converters.model.phases import STATES, phases
from stallscope.converters.model.scheduling import (
    BLOCKED,
    CALL,
    LOSS,
    OPEN,
    SWITCH,
    THREAD,
    CallName,
    Scheduling,
)
from stallscope.converters.model.states import BLOCKED as BLOCKED_STATES
from stallscope.converters.writers import speedscope
from stallscope.converters.writers.base.options import WriteOptions

SCHEMA = Path(__file__).parents[4] / "build/npm/node_modules/speedscope/dist/release/file-format-schema.json"


def document(scheduling: Scheduling, unit: str = "nanoseconds", **about: Any) -> Any:
    file = io.BytesIO()
    speedscope.write(Profile([ValueType("off-cpu", unit)], scheduling=scheduling, **about), file, WriteOptions())
    return json.loads(file.getvalue())


def replayed(content: Any, profile: Any) -> list[tuple[tuple[str, ...], int, int]]:
    """(frames, begin, end) of all that the profile shows; AssertionError where calls do not nest."""
    frames = [frame["name"] for frame in content["shared"]["frames"]]
    stack: list[int] = []
    found = []
    last, begin = profile["startValue"], 0
    for event in profile["events"]:
        assert event["at"] >= last
        last = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
            begin = event["at"]
        else:
            if found == [] or found[-1][2] != event["at"] or len(found[-1][0]) <= len(stack):
                found.append((tuple(frames[i] for i in stack), begin, event["at"]))
            assert stack.pop() == event["frame"]
    assert not stack
    assert last <= profile["endValue"]
    return found


def test_each_thread_has_its_states_and_waits() -> None:
    scheduling = run(2_000, seed=3).scheduling()
    content = document(scheduling)
    found = phases(scheduling)
    rows_ = sorted(set(found["thread"].tolist()), key=lambda i: scheduling.threads[["tgid", "tid", "begin"]][i].item())
    assert len(content["profiles"]) == len(rows_)
    for row, profile in zip(rows_, content["profiles"], strict=True):
        thread = scheduling.threads[row]
        process, name = scheduling.names[thread["process"]], scheduling.names[thread["name"]]
        assert profile["name"] == f"{process}-{thread['tgid']} {name}/{thread['tid']}"
        expected = []
        for phase in found[found["thread"] == row]:
            state = STATES[phase["state"]]
            stack = scheduling.stacks[phase["stack"]] if state in BLOCKED_STATES and phase["stack"] >= 0 else ()
            names = (state, *(frame.name for frame in stack))
            expected.append((names, int(phase["begin"]), int(phase["end"])))
        assert replayed(content, profile) == expected


def test_it_is_what_the_schema_says(require: Any) -> None:
    require(SCHEMA.exists(), "speedscope is not there: make speedscope-schema")
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(document(run(300).scheduling()), json.loads(SCHEMA.read_text()))


def test_hostile_names_and_losses() -> None:
    switches = rows(SWITCH, time=[40, 50], prev_tid=[7, 0], next_tid=[0, 7], prev_state=[1, 0])
    blocked = rows(BLOCKED, begin=[40], end=[50], tid=[7], state=[1])
    made = Scheduling(90, switches=switches, blocked=blocked, threads=rows(THREAD, tid=[7], tgid=[7]), names=[HOSTILE])
    made.stacks, made.losses = [(Frame(HOSTILE, "python"),)], rows(LOSS, time=[5], count=[2], cpu=[9])
    content = document(made)
    name = printable(HOSTILE)
    assert [profile["name"] for profile in content["profiles"]] == [f"{name}-7 {name}/7"]
    assert replayed(content, content["profiles"][0]) == [
        (("running",), 0, 40),
        (("interruptible", name), 40, 50),
        (("running",), 50, 90),
    ]
    assert content["lost"] == {"scheduler events": 2}
    assert "lost: 2 scheduler events" in content["name"]


def test_nothing_at_all() -> None:
    assert document(Scheduling(10))["profiles"] == []


def test_another_value_than_time_shows_its_stacks() -> None:
    assert [profile["name"] for profile in document(Scheduling(10), unit="count")["profiles"]] == ["all"]


def test_calls_have_profiles_of_their_own() -> None:
    calls = rows(CALL, begin=[10, 15, 20, 70, 100], end=[50, 40, 20, OPEN, OPEN], tid=[7] * 5, name=[0, 1, 1, 0, 1],
                 level=[0, 8, 9, 0, 8])  # fmt: skip
    switches = rows(SWITCH, time=[5], next_tid=[7])
    names = [CallName("cudaMalloc"), CallName(HOSTILE, "ioctl")]
    made = Scheduling(
        100, switches=switches, threads=rows(THREAD, tid=[7], tgid=[7]), names=["one"], calls=calls, call_names=names
    )
    content = document(made)
    states, of_calls = content["profiles"]
    assert of_calls["name"] == f"{states['name']}: calls"
    hostile = printable(HOSTILE)
    assert replayed(content, of_calls) == [
        (("cudaMalloc", hostile), 15, 40),
        (("cudaMalloc",), 15, 50),
        (("cudaMalloc",), 70, 100),
    ]
