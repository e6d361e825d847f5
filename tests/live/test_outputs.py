"""Outputs of a trace: the summary, JSON, the four formats, and the options that choose what is in them."""

from __future__ import annotations

import json
import re
import signal
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from commands import Tracer, check_counts, folded, load, run, traced_run
from runner import FOLDER, Workload
from stallscope.converters.base.units import duration
from stallscope.converters.model import Profile
from tracing import RUNNABLE, Traced

pytestmark = pytest.mark.usefixtures("live")

MS = 1_000_000
SVG = "{http://www.w3.org/2000/svg}"
LOST_KINDS = ("intervals", "stacks", "threads", "exit and exec records", "address space records")


def svg_total(path: Path) -> int:
    """ns of the frame at the bottom, which the page computes shares of."""
    root = ET.parse(path).getroot()
    assert root.get("data-unit") == "nanoseconds"
    rects = [rect for rect in root.iter(f"{SVG}rect") if rect.get("data-v")]
    (total,) = [int(v.split()[2]) for rect in rects if (v := rect.get("data-v", "")).startswith("0 ")]
    return total


def all_outputs(tmp_path: Path, *arguments: object) -> tuple[dict[str, Path], dict[str, Any], Profile]:
    """One trace of two processes into every format, and what --json said."""
    paths = {suffix: tmp_path / f"out.{suffix}" for suffix in ("svg", "folded", "speedscope.json", "pb.gz")}
    options = [option for path in paths.values() for option in ("-o", path)]
    with (
        Workload("sleeps", 4, linger=True) as first,
        Workload("pipe_chain", 3, 200, linger=True) as second,
        Tracer("-p", ",".join(map(str, [first.pid, *second.pids])), "--json", *options, *arguments) as tracer,
    ):
        tracer.ready()
        first.release()
        first.truth()
        first.finish()
        finished, _ = traced_run(second, tracer)
    assert finished.err == "".join(f"wrote {path}\n" for path in paths.values())
    return paths, finished.summary, load(paths["pb.gz"])


def test_all_outputs_agree(tmp_path: Path) -> None:
    paths, summary, profile = all_outputs(tmp_path)
    total = profile.total("off-cpu")
    assert total > 196 * MS
    assert svg_total(paths["svg"]) == total

    lines = folded(paths["folded"].read_text())
    assert abs(sum(lines.values()) - total / 1000) <= 0.5
    roots = {f"{s.label('process')}-{s.label('pid')}" for s in profile.samples}
    assert {stack.split(";")[0] for stack in lines} == roots

    speedscope = json.loads(paths["speedscope.json"].read_text())
    everything, *processes = speedscope["profiles"]
    assert everything["name"] == "all"
    assert {each["unit"] for each in speedscope["profiles"]} == {"nanoseconds"}
    assert sum(everything["weights"]) == everything["endValue"] == total
    assert sum(each["endValue"] for each in processes) == total
    by_process = {
        root: sum(s.values[0] for s in profile.samples if f"{s.label('process')}-{s.label('pid')}" == root)
        for root in roots
    }
    assert {each["name"]: sum(each["weights"]) for each in processes} == by_process

    assert summary["lost"] == speedscope["lost"] == profile.lost
    assert {kind: profile.lost[kind] for kind in LOST_KINDS} == dict.fromkeys(LOST_KINDS, 0)
    assert sum(wait["time_ns"] for wait in summary["waits"]) == total


def test_json_adds_up(tmp_path: Path) -> None:
    _, summary, profile = all_outputs(tmp_path)
    assert summary["version"] == 3
    for times in (summary["times"], summary["active"]):
        parts = ("on_cpu_ns", "runnable_ns", "blocked_ns", "unaccounted_ns")
        assert sum(times[part] for part in parts) == times["wall_ns"]
        assert sum(times["blocked_by_state_ns"].values()) == times["blocked_ns"]
    times = summary["times"]
    assert times["threads"] == len(profile.threads)
    assert times["wall_ns"] == sum(each.wall for each in profile.threads)
    assert abs(times["unaccounted_ns"]) <= 0.01 * times["wall_ns"]
    assert times["runnable_ns"] + times["blocked_ns"] == pytest.approx(profile.total("off-cpu"), rel=0.01)
    assert summary["duration_ns"] == profile.duration_ns
    assert {pid for process in summary["processes"] for pid in process["pids"]} == {t.pid for t in profile.threads}
    for wait in summary["waits"]:
        assert wait["min_ns"] <= wait["mean_ns"] <= wait["max_ns"] <= wait["time_ns"]
        assert 0 <= wait["share"] <= wait["threads_share"] <= 1
    assert summary["waits"][0]["frames"]


