"""A whole stream, from bytes to what a trace has taken."""

from __future__ import annotations

import os
import subprocess

import pytest
from stallscope.converters.model.calls import WITHOUT_PROBE
from stallscope.converters.model.processes import cpu_set
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers.stap.lines import Fork, Lines, Name
from stallscope.tracers.base.conditions import Conditions
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.named_rows import NamedRows
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.engines.stap.taking import Taking
from stallscope.tracers.measures.ioctl import Ioctl

TEXT = b"""\
stallscope 1 1000 1700000000000000000
n 5 5 one\\ntwo
n 5 6 worker
d 5 3 8630 10 200 devtmpfs tun
f 1 0 use+0x1/0x2 [/opt/x]
w 5 6 ? 0 0 1000 0 100 0
c 5 6 1200
k 2 0 0xffffffff81000010
w 5 6 S 2 1 1250 150 600 50
i 5 6 3 1074025689 1200 800 1 -16 (EBUSY)
r 6 500
lost returns 2
lost scope 0
lost stacks 0
lost threads 0
end 2600 9
"""


def taken(text: bytes = TEXT, words: str = "") -> NamedRows:
    lines = Lines()
    first = list(lines.feed(text))
    taking = Taking(lines, (Ioctl(),))
    for line in first:
        taking.line(line, 2500)
    return taking.taken(Request(Scope(pids=[5]), (Ioctl(),), "Time"), words, 2500)


def test_an_ioctl() -> None:
    profile = taken().profile((Ioctl(),), "Time in ioctl calls")
    (call,) = profile.calls
    assert (call.name, call.process) == ("TUNSETQUEUE", "one\ntwo")
    assert (call.count, call.total, call.blocked, call.runnable) == (1, 800, 600, 50)
    assert call.errors == {"EBUSY": 1}
    assert [(thread.tid, thread.thread) for thread in call.threads] == [(6, "worker")]
    waits = [sample for sample in profile.samples if sample.label("state") == "interruptible"]
    assert [[frame.name for frame in sample.stack][:2] for sample in waits] == [["use", f"{call.name} {call.device}"]]
    assert sum(sample.values[0] for sample in profile.samples) == 800
    for times in profile.threads:
        assert times.on_cpu + times.runnable + sum(times.blocked.values()) == times.wall


@pytest.mark.parametrize(("cost", "begins"), [(10, ""), (40, "SystemTap's"), (400, "Careful: SystemTap's")])
def test_what_the_probes_cost_is_told(monkeypatch: pytest.MonkeyPatch, cost: int, begins: str) -> None:
    """Probes cost a part of 1,500 ns on one core."""
    monkeypatch.setattr("os.sysconf", lambda name: 1)
    comments = worded(taken(TEXT.replace(b"end 2600", b"cost 7 %d\nend 2600" % cost)).comments)
    told = [comment for comment in comments if "probes took" in comment]
    assert [comment.startswith(begins) for comment in told] == [True] * bool(begins)


def test_what_was_before_the_command_does_not_count() -> None:
    lines = Lines()
    taking = Taking(lines, (Ioctl(),), launched=5)
    ioctl = b"c 5 5 1200\ni 5 5 3 1 1200 800 0 0\n"
    for line in lines.feed(TEXT.partition(b"w 5 6 ?")[0] + ioctl + b"e 5 5 2010\n" + ioctl.replace(b"1200", b"2100")):
        taking.line(line)
    assert taking.calls
    assert [timed.calls.count for timed in taking.calls.timed()] == [1]


def test_losses() -> None:
    found = taken(words="WARNING: Number of errors: 0, skipped probes: 30\n")
    assert found.lost["returns"] == 2
    assert found.lost["events"] == 30
    assert "SystemTap lost events (30 were skipped): trace fewer processes" in worded(found.comments)
    missing = taken(TEXT.replace(b"end 2600 9", b"end 2600 12"), "WARNING: There were 4 transport failures.\n")
    assert missing.lost["events"] == 2, "what found no room is among the lines that did not arrive"
    assert any("(2 lines did not arrive)" in remark for remark in worded(missing.comments))
    broken = taken(TEXT.rpartition(b"lost returns")[0], "WARNING: There were 4 transport failures.\n")
    assert broken.lost["events"] == 4
    assert worded(taken(TEXT.rpartition(b"lost returns")[0]).comments) == [
        "the script did not come to its end: what it lost is not known"
    ]


