"""Names of processes and threads in assembled profiles, and their titles."""

from __future__ import annotations

import pytest
from captures import capture, key, profile, remaining
from stallscope.converters.model.origins import Ancestor, ProcessOrigin
from stallscope.tracers.base.conditions import Condition
from stallscope.tracers.engines.ebpf.assemble import Naming, profile_of
from stallscope.tracers.kernel.records import WaitSum
from stallscope.tracers.symbols.one import Process
from stallscope.tracers.symbols.process import ProcessSpaces

pytestmark = pytest.mark.usefixtures("named_by_a_table")


def test_ids_that_came_back_are_told_apart() -> None:
    spaces = ProcessSpaces(fd_budget=0)
    for when in (50, 100, 150):
        spaces.fork(1, 7, when)
    once = WaitSum(1, 1, 1, 1, 0, 0, 0)
    lives = {20: 60, 21: 110, 22: 120}
    threads = [
        remaining(b"t%d" % life, key=key(tid=7, life=life), lived=when, start=when) for life, when in lives.items()
    ]
    threads.append(remaining(b"now", key=key(tid=7, life=23), lived=160))
    made = profile(waits=[(key(tid=7, life=life), once) for life in (*lives, 23)], threads=threads, spaces=spaces)
    found = [dict(sample.labels) for sample in made.samples][:4]
    assert [(of["thread"], of["pid"], of.get("pid-life"), of["tid"], of.get("tid-life")) for of in found] == [
        ("t20", 7, None, 7, None),
        ("t21", 7, 2, 7, None),
        ("t22", 7, 2, 7, 2),
        ("now", 7, 3, 7, None),
    ]
    assert [(times.thread, times.pid, times.pid_life, times.tid_life) for times in made.threads] == [
        ("t20", 7, 1, 1),
        ("t21", 7, 2, 1),
        ("t22", 7, 2, 2),
        ("now", 7, 3, 1),
    ]
    assert [(process.pid, process.pid_life, process.process) for process in made.processes] == [
        (7, 1, "t20"),
        (7, 2, "t22"),
        (7, 3, "now"),
    ]


def test_names_of_threads_and_processes() -> None:
    spaces = ProcessSpaces(fd_budget=0)
    spaces.processes = {7: Process(7, 7, comm="old name"), 20: Process(20, 20, comm="exited", exited=True)}
    once = WaitSum(1, 1, 1, 1, 0, 0, 0)
    waits = [
        (key(tid=7), once),
        (key(tid=8), once),
        (key(tid=9), once),
        (key(tid=20, tgid=20), once),
        (key(tid=31, tgid=30), once),
    ]
    threads = [
        remaining(b"ma\xffin", tid=7, key=key(tid=7)),
        remaining(b"<script>;x\n", tid=8),
        remaining(b"", tid=9, key=key(tid=9)),
    ]
    made = profile(waits=waits, threads=threads, spaces=spaces)
    assert [(s.label("process"), s.label("thread"), s.label("pid"), s.label("tid")) for s in made.samples] == [
        ("ma\udcffin", "ma\udcffin", 7, 7),
        ("ma\udcffin", "<script>;x\n", 7, 8),
        ("ma\udcffin", "ma\udcffin", 7, 9),
        ("exited", "exited", 20, 20),
        ("[unknown]", "[unknown]", 30, 31),
    ]
    assert all(list(s.labels) == sorted(s.labels) for s in made.samples)
    assert {(t.process, t.thread) for t in made.threads} >= {("ma\udcffin", "<script>;x\n")}


def test_pids_of_containers() -> None:
    """The pid is shown where it is another number in the container, and with --container-pid only."""
    spaces = ProcessSpaces(fd_budget=0)
    spaces.processes = {7: Process(7, 1, comm="worker"), 20: Process(20, 20, comm="outside")}
    once = WaitSum(1, 1, 1, 1, 0, 0, 0)
    given = {
        "waits": [(key(tid=7), once), (key(tid=20, tgid=20), once), (key(tid=31, tgid=30), once)],
        "threads": [remaining(b"", tid=8)],
        "spaces": spaces,
    }
    inside = profile_of(capture(**given), "Off-CPU time", Naming(container_pids=True))
    named = [(s.label("pid"), s.label("process"), s.label("thread")) for s in inside.samples]
    assert named == [
        (7, "worker (1 inside)", "worker"),
        (20, "outside", "outside"),
        (30, "[unknown]", "[unknown]"),
    ]
    assert [(t.process, t.thread) for t in inside.threads] == [("worker (1 inside)", "worker")]
    assert [s.label("process") for s in profile(**given).samples] == ["worker", "outside", "[unknown]"]


def test_ranks_are_labels_of_every_sample() -> None:
    waits = [(key(user=5), WaitSum(4, 100, 10, 40, 8, 1, 3))]
    made = profile(waits=waits, stacks={5: (2, 1)}, conditions={7: Condition("0", ranks={"rank": "3", "gpu": "1"})})
    assert len(made.samples) == 2
    assert {(sample.label("rank"), sample.label("gpu")) for sample in made.samples} == {("3", "1")}
    assert all(list(sample.labels) == sorted(sample.labels) for sample in made.samples)


def test_origins_have_the_names_of_processes() -> None:
    origin = ProcessOrigin(7, "", [Ancestor(1234, "bash")], "/bin/x")
    known = Condition("0", origin=origin)
    made = profile(threads=[remaining(b"main", tid=7, key=key(tid=7))], conditions={7: known, 99: known})
    (found,) = made.origins
    assert (found.pid, found.process, found.ancestors) == (7, "main", origin.ancestors)


@pytest.mark.parametrize(("name", "script"), [("d", "q.py"), ("python3", "")])
def test_a_script_is_that_of_the_program_that_was_asked(name: str, script: str) -> None:
    """A process that python3 has forked has its command line until it executes another program."""
    threads = [remaining(b"d", tid=30, key=key(tid=30, tgid=30))]
    made = profile(threads=threads, conditions={30: Condition("0-3", script="q.py", name=name)})
    assert [process.script for process in made.processes] == [script]


@pytest.mark.parametrize(
    ("mains", "title"),
    [
        ({}, "Off-CPU time"),
        ({7: b"demo"}, "Off-CPU time of demo"),
        ({7: b"demo", 8: b"demo", 9: b"sh"}, "Off-CPU time of 2 × demo, sh"),
        ({7: b"a", 8: b"b", 9: b"c", 10: b"d"}, "Off-CPU time of 4 processes"),
    ],
)
def test_title(mains: dict[int, bytes], title: str) -> None:
    threads = [remaining(comm, tid=pid, key=key(tid=pid, tgid=pid)) for pid, comm in mains.items()]
    assert profile(threads=threads).title == title


@pytest.mark.parametrize(("start", "cut", "creator"), [(150, 100, 8), (100, 100, 0), (150, 0, 8)])
def test_a_thread_is_created_in_one_interval_only(start: int, cut: int, creator: int) -> None:
    """Accounts of later intervals begin at the boundary."""
    made = profile(threads=[remaining(b"t", key=key(tid=9), start=start, since=start, cut=cut, creator=8)])
    assert [times.creator for times in made.threads] == [creator]