def test_summary_says_who_how_long_and_what_was_lost(tmp_path: Path) -> None:
    # Without the wait at the gate, which may be the longest.
    options = ["--max-block", 200_000, "-o", tmp_path / "a.svg"]
    with Workload("sleeps", 20, linger=True) as workload, Tracer("-p", workload.pid, *options) as tracer:
        finished, truth = traced_run(workload, tracer)
    # Who loses his core for longer than he wants to sleep does not sleep.
    blocks = {wait["function"]: wait["blocks"] for wait in truth["waits"]}
    out = finished.out
    assert finished.err == ""
    assert re.search(rf"^Traced sleeps \(pid {workload.pid}\): 1 thread for [\d.]+ m?s on \S+$", out, re.MULTILINE)
    assert re.search(r"^Nothing lost[.;]", out, re.MULTILINE)
    where = r"in (main → )?sleep_25ms( → nanosleep)?"
    slept = rf"spent sleeping again and again {where} \({blocks['sleep_25ms']} waits, mean \d\d\."
    assert re.search(slept, out)
    number = r"<?[\d.]+ %"
    line = rf"^Of [\d.]+ m?s: {number} on a core \([\d.]+ of \d+\), {number} waiting for one, {number} blocked"
    assert re.search(line, out, re.MULTILINE)
    for function, count in blocks.items():
        # Time, share, count, mean, max.
        assert re.search(
            rf"^ *\S+ m?s +\S+ % +{count} +\S+ \S+ +\S+ \S+ .*{function}( → nanosleep)? │ \w+nanosleep",
            out,
            re.MULTILINE,
        )
    assert out.splitlines()[-1] == f"wrote {tmp_path / 'a.svg'}"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", out)


def test_default_output_is_an_svg_in_the_current_folder(tmp_path: Path) -> None:
    finished = run("--", "sleep", 0.05, cwd=tmp_path).check_succeeded()
    (path,) = tmp_path.iterdir()
    assert re.fullmatch(r"offcpu-\d{8}-\d{6}\.svg", path.name)
    assert finished.out.splitlines()[-1] == f"wrote {path.name}"
    assert svg_total(path) > 50 * MS


