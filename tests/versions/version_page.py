"""docs/python-versions.md from the results of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

TITLES = {
    "test_python.py::test_functions": "stacks are what the interpreter says of itself: names, lines, time",
    "test_python.py::test_same_functions_as_py_spy": "functions and lines equal those of `py-spy dump --native`",
    "test_python.py::test_interpreter_that_starts_forks_and_ends_during_the_trace": "start, fork and exec meanwhile",
    "test_python.py::test_functions_that_are_made_and_freed_have_their_own_names": "functions that are made and freed",
    "test_python_storm.py::test_no_wrong_name": "no wrong name while processes are killed, forked and executed anew",
    "test_python_truth.py::test_time_of_functions": "the time of functions in six threads equals their own clocks",
    "test_gil.py::test_holder": "which thread has the interpreter lock",
    "test_gil.py::test_functions_of_those_that_have_it": "in which function that thread is meanwhile",
    "test_gil.py::test_functions_that_change_meanwhile": "the same while its functions change all the time",
    "test_python_steps.py::test_each_call_is_a_step": "`--step`: each call is a step, and its time",
    "test_python_steps.py::test_threads_are_told_apart": "`--step`: steps of several threads",
    "test_python_steps.py::test_a_function_that_is_defined_again": "`--step`: a function that is defined again",
    "test_python_steps.py::test_as_a_user_sees_them": "`--step`: a program that is started for the trace",
    "test_around.py::test_functions_are_around_their_calls": "Python functions around calls on the timeline",
    "test_sub_interpreters.py::test_one_that_is_not_used": "a sub-interpreter that is not in use",
    "test_sub_interpreters.py::test_one_in_the_other": "a sub-interpreter inside the other",
    "test_sub_interpreters.py::test_one_that_another_thread_has_made": "a sub-interpreter that another thread has made",
    "test_embedded.py::test_functions_of_a_program_with_an_interpreter": "an interpreter in a program of another name",
}
"""Text on what is tested, by the test's file in tests/live and its name."""

_HEAD = """\
# Versions of Python

The tests in [tests/live](../tests/live) that trace each interpreter that the machine has, and what they gave for each
version. `make python-versions` runs them and writes this page; nothing in it is written by hand. It finds interpreters
in usual places, takes others from `STALLSCOPE_PYTHONS`, and fetches 3.14 from Debian's sid if there is none. What a
test asks for is in its file, which the last table names.

A cell that is empty was not run. A cell with a number has the test in so many variants.
"""


@dataclass(slots=True)
class Interpreter:
    version: str
    """``3.11.2``."""
    compiler: str
    """``GCC 12.2.0``."""
    is_shared: bool
    """Whether it is in a library (libpython) that the program loads, and not in the program."""
    source: str
    """Origin in words."""


@dataclass(slots=True)
class Result:
    test: str
    """A key of `TITLES`."""
    version: str
    outcome: str
    """``passed``, ``failed`` or ``skipped``."""
    failure: str = ""
    """The first line of why, if it is not passed."""
    seconds: float = 0


@dataclass(slots=True)
class Run:
    date: str
    commit: str
    kernel: str
    cores: int
    load: tuple[float, float]
    """Load average (1 min) when it began and when it ended."""
    py_spy: str
    interpreters: list[Interpreter] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    @classmethod
    def of(cls, data: dict[str, object]) -> Run:
        """Makes the run from the dictionary that `dataclasses.asdict` makes of it."""
        run = cls(**data)  # type: ignore[arg-type]
        run.interpreters = [Interpreter(**each) for each in data["interpreters"]]  # type: ignore[attr-defined]
        run.results = [Result(**each) for each in data["results"]]  # type: ignore[attr-defined]
        return run


def page(run: Run) -> str:
    """The page in Markdown: which run, a table of verdicts, what failed, and the interpreters."""
    versions = [interpreter.version for interpreter in run.interpreters]
    lines = [_HEAD, _which(run), "", f"| | {' | '.join(versions)} |", "|---" * (len(versions) + 1) + "|"]
    for test, title in TITLES.items():
        cells = (_cell([r for r in run.results if (r.test, r.version) == (test, each)]) for each in versions)
        lines.append(f"| {title} | {' | '.join(cells)} |")
    failed = [result for result in run.results if result.outcome != "passed"]
    if failed:
        lines += ["", "## What did not pass", ""]
        lines += [f"- {TITLES[r.test]}, {r.version}: **{_word(r.outcome)}**: {_plain(r.failure)}" for r in failed]
    lines += [
        "",
        "## Interpreters",
        "",
        "| Version | From | Compiler | Interpreter |",
        "|---|---|---|---|",
    ]
    for each in run.interpreters:
        library = "libpython" if each.is_shared else "in the program"
        lines.append(f"| {each.version} | {each.source} | {each.compiler} | {library} |")
    lines += ["", "## Tests", "", "| What | Test |", "|---|---|"]
    lines += [f"| {title} | {_linked(test)} |" for test, title in TITLES.items()]
    return "\n".join(lines) + "\n"


def _which(run: Run) -> str:
    seconds = sum(result.seconds for result in run.results)
    before, after = run.load
    return (
        f"Run on {run.date} at commit {run.commit}, with Linux {run.kernel} and {run.cores} cores, in"
        f" {seconds / 60:.0f} minutes\n(load average {before:.1f} when it began, {after:.1f} when it ended)."
        f" py-spy is {run.py_spy}."
    )


def _linked(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[{file}](../tests/live/{file}) `{name}`"


def _cell(results: Sequence[Result]) -> str:
    """``passed``, ``5 passed``, ``**1 of 5 failed**``; nothing if there was no run."""
    outcomes = [result.outcome for result in results]
    bad = sorted({outcome for outcome in outcomes if outcome != "passed"})
    number = len(outcomes)
    if bad:
        counts = (f"{outcomes.count(each)} of {number} {_word(each)}" for each in bad)
        return f"**{', '.join(counts)}**" if number > 1 else f"**{_word(bad[0])}**"
    return f"{number} passed" if number > 1 else "passed" if number else ""


def _word(outcome: str) -> str:
    return "not run" if outcome == "skipped" else outcome


def _plain(text: str) -> str:
    """A line of a failure, which a page can show."""
    short = text if len(text) <= 120 else f"{text[:119]}…"
    return f"`{short.replace('`', chr(39))}`"
