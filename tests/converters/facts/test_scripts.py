from __future__ import annotations

import io
from dataclasses import replace

from stallscope.converters.facts.scripts import named_locks, with_scripts
from stallscope.converters.model import Profile
from stallscope.converters.model.locks import LockThread, LockTimes
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.summary.figures import Process
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize
from summary_profiles import SECOND, TOPK, Tracee, empty


def interpreters(*scripts: str, name: str = "python3") -> Profile:
    profile = empty()
    for pid, script in enumerate(scripts, 11):
        Tracee(profile, pid, name, pid, name).run(SECOND).wait(TOPK, "uninterruptible", 9 * SECOND)
        profile.processes.append(ProcessTimes(pid, name, script=script))
    return profile


def names(profile: Profile) -> list[str]:
    return [process.name for process in summarize(profile).processes]


def test_interpreters_are_told_apart_by_what_they_run() -> None:
    profile = interpreters("train.py", "train.py", "-m serve", "")
    summary = summarize(profile)
    assert summary.processes == (
        Process("python3 train.py", (11, 12), command="python3"),
        Process("python3 -m serve", (13,), command="python3"),
        Process("python3", (14,)),
    )
    (wait,) = summary.waits
    assert [(who.process, who.processes) for who in wait.who] == [
        ("python3 train.py", 2),
        ("python3 -m serve", 1),
        ("python3", 1),
    ]
    assert {each.process for each in summary.contention} == {"python3 train.py", "python3 -m serve", "python3"}
    assert profile.threads[0].process == "python3"


def test_a_single_one_is_called_by_its_script_too() -> None:
    assert names(interpreters("train.py")) == ["python3 train.py"]
    assert names(interpreters("")) == ["python3"]


def test_a_script_that_gave_its_process_its_name_is_not_told_twice() -> None:
    assert names(interpreters("a-very-long-script.py", "x", name="a-very-long-scr")) == [
        "a-very-long-scr",
        "a-very-long-scr x",
    ]


def test_the_next_command_knows_the_name() -> None:
    step = summarize(interpreters("train.py", "train.py", "-c", "x.py", "y.py")).next_step
    assert step is not None
    assert "-n '^python3$'" in step.command


def test_hostile_scripts_are_printed_escaped() -> None:
    text = io.StringIO()
    render(summarize(interpreters("x\x1b[2J.py", "\udcff\u202e")), text, width=200)
    assert not {"\x1b", "\udcff", "\u202e"} & set(text.getvalue())
    assert "x\\x1b[2J.py" in text.getvalue()


def test_nothing_changes_without_scripts() -> None:
    profile = interpreters("", "")
    assert with_scripts(profile) == (profile, {})


def test_who_waits_for_locks_and_has_them_has_the_name_with_the_script() -> None:
    waiter, holder = LockThread("python3", "python3", 7, 7), LockThread("python3", "saver", 9, 10)
    of = LockTimes("m", "mutex", "shared", waiters=[waiter], holders=[holder])
    (found,) = named_locks([of], {7: "python3 load.py", 9: "python3 import.py", 0: "x"})
    assert (found.waiters[0].process, found.waiters[0].thread) == ("python3 load.py", "python3 load.py")
    assert (found.holders[0].process, found.holders[0].thread) == ("python3 import.py", "saver")
    assert found.process == ""
    of_one = replace(of, process="python3", pid=9)
    (found,) = named_locks([of_one], {7: "python3 load.py", 9: "python3 import.py"})
    assert (found.process, found.holders[0].process) == ("python3 import.py", "python3")  # told once
    (other,) = named_locks([of], {7: "python3.11", 9: "gzip x"})
    assert (other.waiters, other.holders) == ([waiter], [holder])
