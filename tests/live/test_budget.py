"""Measures what tracing costs while it runs: what is left out beyond the budget, and that the rest holds."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import Finished, run
from runner import FOLDER
from stallscope.converters import pprof
from stallscope.converters.model import Profile
from stallscope.converters.model.states import BLOCKED
from stallscope.converters.scan import folder

pytestmark = pytest.mark.usefixtures("live")

TRACE_SCAN = str(Path(sys.executable).with_name("trace-scan"))
SECOND = 1_000_000_000
NOT_TAKEN = "[stack not taken (shed)]"


def scan(kept: Path, budget: str, *command: object) -> tuple[Finished, dict[str, Any], Profile]:
    """Scans a command; returns what it printed, the summary, and the capture."""
    ended = run("--budget", budget, "-o", str(kept), "--", *map(str, command), command=TRACE_SCAN).check_succeeded()
    with (kept / folder.CAPTURE).open("rb") as file:
        profile = pprof.load(file)
    return ended, json.loads((kept / folder.SUMMARY).read_text()), profile


def check_accounts(profile: Profile) -> None:
    """Checks that all time of each thread is on a core, blocked or runnable, and that the samples have it, too."""
    assert profile.threads
    for times in profile.threads:
        assert times.on_cpu + times.runnable + sum(times.blocked.values()) == pytest.approx(times.wall, rel=0.001)
    whole = sum(times.wall for times in profile.threads)
    assert sum(sample.values[0] for sample in profile.samples) == pytest.approx(whole, rel=0.01)


def last_line(text: str) -> Any:
    """The truth that a workload prints last."""
    return next(json.loads(line) for line in reversed(text.splitlines()) if line.startswith("{"))


def blocks(profile: Profile, tid: int, frame: str = "") -> int:
    """Number of blocked waits of a thread; of those in which a function is, if one is given."""
    mine = (each for each in profile.samples if each.label("tid") == tid and each.label("state") in BLOCKED)
    return sum(each.values[1] for each in mine if not frame or frame in (known.name for known in each.stack))


def calls_of(made: dict[str, Any], name: str) -> Sequence[dict[str, Any]]:
    return [each for each in made["summary"]["calls"] if each["name"] == name]


def test_a_storm_of_calls_loses_its_probes(tmp_path: Path) -> None:
    ended, made, profile = scan(tmp_path / "scan.d", "2%", FOLDER / "call_storm", 5)
    check_accounts(profile)
    (shed, *_) = [each for each in made["shed"] if each["what"] == "calls"]
    assert "cudaFree" in [each["name"] for each in shed["functions"]]
    at = shed["at_ns"]
    assert 0 < at < 4 * SECOND
    truth = last_line(ended.out)
    (free,) = calls_of(made, "cudaFree")
    counted = sum(truth["tenths"][: at // (SECOND // 10) + 8])
    assert 0 < free["count"] < counted, "not the calls since it lost its probe"
    assert free["count"] < truth["frees"] / 2
    assert free["open_count"] == 0, "a call that was under way is not one of seconds"
    before, after = truth["tenths"][: max(at // (SECOND // 10) - 2, 1)], truth["tenths"][-10:]
    assert sum(after) / len(after) > 2 * sum(before) / len(before), "the calls have become cheap"
    assert "without probes on " in ended.out
    assert f"From second {at / SECOND:.1f} on:" in ended.out


def test_calls_that_stay_are_counted_on(tmp_path: Path) -> None:
    ended, made, _ = scan(tmp_path / "scan.d", "40%", FOLDER / "call_storm", 4)
    gone = {function["name"] for each in made["shed"] for function in each["functions"]}
    assert gone
    assert "cudaMemcpy" not in gone, "it is called seldom"
    (copy,) = calls_of(made, "cudaMemcpy")
    truth = last_line(ended.out)
    assert copy["count"] == pytest.approx(truth["copies"], rel=0.35), "the probes of the others are made again"


def test_a_storm_of_switches_loses_stacks_of_waits_and_wakers(tmp_path: Path) -> None:
    ended, made, profile = scan(tmp_path / "scan.d", "1%", FOLDER / "futex_pingpong", 200_000)
    check_accounts(profile)
    whats = [each["what"] for each in made["shed"]]
    assert {"stacks", "waker stacks"} <= set(whats)
    assert made["cost"]["share"] > 0.01
    assert "more than the budget of 1 %" in ended.out
    assert "user stacks of one in 16 waits" in ended.out
    truth = last_line(ended.out)
    unseen = sum(number for kind, number in profile.lost.items() if "switch" in kind or "event" in kind)
    for wait in truth["waits"]:
        whole, without = blocks(profile, wait["tid"]), blocks(profile, wait["tid"], NOT_TAKEN)
        # Beside them: it is created, waits for the start, and may wait for a page or for a lock of the kernel.
        assert wait["blocks"] - unseen <= whole <= wait["blocks"] * 1.02 + 100 + unseen, "all are counted"
        known = blocks(profile, wait["tid"], wait["function"])
        assert 0 < known < without, "of the time before, and of one in 16 since"
    for thread in truth["threads"]:
        (times,) = [each for each in profile.threads if each.thread == thread["thread"]]
        # The kernel's clock of a thread has what the probes take at its switches; its account has not.
        assert 0.9 * (thread["cpu_ns"] - made["cost"]["time_ns"]) <= times.on_cpu <= 1.05 * thread["cpu_ns"]


def test_each_interval_tells_what_it_cost_and_what_is_still_left_out(tmp_path: Path) -> None:
    ended = run("--watch", "1s", "--json", "--budget", "0.5%", "-o", str(tmp_path / "x-%H%M%S.d"), "--",
                str(FOLDER / "futex_pingpong"), "150000", command=TRACE_SCAN).check_succeeded()  # fmt: skip
    intervals = [json.loads(line) for line in ended.out.splitlines() if line.startswith('{"watch_version"')]
    first, second, *_ = told = [each for each in intervals if each["cost"]]
    for each in told:
        assert each["cost"]["budget"] == 0.005
        assert each["cost"]["time_ns"] > 0
    whole = sum(each["duration_ns"] for each in intervals)
    assert sum(each["cost"]["traced_ns"] for each in told) < 3 * whole, "of its threads, and each time once"
    shed = {each["what"]: each["at_ns"] for one in intervals for each in one["shed"] if each["at_ns"] >= 0}
    assert "stacks" in shed
    last = {each["what"]: each["at_ns"] for each in intervals[-1]["shed"]}
    assert last.keys() == shed.keys(), "it is told in each interval from then on"
    assert any(at < 0 for at in last.values())
    assert second["start_ns"] == pytest.approx(first["start_ns"] + first["duration_ns"], abs=1_000)
    page = tmp_path / "x.html"
    kept = second["kept"][0]
    run("--from", kept, "-o", str(page), command=TRACE_SCAN).check_succeeded()
    assert "before this interval: " in page.read_text()


def test_nothing_is_left_out_within_the_budget(tmp_path: Path) -> None:
    ended, made, profile = scan(tmp_path / "scan.d", "100%", FOLDER / "spinner", 1500)
    check_accounts(profile)
    assert made["shed"] == []
    assert made["cost"]["share"] > 0
    assert made["cost"]["parts_ns"]["samples"] > 0
    assert made["cost"]["budget"] == 1.0
    assert "Tracing cost " in ended.out
    assert "From second " not in ended.out


def test_samples_that_became_rarer_still_sum_to_the_time(tmp_path: Path) -> None:
    _, made, profile = scan(tmp_path / "scan.d", "0.0001%", FOLDER / "two_spinners", 6000)
    check_accounts(profile)
    steps = [(each["at_ns"], each["times_rarer"]) for each in made["shed"] if each["what"] == "samples"]
    parts = made["cost"]["parts_ns"]
    # On a host where others switch all the time, to make samples rarer saves too little.
    assert steps or parts.get("samples", 0) < 0.25 * made["cost"]["time_ns"], (
        "how rare they become depends on what else costs"
    )
    if not steps:
        return
    number = sum(sample.values[1] for sample in profile.samples if sample.label("state") == "running")
    on_cpu = sum(times.on_cpu for times in profile.threads)
    kept, times_rarer, since = 0.0, 1, 0
    for at, then in (*steps, (profile.duration_ns, 0)):
        kept += (at - since) / times_rarer / profile.duration_ns
        since, times_rarer = at, then
    assert number < (1 + kept) / 2 * on_cpu * 99 / SECOND, "nearer to what is kept than to all of them"


@pytest.mark.parametrize("budget", ["0%", "1000%", "nonsense", "-1%", "nan", ""])
def test_budgets_that_are_none(budget: str) -> None:
    ended = run("--budget", budget, "--", "true", command=TRACE_SCAN)
    assert ended.status == 2
    assert "Traceback" not in ended.err
    assert "--budget" in ended.err
