from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.base.text import printable
from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ValueType
from stallscope.converters.model.timeline import Span, Timeline, Track, add_up
from stallscope.converters.readers import detect
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.writers import speedscope
from stallscope.converters.writers.base.options import WriteOptions

OFF_CPU = ValueType("off-cpu", "nanoseconds")
COUNT = ValueType("count", "count")
LIBC = Module("/usr/lib/libc.so.6")
HOSTILE = "<script>alert(1)</script>;x\"\\\u2028\x1b[2J\udcff\n'&"


def labels(pid: int, process: str, tid: int, thread: str) -> Labels:
    return (("pid", pid), ("process", process), ("thread", thread), ("tid", tid))


A = labels(1, "python", 1, "main")
A2 = labels(1, "python", 2, "worker")
B = labels(3, HOSTILE, 3, "main")


def profile() -> Profile:
    ioctl = (Frame("topk", "native", LIBC, 0x10), Frame("schedule", "kernel"))
    same_elsewhere = (Frame("topk", "native", LIBC, 0x20), Frame("schedule", "kernel"))
    return Profile(
        [OFF_CPU, COUNT],
        [
            Sample(ioctl, (1000, 1), A),
            Sample(same_elsewhere, (200, 2), A2),
            Sample((Frame(HOSTILE, "python", None, 0, "train.py", 7),), (30, 3), B),
            Sample((Frame("nothing"),), (0, 4), B),
        ],
        title="off-CPU time of 2 processes",
        lost={"lost events": 0, "stacks cut short": 3},
    )


def text(content: Profile, **options: object) -> str:
    file = io.BytesIO()
    speedscope.write(content, file, WriteOptions(**options))  # type: ignore[arg-type]
    return file.getvalue().decode("ascii")


def document(content: Profile, **options: object) -> Any:
    return json.loads(text(content, **options))


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft7Validator:
    default = Path("build/npm/node_modules/speedscope/dist/release/file-format-schema.json")
    path = Path(os.environ.get("SPEEDSCOPE_SCHEMA") or Path(__file__).parents[3] / default)
    if not path.exists():
        why = f"no speedscope schema at {path} (npm install --prefix build/npm speedscope)"
        if os.environ.get("REQUIRE_LIVE") == "1":
            pytest.fail(why)
        pytest.skip(why)
    return jsonschema.Draft7Validator(json.loads(path.read_text()))


def test_valid_by_the_published_schema(validator: jsonschema.Draft7Validator) -> None:
    for content in (document(profile()), document(profile(), per_thread=True), document(Profile([OFF_CPU]))):
        validator.validate(content)
    broken = document(profile())
    del broken["profiles"][1]["weights"]
    assert not validator.is_valid(broken)


def test_all_first_then_one_per_process() -> None:
    content = document(profile())
    assert [(p["name"], p["endValue"]) for p in content["profiles"]] == [
        ("all", 1230),
        (printable(HOSTILE) + "-3", 30),
        ("python-1", 1200),
    ]
    assert {(p["type"], p["unit"], p["startValue"]) for p in content["profiles"]} == {("sampled", "nanoseconds", 0)}
    assert all(weight for p in content["profiles"] for weight in p["weights"])
    assert "nothing" not in {frame["name"] for frame in content["shared"]["frames"]}
    assert content["activeProfileIndex"] == 0


def test_one_per_thread() -> None:
    names = [p["name"] for p in document(profile(), per_thread=True)["profiles"]]
    assert names == ["all", printable(HOSTILE) + "-3 main/3", "python-1 main/1", "python-1 worker/2"]


def test_other_roots() -> None:
    content = profile()
    content.samples = [s._replace(labels=tuple(sorted((*s.labels, ("state", "D"))))) for s in content.samples[:2]]
    content.samples.append(Sample((Frame("x"),), (5, 1), A))
    for roots, expected in (
        (("process", "state"), {"all": 1205, "python-1 D": 1200, "python-1 [unknown]": 5}),
        (("state",), {"all": 1205, "D": 1200, "[unknown]": 5}),
        (("process", "thread"), {"all": 1205, "python-1 main/1": 1005, "python-1 worker/2": 200}),
        ((), {"all": 1205}),
    ):
        profiles = document(content, roots=roots)["profiles"]
        assert {each["name"]: sum(each["weights"]) for each in profiles} == expected


