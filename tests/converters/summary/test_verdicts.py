from __future__ import annotations

import json
from typing import Any

import pytest
from stallscope.converters.facts.wait_sums import Thread
from stallscope.converters.model import Frame, Module, Profile, ThreadTimes
from stallscope.converters.model.processes import CpuLimit
from stallscope.converters.rules.finding import CPU, Finding
from stallscope.converters.rules.quota import Throttled
from stallscope.converters.rules.ranking import judge
from stallscope.converters.rules.verdict import Verdict
from stallscope.converters.summary.summarize import summarize
from stallscope.converters.summary.verdicts import NOT_JUDGED, Judged, evidence_json, stack_json, thresholds_json
from summary_profiles import EXE, LIBC, MS, READ, SECOND, SLEEP, Tracee, empty, facts_of, hostile, waiting
from verdict_profiles import MINIMAL, with_quota, with_stuck


def in_json(profile: Profile) -> list[dict[str, object]]:
    facts = facts_of(profile)
    judgement = judge(facts)
    return Judged((*judgement.steps, *judgement.verdicts, *judgement.blamed, *judgement.still), facts.threads).to_json()


def test_all_of_a_verdict() -> None:
    verdict, _ = in_json(waiting(READ, (5, 5, "server", SLEEP, 6_000)))
    subject, cause = verdict.pop("subject"), verdict.pop("cause")
    assert verdict == {
        "rule": "for-others",
        "kind": "peer",
        "time_ns": 9_900 * MS,
        "confidence": 1,
        "score_ns": 9_900 * MS,
        "pids": [1],
        "effect": None,
        "evidence": None,
    }
    assert subject == {
        "does": "peer",
        "time_ns": 9_900 * MS,
        "share": 0.99,
        "runnable_ns": 0,
        "waits": 500,
        "max_ns": 9_900 * MS,
        "samples": 0,
        "threads": [{"process": "app", "thread": "app", "pid": 1, "tid": 1}],
        "more_threads": 0,
        "on": None,
        "places": [
            {
                "state": "interruptible",
                "frames": ["main", "fetch", "read"],
                "kernel_wait": "pipe_read",
                "call": "read",
                "lock": "",
                "stack": [
                    *({"function": name, "module": EXE.path} for name in ("main", "fetch")),
                    {"function": "read", "module": LIBC.path},
                    *({"function": frame.name} for frame in READ if frame.kind == "kernel"),
                ],
            }
        ],
    }
    assert isinstance(cause, dict)
    assert (cause["does"], [each["pid"] for each in cause["threads"]]) == ("sleep", [5])


def test_frames_are_told_as_they_were_recorded() -> None:
    script = Frame("next_batch", "python", None, 0, "/srv/train.py", 14)
    library = Frame("read\udcff", "native", Module("/x/liba.so", "ab"), 0x10)
    assert stack_json((script, library, Frame("ksys_read", "kernel"))) == [
        {"function": "next_batch", "file": "/srv/train.py", "line": 14},
        {"function": "read\\xff", "module": "/x/liba.so"},
        {"function": "ksys_read"},
    ]


def test_verdicts_are_in_the_order_in_which_they_matter() -> None:
    made = with_stuck(with_quota(waiting(READ), SECOND))
    assert [each["rule"] for each in in_json(made)] == ["for-others", "quota", "still"]
    assert summarize(made).to_json()["verdicts"] == in_json(made)


def test_verdicts_of_every_rule_are_plain_data() -> None:
    for rule, profile in MINIMAL.items():
        made = in_json(profile())
        assert json.loads(json.dumps(made)) == made, rule
        assert rule in {each["rule"] for each in made}


def test_hostile_names() -> None:
    json.dumps(in_json(hostile()), ensure_ascii=False).encode()


def of_running(*threads: Thread, wall: int = 10) -> dict[str, object]:
    """A verdict on threads (own ids) that run for 4 ns each."""
    times = {(pid, tid): ThreadTimes(pid, "app", tid, "w", 9, 4, 0, {}, count=7) for pid, tid in threads}
    finding = Finding(CPU, threads, 4 * len(threads), wall)
    verdict = Verdict("busy", CPU, finding.time, 0.5, finding.pids, finding)
    subject = Judged((verdict,), times).to_json()[0]["subject"]
    assert isinstance(subject, dict)
    return subject


def test_of_many_threads_some_are_listed() -> None:
    subject = of_running(*((1, tid) for tid in range(1, 71)))
    assert isinstance(subject["threads"], list)
    assert (len(subject["threads"]), subject["more_threads"]) == (64, 6)


def test_ids_are_the_kernels() -> None:
    life, total = 1 << 32, 3 << 56
    assert of_running((1, 2), (1, 2 | life), (1, total))["threads"] == [
        {"process": "app", "thread": "w", "pid": 1, "tid": 2},
        {"process": "app", "thread": "w", "pid": 1, "tid": 2, "life": 2},
        {"process": "app", "thread": "w", "pid": 1, "tid": 0, "count": 7},
    ]


def test_a_share_that_is_not_known() -> None:
    assert of_running((1, 2), wall=0)["share"] is None
    assert of_running((1, 2))["share"] == 0.4


def test_threads_that_run_have_their_own_share() -> None:
    """The subject is the first of several groups, with its own time."""
    profile = empty()
    for pid in (1, 2, 3):
        Tracee(profile, pid, f"app{'abc'[pid - 1]}", pid, "main").run(8 * SECOND).wait(SLEEP, "interruptible", SECOND)
    busy = next(each for each in in_json(profile) if each["rule"] == "busy")
    subject: Any = busy["subject"]
    assert busy["time_ns"] == 24 * SECOND
    assert (subject["time_ns"], len(subject["threads"])) == (8 * SECOND, 1)
    assert subject["share"] == pytest.approx(8 / 9, rel=1e-5)


def test_nothing_is_judged() -> None:
    assert NOT_JUDGED.to_json() == []


def test_thresholds() -> None:
    made = thresholds_json()
    assert made["herd_threads"] == {"value": 8.0, "unit": "threads"}
    assert made["late_waits"]["value"] == 1 / 3
    assert json.loads(json.dumps(made)) == made


def test_the_figures_of_rules() -> None:
    def told(rule: str) -> Any:
        judgement = judge(facts_of(MINIMAL[rule]()))
        found = (each for each in (*judgement.verdicts, *judgement.blamed) if each.rule == rule)
        return json.loads(json.dumps(evidence_json(next(found).detail)))

    assert told("held-up") is None
    assert told("polling") == {
        "frames": ["main", "wait_for_flag", "sched_yield"],
        "call": "sched_yield",
        "share": 0.8,
    }
    assert told("quota")["limit"]["throttled_periods"] == 98
    assert told("pool-anew")["pids"] == [7]
    assert told("holder")["lock"] == {"name": "table", "kind": "mutex", "pid": 1}
    assert told("ends-with")["untraced"] == [8]
    assert told("unclear") == 0.5
    assert evidence_json(Throttled(CpuLimit("a\udcff", 1, 2), ())) is not None
    json.dumps(evidence_json(Throttled(CpuLimit("a\udcff", 1, 2), ())), ensure_ascii=False).encode()
