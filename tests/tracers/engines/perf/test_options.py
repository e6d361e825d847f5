from __future__ import annotations

import os
from pathlib import Path

import pytest
from stallscope.converters.base import helpers
from stallscope.converters.model.remarks import KernelHidden, TooShort, WaitsHidden
from stallscope.converters.phrases.remarks import word, worded
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.perf import options
from stallscope.tracers.engines.perf.options import How, Options, Targets, targets_of
from stallscope.tracers.engines.perf.recording import Rights
from stallscope.tracers.engines.protocol import EngineUnavailable, Request
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.protocol import Measure

ROOT, USER, CURIOUS = Rights(2, True), Rights(2, False), Rights(1, False)
TARGETS = Targets([7, 8], [], True)


@pytest.fixture(autouse=True)
def tracefs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets all read tracefs."""
    monkeypatch.setattr(os, "access", lambda *_: True)


def asked(may: Rights, *measures: Measure, how: How | None = None, scope: Scope | None = None) -> Options:
    return Options(how or How(), Request(scope or Scope(pids=[7]), measures, "Time"), may, TARGETS)


@pytest.mark.parametrize(
    ("made", "words", "fields"),
    [
        (
            asked(ROOT, OffCpu()),
            "-e sched:sched_switch --call-graph dwarf,8192 -m 8M -p 7,8",
            "comm,pid,tid,time,event,period,ip,sym,dso,trace",
        ),
        (
            asked(CURIOUS, OffCpu(), OnCpu(49)),
            "-e context-switches/period=1/ -e cpu-clock/freq=49/ --call-graph dwarf,8192 -p 7,8",
            "comm,pid,tid,time,event,period,ip,sym,dso",
        ),
        (
            asked(USER, OnCpu(99, "cycles"), how=How(dwarf=False)),
            "-e cycles/freq=99/u --call-graph fp -p 7,8",
            "comm,pid,tid,time,event,period,ip,sym,dso",
        ),
        (
            asked(ROOT, OnCpu(), how=How(user_stacks=False, buffer_bytes=4 << 20)),
            "-e cpu-clock/freq=99/ --call-graph fp --kernel-callchains -m 4M -p 7,8",
            "comm,pid,tid,time,event,period,ip,sym,dso",
        ),
        (
            asked(ROOT, OnCpu(), how=How(kernel_stacks=False, stack_bytes=65528)),
            "-e cpu-clock/freq=99/ --call-graph dwarf,65528 --user-callchains -m 8M -p 7,8",
            "comm,pid,tid,time,event,period,ip,sym,dso",
        ),
    ],
    ids=["waits", "both", "user", "kernel-only", "user-only"],
)
def test_words(made: Options, words: str, fields: str) -> None:
    assert " ".join(made.words()) == words
    assert made.fields() == fields


def test_remarks() -> None:
    assert asked(ROOT, OffCpu(), OnCpu()).remarks(0) == []
    assert any("interruptible is not known" in remark for remark in worded(asked(CURIOUS, OffCpu()).remarks(0)))
    (hidden, _) = asked(USER, OnCpu()).remarks(10**9)
    assert hidden == KernelHidden(2)
    (later,) = asked(ROOT, OnCpu(), scope=Scope(cgroup=Path("/x"))).remarks(0)
    assert "begin later" in word(later)


def test_too_little_time_for_samples_is_not_told_as_hidden() -> None:
    (few, _) = asked(USER, OnCpu()).remarks(65_000_000)
    assert few == TooShort(65_000_000, 99, 6)
    (few, _) = asked(USER, OnCpu()).remarks(1_000_000)
    assert few == TooShort(1_000_000, 99, 0)


@pytest.mark.parametrize(
    ("eu_stack", "how"), [("/usr/bin/eu-stack", "trace-wall --engine eu-stack"), (None, "sudo trace-wall")]
)
def test_waits_are_asked_of_what_this_user_may_run(
    eu_stack: str | None, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "find_program", lambda _: eu_stack)
    (_, waits) = asked(USER, OnCpu()).remarks(0)
    assert waits == WaitsHidden(how)


def test_targets() -> None:
    pid = os.getpid()
    found = targets_of(Scope(pids=[pid]), None)
    assert found.words == ["-p", f"{pid}"]
    assert (pid, pid) in found.threads()
    assert found.only is None
    found = targets_of(Scope(threads=[pid], children=False), None)
    assert found.words == ["-t", f"{pid}"]
    assert found.threads() == [(pid, pid)]
    assert found.only == {pid}


@pytest.mark.parametrize(
    ("scope", "cause"),
    [
        (Scope(everything=True), "whole hosts"),
        (Scope(pids=[os.getpid()], threads=[os.getpid()]), "either processes or threads"),
        (Scope(), "no process to trace yet"),
    ],
)
def test_scopes_that_perf_cannot_follow(scope: Scope, cause: str) -> None:
    with pytest.raises(EngineUnavailable, match=cause):
        targets_of(scope, None)


def test_too_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_MOST_TARGETS", 0)
    with pytest.raises(EngineUnavailable, match="1 processes are too many"):
        targets_of(Scope(pids=[os.getpid()]), None)