def test_a_function_is_one_frame_and_its_stacks_are_merged() -> None:
    content = document(profile())
    assert content["shared"]["frames"][:2] == [
        {"name": "topk", "file": "/usr/lib/libc.so.6"},
        {"name": "schedule", "file": "[kernel]"},
    ]
    python = content["profiles"][2]
    assert python["samples"] == [[0, 1]]  # outermost first
    assert python["weights"] == [1200]


def test_frames_of_the_same_name_in_different_files_stay_apart() -> None:
    stack = (Frame("init", "native", LIBC), Frame("init", "native", Module("/opt/a.so")), Frame("init"))
    frames = document(Profile([OFF_CPU], [Sample(stack, (1,))]))["shared"]["frames"]
    assert frames == [
        {"name": "init", "file": "/usr/lib/libc.so.6"},
        {"name": "init", "file": "/opt/a.so"},
        {"name": "init"},
    ]


def test_another_value() -> None:
    content = document(profile(), value="count")
    assert [(p["unit"], p["endValue"]) for p in content["profiles"]] == [("none", 10), ("none", 7), ("none", 3)]


def test_the_name_says_what_was_lost_and_nothing_if_nothing_was() -> None:
    content = document(profile())
    assert content["name"] == "off-CPU time of 2 processes (lost: 3 stacks cut short)"
    assert content["lost"] == {"lost events": 0, "stacks cut short": 3}
    complete = profile()
    complete.lost = {"lost events": 0}
    assert document(complete, title="mine")["name"] == "mine"


def test_hostile_names_are_text() -> None:
    raw = text(profile(), title=HOSTILE)
    assert raw.replace("\n", "").isprintable()
    assert json.loads(raw)["name"].startswith(printable(HOSTILE))
    assert {"name": printable(HOSTILE), "file": "train.py"} in json.loads(raw)["shared"]["frames"]


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2000, 2500])
def test_pieces_join_to_one_document(count: int) -> None:
    content = Profile([OFF_CPU], [Sample((Frame(f"f{i}"),), (i + 1,), A) for i in range(count)])
    result = document(content)
    assert [frame["name"] for frame in result["shared"]["frames"]] == [f"f{i}" for i in range(count)]
    assert result["profiles"][0]["samples"] == [[i] for i in range(count)]
    assert result["profiles"][0]["weights"] == [i + 1 for i in range(count)]


# A timeline


def timed(*tracks: Track, unit: str = "nanoseconds") -> Profile:
    timeline = Timeline(list(tracks), unit)
    return Profile([ValueType("wall", unit), COUNT], add_up(timeline), timeline=timeline)


MAIN, CALL = Frame("main"), Frame(HOSTILE)
NESTED = [Span(5, 100, MAIN), Span(10, 40, CALL), Span(20, 20, MAIN), Span(40, 50, CALL), Span(100, 105, CALL)]


def test_a_track_is_an_evented_profile_in_the_unit_of_its_timeline(validator: jsonschema.Draft7Validator) -> None:
    content = document(timed(Track(A, spans=NESTED), Track(B, spans=[Span(0, 7, CALL)]), unit="milliseconds"))
    validator.validate(content)
    first, second = content["profiles"]
    assert {(p["type"], p["unit"], p["startValue"]) for p in content["profiles"]} == {("evented", "milliseconds", 0)}
    names = [frame["name"] for frame in content["shared"]["frames"]]
    assert [(e["type"], e["at"], names[e["frame"]]) for e in first["events"]] == [
        ("O", 5, "main"),
        ("O", 10, printable(HOSTILE)),
        ("O", 20, "main"),
        ("C", 20, "main"),
        ("C", 40, printable(HOSTILE)),
        ("O", 40, printable(HOSTILE)),
        ("C", 50, printable(HOSTILE)),
        ("C", 100, "main"),
        ("O", 100, printable(HOSTILE)),
        ("C", 105, printable(HOSTILE)),
    ]
    assert (first["endValue"], second["endValue"]) == (105, 7)


