"""Calls and ioctls on the timeline, against the accounts of the same calls and the programs' own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import perfetto_rules
import pytest
from commands import run
from runner import FOLDER
from stallscope.converters.model.call_spans import of_threads
from stallscope.converters.model.scheduling import OPEN, Scheduling, Threads
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.writers import output as writers
from stallscope.tracers.engines.ebpf.measures.calls import CallsCollector
from stallscope.tracers.engines.ebpf.measures.ioctl import IoctlCollector
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.measures.span_options import SpanOptions
from stallscope.tracers.measures.timeline import Timeline
from test_ioctl import TRACE_IOCTL
from tracing import Trace, Traced

pytestmark = pytest.mark.usefixtures("live")

MANY = SpanOptions(1 << 20)


def events(traced: Traced) -> Scheduling:
    found = traced.profile.scheduling
    assert found is not None
    return found


def spans(scheduling: Scheduling) -> tuple[Counter[tuple[str, int]], Counter[tuple[str, int]]]:
    """Number and ns of the spans that have ended, by name and process."""
    number: Counter[tuple[str, int]] = Counter()
    length: Counter[tuple[str, int]] = Counter()
    pids = dict(zip(scheduling.threads["tid"].tolist(), scheduling.threads["tgid"].tolist(), strict=True))
    for begin, end, tid, name, *_ in scheduling.calls.tolist():
        if end != OPEN:
            number[scheduling.call_names[name].name, pids[tid]] += 1
            length[scheduling.call_names[name].name, pids[tid]] += end - begin
    return number, length


def test_functions_are_spans_as_long_as_in_the_accounts(trace: Trace, tmp_path: Path) -> None:
    traced = trace("cuda_calls", "plain", 2, 20, 500, measures=(Calls(spans=MANY), Timeline()))
    scheduling = events(traced)
    number, length = spans(scheduling)
    assert number == {(call.name, call.pid): call.count for call in traced.profile.calls}
    assert length == {(call.name, call.pid): call.total for call in traced.profile.calls}
    for wait in traced.truth["waits"]:
        if wait["calls"]:
            assert number[wait["function"], wait["pid"]] == wait["calls"], wait
    assert (scheduling.calls_lost, scheduling.calls_dropped) == (0, 0)
    # The runtime's function is outside, the driver's inside of it: the writer has nothing to cut.
    calls, rows = of_threads(scheduling, Threads(scheduling.threads))
    assert (calls["end"] == scheduling.calls["end"]).all()
    names = [scheduling.call_names[i].name for i in calls["name"]]
    outer = {
        (int(row), int(call["begin"]), int(call["end"]))
        for row, call, name in zip(rows, calls, names, strict=True)
        if name.startswith("cuda")
    }
    for row, call, name in zip(rows, calls, names, strict=True):
        if name == "cuMemFree_v2":
            assert call["level"] == 1
            assert any(of == row and begin <= call["begin"] and call["end"] <= end for of, begin, end in outer)
    check_slices(traced, tmp_path, "cuDeviceGetAttribute", "ioctl: ")


def test_ioctls_are_spans_as_long_as_in_the_accounts(trace: Trace, tmp_path: Path) -> None:
    traced = trace("ioctls", "held", 3, 10, 500, measures=(Ioctl(spans=MANY), Timeline()))
    scheduling = events(traced)
    number, length = spans(scheduling)
    # The process that serves the file makes calls, too, which have not this device.
    expected = {(f"{call.name} {call.device}", call.pid): call for call in traced.profile.calls if call.count}
    assert number == {key: call.count for key, call in expected.items()}
    assert length == {key: call.total for key, call in expected.items()}
    assert {each.kind for each in scheduling.call_names} == {"ioctl"}
    name = max(expected, key=lambda key: expected[key].total)[0]
    check_slices(traced, tmp_path, name, "request_wait_answer")


def test_ioctls_are_inside_the_functions_that_make_them(trace: Trace, tmp_path: Path) -> None:
    ioctls = IoctlCollector(Ioctl(alone=False, spans=MANY), nvidia_major=0)
    traced = trace("cuda_calls", "plain", 2, 10, 500, measures=(ioctls, Calls(spans=MANY), Timeline()))
    writers.write_all(traced.profile, [str(tmp_path / "x.pftrace")])
    slices = perfetto_rules.read((tmp_path / "x.pftrace").read_bytes()).slices
    names = {each.name for each in events(traced).call_names if each.kind == "ioctl"}
    functions = [each for each in slices if each.name == "cuMemFree_v2"]
    assert len(functions) == sum(call.count for call in traced.profile.calls if call.name == "cuMemFree_v2")
    waited = 0
    for outer in functions:
        assert outer.end
        inside = [
            each
            for each in slices
            if each.track == outer.track and each.end and outer.begin < each.begin and each.end <= outer.end
        ]
        (ioctl,) = [each for each in inside if each.name in names]
        assert ioctl.end
        waited += any(
            ioctl.begin <= each.begin and (each.end or 0) <= ioctl.end for each in inside if each is not ioctl
        )
    # Not each call sleeps: the answer is there when a hypervisor has taken the core until then.
    assert waited >= 0.9 * len(functions)


def check_slices(traced: Traced, folder: Path, call: str, wait: str) -> None:
    """Checks that calls of this name have waits in them in the file; the wait and the call are on the thread's
    track."""
    writers.write_all(traced.profile, [str(folder / "x.pftrace")])
    found = perfetto_rules.read((folder / "x.pftrace").read_bytes())
    slices = [each for each in found.slices if each.end is not None]
    calls = [each for each in slices if each.name == call]
    waits = [each for each in slices if wait in each.name]
    assert calls
    inside = [
        any(one.track == each.track and one.begin <= each.begin and each.end <= one.end for each in waits if each.end)
        for one in calls
        if one.end
    ]
    assert sum(inside) >= 0.9 * len(inside) - 1


def test_short_ones_are_left_out_and_told(trace: Trace) -> None:
    over = 300_000
    measures = Calls(spans=SpanOptions(1 << 20, over=over)), Timeline()
    traced = trace("cuda_calls", "plain", 1, 20, 500, measures=measures)
    scheduling = events(traced)
    shown = scheduling.calls[scheduling.calls["end"] != OPEN]
    assert (shown["end"] - shown["begin"] > over).all()
    short = sum(call.count for call in traced.profile.calls) - len(shown)
    assert short > 20
    told = f"the timeline has no span for {short} calls of at most 300 µs (--span-over)"
    assert told in worded(traced.profile.comments)


def test_what_is_not_read_in_time_is_counted(trace: Trace) -> None:
    calls = CallsCollector(Calls(spans=SpanOptions(1 << 20, buffer_bytes=1 << 12)))
    calls.period = None  # only at the end
    traced = trace("cuda_calls", "plain", 1, 60, 1, measures=(calls, Timeline()))
    scheduling = events(traced)
    made = sum(call.count for call in traced.profile.calls)
    assert 0 < len(scheduling.calls) < made
    assert len(scheduling.calls) + scheduling.calls_lost == made
    assert traced.profile.lost["spans of calls"] == scheduling.calls_lost


def test_the_newest_are_kept(trace: Trace) -> None:
    traced = trace("ioctls", "tty", 1, 500, measures=(Ioctl(spans=SpanOptions(50)), Timeline()))
    scheduling = events(traced)
    made = sum(call.count for call in traced.profile.calls)
    assert len(scheduling.calls) == 50
    assert scheduling.calls_dropped == made - 50
    assert traced.profile.lost["spans of calls beyond the limit"] == made - 50
    assert (np.diff(scheduling.calls["begin"]) >= 0).all()


def test_the_command_writes_them(tmp_path: Path) -> None:
    outputs = [part for name in ("x.pftrace", "x.trace.json", "x.speedscope.json") for part in ("-o", tmp_path / name)]
    done = run(*outputs, "--timeline", "--", FOLDER / "ioctls", "tty", 1, 50, command=TRACE_IOCTL)
    done.check_succeeded()
    names = Counter(each.name for each in perfetto_rules.read((tmp_path / "x.pftrace").read_bytes()).slices)
    assert names["TCGETS /dev/null"] == 50, names
    content = json.loads((tmp_path / "x.trace.json").read_text())
    assert sum(event["name"] == "TCGETS /dev/null" for event in content["traceEvents"]) == 50
    content = json.loads((tmp_path / "x.speedscope.json").read_text())
    assert sum(profile["name"].endswith(": calls") for profile in content["profiles"]) >= 1