def test_folded_on_standard_output(tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    with Workload("sleeps", 4, linger=True) as workload:
        with Tracer("-p", workload.pid, "-o", "-", "-o", path) as tracer:
            finished, _ = traced_run(workload, tracer)
        lines = folded(finished.out)
        profile = load(path)
        assert abs(sum(lines.values()) - profile.total("off-cpu") / 1000) <= 0.5
        (line,) = [stack for stack in lines if ";sleep_25ms;" in stack and lines[stack] > 50_000]
        frames = line.split(";")
        assert frames[0] == f"sleeps-{workload.pid}"
        assert frames.index("main") + 1 == frames.index("sleep_25ms")
        assert frames[-1] == "__schedule_[k]"
        assert "Traced sleeps" in finished.err
        assert f"wrote {path}" in finished.err


def test_roots_per_thread(tmp_path: Path) -> None:
    paths = [tmp_path / "out.folded", tmp_path / "out.speedscope.json"]
    with Workload("futex_pingpong", 300, linger=True) as workload:
        with Tracer("-p", workload.pid, "--per-thread", "-o", paths[0], "-o", paths[1]) as tracer:
            _, truth = traced_run(workload, tracer)
        threads = {wait["function"]: wait["tid"] for wait in truth["waits"]}
        roots = {stack.split(";")[0] for stack in folded(paths[0].read_text())}
        main = f"futex_pingpong-{workload.pid}/{workload.pid}"
        assert roots == {main, *(f"{name}-{workload.pid}/{tid}" for name, tid in threads.items())}
        names = {each["name"] for each in json.loads(paths[1].read_text())["profiles"]}
        assert {f"futex_pingpong-{workload.pid} {name}/{tid}" for name, tid in threads.items()} < names


def sleeps_with(tmp_path: Path, *arguments: object) -> tuple[Traced, dict[str, Any]]:
    path = tmp_path / "out.pb.gz"
    with (
        Workload("sleeps", 5, linger=True) as workload,
        Tracer("-p", workload.pid, "--json", "-o", path, *arguments) as tracer,
    ):
        finished, truth = traced_run(workload, tracer)
    return Traced(load(path), truth), finished.summary


def most_waits(traced: Traced, shortest_ns: float, *functions: str) -> int:
    """Number of sleeps of these functions that can have lasted so long: all together lasted what the program saw."""
    return int(sum(wait["ns"] for wait in traced.truth["waits"] if wait["function"] in functions) // shortest_ns)


def test_shortest_and_longest_wait(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    traced, summary = sleeps_with(tmp_path / "a", "--min-block", 5000)
    assert [traced.blocks(name) for name in ("sleep_10ms", "sleep_25ms")] == [10, 5]
    # Of 20: a sleep ends late where no core is free.
    assert traced.blocks("sleep_1ms") <= most_waits(traced, 5 * MS, "sleep_1ms")
    # What is left out of the waits is still in the account of the threads. A wait includes that for a core.
    off_cpu = summary["times"]["blocked_ns"] + summary["times"]["runnable_ns"]
    assert off_cpu > sum(s.values[0] for s in traced.profile.samples)
    assert abs(summary["times"]["unaccounted_ns"]) <= 0.01 * summary["times"]["wall_ns"]
    (tmp_path / "b").mkdir()
    traced, _ = sleeps_with(tmp_path / "b", "--max-block", 1e6, "--min-block", 24_999.5)
    assert traced.blocks("sleep_25ms") == 5
    short = ("sleep_1ms", "sleep_10ms")
    assert sum(map(traced.blocks, short)) <= most_waits(traced, 24.9995 * MS, *short)  # of 30
    (tmp_path / "c").mkdir()
    traced, _ = sleeps_with(tmp_path / "c", "--max-block", 9999)
    assert traced.blocks("sleep_1ms") >= 20 - most_waits(traced, 9.999 * MS, "sleep_1ms")
    assert [traced.blocks(name) for name in ("sleep_10ms", "sleep_25ms")] == [0, 0]
    assert max(s.values[3] for s in traced.profile.samples) < 10 * MS


@pytest.mark.parametrize(
    ("chosen", "states"),
    [
        (["runnable"], set(RUNNABLE)),
        (["blocked"], {"interruptible", "uninterruptible"}),
        (["interruptible"], {"interruptible"}),
        (["runnable-preempted", "stopped"], {"runnable-preempted"}),
    ],
)
def test_states(tmp_path: Path, chosen: list[str], states: set[str]) -> None:
    path = tmp_path / "out.pb.gz"
    options = [option for state in chosen for option in ("--state", state)]
    with (
        Workload("sleeps", 3, linger=True) as sleeps,
        Workload("two_spinners", 200, linger=True) as spinners,
        Tracer("-p", ",".join(map(str, [sleeps.pid, *spinners.pids])), "-o", path, *options) as tracer,
    ):
        tracer.ready()
        sleeps.release()
        spinners.release()
        truth = sleeps.truth()
        spinners.truth()
        tracer.interrupt().finish().check_succeeded()
    found = {sample.label("state") for sample in load(path).samples}
    assert found
    assert found <= states
    if "interruptible" in states:
        check_counts(Traced(load(path), truth))
    if "runnable-preempted" in states:
        assert "runnable-preempted" in found


def test_one_kind_of_stacks(tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    user, _ = sleeps_with(tmp_path / "user", "-U")
    assert user.blocks("sleep_10ms") == 10
    assert not any(frame.kind == "kernel" for s in user.profile.samples for frame in s.stack)
    (tmp_path / "kernel").mkdir()
    kernel, _ = sleeps_with(tmp_path / "kernel", "-K")
    assert kernel.blocks("do_nanosleep") == 35
    assert not any(frame.kind == "native" for s in kernel.profile.samples for frame in s.stack)


def test_full_tables_are_said(tmp_path: Path) -> None:
    """Nobody reads them meanwhile, and each child has waits of its own: far more than the smallest table holds."""
    path = tmp_path / "out.pb.gz"
    with (
        Workload("fork_storm", 1500, 8, linger=True) as workload,
        Tracer("--table-size", 1024, "-p", workload.pid, "-o", path) as tracer,
    ):
        tracer.ready()
        tracer.interrupt(signal.SIGSTOP)
        workload.release()
        truth = workload.truth()
        tracer.interrupt(signal.SIGCONT).interrupt()
        finished = tracer.finish().check_succeeded()
    profile = load(path)
    lost = profile.lost["intervals"]
    assert lost > 0
    time = duration(profile.lost["ns of intervals"])
    assert re.search(rf"^Lost: {lost:,} intervals \({time}\)", finished.out, re.MULTILINE)
    assert re.search(r"^Note: .*--table-size", finished.out, re.MULTILINE)
    assert len({(s.label("pid"), s.label("tid")) for s in profile.samples}) <= 1024 + 1500
    # The account of the threads is not kept in that table.
    assert sum(times.exited for times in profile.threads) >= 1500
    (children,) = [wait for wait in truth["waits"] if wait["function"] == "child_sleep"]
    assert Traced(profile, truth).blocks("child_sleep") < children["blocks"]
    # What is lost is in rows of its own: nothing is missing from the sum.
    rows = [sample for sample in profile.samples if sample.stack[0].name == "[lost]"]
    assert sum(sample.values[0] for sample in rows) == profile.lost["ns of intervals"] > 0
    off = sum(times.runnable + sum(times.blocked.values()) for times in profile.threads)
    assert sum(sample.values[0] for sample in profile.samples) == off


def test_larger_tables_hold_all(tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    finished = run("--table-size", 131072, "--buffer", 1, "-o", path, "--", FOLDER / "fork_storm", 300, 8)
    profile = load(path)
    assert {kind: profile.lost[kind] for kind in LOST_KINDS} == dict.fromkeys(LOST_KINDS, 0)
    assert "--table-size" not in finished.check_succeeded().out
    # A child can also wait for a page there.
    sleeps = [s for s in Traced(profile, {}).samples("child_sleep") if s.label("state") == "interruptible"]
    assert sum(s.values[1] for s in sleeps) == 300, [
        (s.values, [frame.name for frame in s.stack[-5:]]) for s in sleeps if s.values[1] > 1
    ]


def test_two_traces_at_once(tmp_path: Path) -> None:
    """Each is right, whatever the other does; both see the waits of the process that both trace."""
    paths = [tmp_path / "a.pb.gz", tmp_path / "b.pb.gz"]
    with (
        Workload("sleeps", 6, linger=True) as shared,
        Workload("sleeps", 6, linger=True) as only_first,
        Tracer("-p", f"{shared.pid},{only_first.pid}", "-o", paths[0]) as first,
        Tracer("-p", shared.pid, "-o", paths[1]) as second,
    ):
        first.ready()
        second.ready()
        shared.release()
        only_first.release()
        truths = [shared.truth(), only_first.truth()]
        shared.finish()
        second.finish().check_succeeded()
        only_first.finish()
        first.finish().check_succeeded()
        both, one = (Traced(load(path), truths[0]) for path in paths)
        check_counts(both)
        check_counts(both, truths[1])
        check_counts(one)
        assert {s.label("pid") for s in one.profile.samples} == {shared.pid}
        for name in ("sleep_1ms", "sleep_10ms", "sleep_25ms"):
            times = [sum(s.values[0] for s in traced.samples(name, shared.pid)) for traced in (both, one)]
            assert times[0] == pytest.approx(times[1], rel=0.03, abs=2 * MS)