def test_tracks_are_named_by_what_is_known() -> None:
    span = [Span(0, 1, MAIN)]
    tracks = [
        Track(A, spans=span),
        Track((("pid", 3), ("process", HOSTILE)), spans=span),
        Track((("thread", "loader"),), spans=span),
        Track((("pid", 3), ("tid", 4)), spans=span),
        Track(A, HOSTILE, span),
        Track(spans=span),
        Track(A, "without spans"),
    ]
    assert [each["name"] for each in document(timed(*tracks))["profiles"]] == [
        "python-1 main/1",
        printable(HOSTILE) + "-3",
        "loader",
        "[unknown]-3 [unknown]/4",
        printable(HOSTILE),
        "[unknown]",
    ]


def test_another_value_than_the_time_is_sampled() -> None:
    content = document(timed(Track(A, spans=NESTED)), value="count")
    assert [(p["type"], p["endValue"]) for p in content["profiles"]] == [("sampled", 5), ("sampled", 5)]


def test_what_is_written_of_a_timeline_is_read_with_its_self_times(tmp_path: Path) -> None:
    content = timed(Track(A, spans=NESTED), Track(A2, spans=[Span(3, 50, CALL), Span(3, 10, MAIN)]))
    path = tmp_path / "x.speedscope.json"
    with path.open("wb") as file:
        speedscope.write(content, file, WriteOptions())
    name, again = detect.read(str(path), ReadOptions())
    assert name == "speedscope"
    assert weights(again) == weights(content)


def weights(content: Profile) -> dict[tuple[object, ...], int]:
    """(labels, names) → time, of what took some."""
    found: dict[tuple[object, ...], int] = {}
    for sample in content.samples:
        key = (sample.labels, *(printable(frame.name) for frame in sample.stack))
        found[key] = found.get(key, 0) + sample.values[0]
    return {key: value for key, value in found.items() if value}


NAMES = st.text(st.characters(), max_size=8)
FRAMES = st.builds(Frame, NAMES, st.just("native"), st.none() | st.builds(Module, NAMES))
SAMPLES = st.builds(
    Sample,
    st.lists(FRAMES, max_size=4).map(tuple),
    st.tuples(st.integers(-1, 2**63 - 1)),
    st.one_of(st.just(()), st.builds(lambda name: (("pid", 1), ("process", name)), NAMES)),
)


@settings(deadline=None)
@given(st.lists(SAMPLES, max_size=6), NAMES)
def test_any_profile_is_json_that_adds_up(samples: list[Sample], title: str) -> None:
    content = document(Profile([OFF_CPU], samples, title=title, lost={title: 1}))
    everything, *groups = content["profiles"]
    assert everything["endValue"] == sum(max(sample.values[0], 0) for sample in samples)
    assert sum(group["endValue"] for group in groups) == everything["endValue"]
    frames = content["shared"]["frames"]
    for part in content["profiles"]:
        assert sum(part["weights"]) == part["endValue"]
        assert len(part["samples"]) == len(part["weights"])
        assert all(0 <= i < len(frames) for stack in part["samples"] for i in stack)


def wall_profile() -> Profile:
    """Two processes; the second thread of the first has the most time."""
    spin, wait = (Frame("spin"),), (Frame("wait"), Frame("schedule", "kernel"))
    rows = [
        (spin, 10, A, "running"),
        (wait, 20, A, "interruptible"),
        (spin, 500, A2, "running"),
        (wait, 40, B, "uninterruptible"),
    ]
    samples = [Sample(stack, (ns, 1), tuple(sorted((*who, ("state", state))))) for stack, ns, who, state in rows]
    return Profile([ValueType("wall", "nanoseconds"), COUNT], samples)


def test_all_of_the_time_has_a_profile_for_all_and_each_process_and_each_thread(
    validator: jsonschema.Draft7Validator,
) -> None:
    content = document(wall_profile())
    validator.validate(content)
    other = printable(HOSTILE)
    assert [(part["name"], part["endValue"]) for part in content["profiles"]] == [
        ("all", 570),
        ("python-1", 530),
        (f"{other}-3", 40),
        ("python-1 worker/2", 500),
        (f"{other}-3 main/3", 40),
        ("python-1 main/1", 30),
    ]
    assert content["repeated"] == 3


@pytest.mark.parametrize("options", [{}, {"per_thread": True}, {"roots": ("state",)}, {"roots": ()}])
def test_what_profiles_repeat_is_read_once(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "wall.speedscope.json"
    path.write_text(text(wall_profile(), **options))
    _, again = detect.read(str(path), ReadOptions())
    assert again.total(again.value_types[0].name) == 570