def test_few_losses_are_told_without_advice() -> None:
    lines = b"".join(b"w 5 6 S 0 0 %d 0 1 0\n" % (1900 + i) for i in range(150))
    text = TEXT.replace(b"r 6 500", lines + b"r 6 450").replace(b"end 2600 9", b"end 2600 159")
    (one,) = worded(taken(text, "WARNING: Number of errors: 0, skipped probes: 1\n").comments)
    assert one == "SystemTap lost events (1 was skipped)"
    (some,) = worded(taken(text, "WARNING: Number of errors: 0, skipped probes: 3\n").comments)
    assert some == "SystemTap lost events (3 were skipped): trace fewer processes"
    (long,) = worded(
        taken(text.replace(b"r 6 450", b"r 6 430"), "WARNING: Number of errors: 0, skipped probes: 1\n").comments
    )
    assert long == "SystemTap lost events (1 was skipped): trace fewer processes", "20 of 1,500 ns"


def test_probes_that_were_not_attached_are_told() -> None:
    words = 'WARNING: probe process("/x").function("f").call (address 0x1) registration error (rc -524)\n' * 2
    found = taken(words=words)
    assert any(
        remark.startswith("no probe could be put on f, whose calls are not seen (SystemTap: WARNING: probe process")
        for remark in worded(found.comments)
    )
    assert found.lost[WITHOUT_PROBE] == 1


def test_what_the_scope_leaves_out_is_told() -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        scope = Scope(pids=[os.getpid()])
        scope.resolve()
        assert child.pid in scope.left_out
        lines = Lines()
        taking = Taking(lines, (Ioctl(),))
        for line in lines.feed(TEXT):
            taking.line(line, 2500)
        found = taking.taken(Request(scope, (Ioctl(),), "Time"), "", 2500)
        child.kill()
    assert any("--children traces them, too" in remark for remark in worded(found.comments)), worded(found.comments)


def test_an_error_of_the_script_is_told() -> None:
    words = "WARNING: x\nERROR: MAXACTION exceeded \x1b[31m near identifier 'printf'\nERROR: another\n"
    (remark,) = worded(taken(TEXT.rpartition(b"lost returns")[0], words).comments)
    assert remark.startswith(
        "the script did not come to its end: what it lost is not known (SystemTap: ERROR: MAXACTION"
    )
    assert "\x1b" not in remark
    assert "another" not in remark


def test_conditions_of_processes_are_those_at_the_end() -> None:
    """A process that is there; the waker is not traced, and not looked at."""
    own, text = os.getpid(), TEXT.replace(b" 5 ", b" %d " % os.getpid()) + b"n 1 1 init\n"
    lines = Lines()
    taking = Taking(lines, (Ioctl(),))
    for line in lines.feed(text):
        taking.line(line)
    taking.conditions.look_soon([own])
    taking.take(b"", 2500)
    found = taking.taken(Request(Scope(pids=[own]), (Ioctl(),), "Time"), "", 2500)
    assert found.conditions.keys() == {own}
    assert cpu_set(found.conditions[own].cpus) == os.sched_getaffinity(0)
    (process,) = found.profile((Ioctl(),), "Time").processes
    assert sum(process.latencies) == 1, "one wait for a core, of 50 ns"


def test_processes_are_looked_at_as_they_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    monkeypatch.setattr(Conditions, "look", lambda _, pid: looked.append(pid))
    taking = Taking(Lines(), (Ioctl(),))
    for line in (Name(14, 14, "waker"), Fork(7, 7, 1000), Name(7, 7, "a program"), Fork(7, 8, 1000), Name(7, 8, "x")):
        taking.line(line)
    assert looked == [7, 7]
