"""Programs with one known trouble each are traced, and the first sentence has to name it. See README.md."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import environment, load
from diagnosis_cases import CASES, Case
from runner import SYSTEM_PYTHON, Workload
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize
from stallscope.tracers.base import privilege
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
from stallscope.tracers.measures.offcpu import OffCpu

Require = Callable[[bool, str], None]
HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "diagnoses"
CROWDED, ABOUT_CORES = 0.2, r"is waiting for one\.$|is waiting for a core, |outnumber the cores"
SCREEN = 80, 24
"""Columns and lines of the terminal that the summary of few processes fits into."""
FEW = 4
NOT_NICE = ("nice", "-n", str(-os.nice(0)))
"""A test run may be nice; what is traced has to get its share of the cores."""
CFLAGS = [
    *("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"),
    "-fno-optimize-sibling-calls",
]


@pytest.fixture(scope="module", autouse=True)
def live(require: Require) -> None:
    """Skips where BPF cannot run; with REQUIRE_LIVE=1 fails there."""
    require(privilege.allowed(), "tracing needs root")
    try:
        Probes(ProbeOptions(Scope(), collectors([OffCpu()])), lambda data: None).close()
    except StallscopeError as error:
        require(False, f"BPF cannot run here: {error}")
    BUILD.mkdir(parents=True, exist_ok=True)


def compiled(name: str) -> Path:
    """The program of this name, compiled where it is newer than what was."""
    source, made = HERE / "programs" / f"{name}.c", BUILD / name
    newest = max(path.stat().st_mtime for path in (source, source.with_name("diagnosis.h")))
    if not made.exists() or made.stat().st_mtime < newest:
        subprocess.run(["cc", *CFLAGS, source, "-o", made], check=True)
    return made


def command_of(case: Case) -> list[str]:
    name, *arguments = case.program.split()
    script = HERE / "programs" / f"{name}.py"
    if not script.exists():
        return [str(compiled(name)), *arguments]
    return [os.environ[case.needs] if case.needs else SYSTEM_PYTHON, str(script), *arguments]


@contextmanager
def running(case: Case, require: Require) -> Iterator[list[int]]:
    """The processes to trace, when the trouble has begun."""
    word, *arguments = case.program.split()
    if word == "workload":
        with Workload(*arguments, prefix=NOT_NICE) as workload:
            workload.release()
            yield list(workload.pids)
        return
    process = subprocess.Popen(
        [*NOT_NICE, *command_of(case)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=BUILD,
        start_new_session=True,
    )
    assert process.stdin
    assert process.stdout
    try:
        told = process.stdout.readline()
        cannot = told.startswith("cannot run here: ")
        require(not cannot, told.strip())
        yield [int(pid) for pid in told.split()]
    finally:
        if case.program.split()[0] + ".py" in {path.name for path in HERE.glob("programs/*.py")}:
            process.stdin.close()  # it cleans up
            process.wait(30)
        else:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()


def traced(case: Case, pids: list[int]) -> tuple[dict[str, Any], str]:
    """Output of --json, and the screen. Both stay in build/diagnoses for whoever wants to read them."""
    assert pids, f"{case.program} did not tell which processes to trace"
    profile = BUILD / f"{case.name}.pb.gz"
    command = Path(sys.executable).with_name(case.command)
    line = [
        *NOT_NICE,
        command,
        "-p",
        ",".join(map(str, pids)),
        "-d",
        str(case.seconds),
        "--json",
        "--force",
        "-o",
        profile,
    ]
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    screen = io.StringIO()
    render(summarize(load(profile)), screen, width=SCREEN[0], top=case.rows)
    (BUILD / f"{case.name}.txt").write_text(screen.getvalue())
    told: dict[str, Any] = json.loads(done.stdout)
    return told, screen.getvalue()


def telling_sentence(told: dict[str, Any]) -> str:
    """The first one. Where others keep the cores busy, that is the first trouble of all that is traced, and rightly
    told first; then it is the one behind it."""
    first, *others = told["answer"]
    times = told["times"]
    is_crowded = times["runnable_ns"] > CROWDED * times["wall_ns"]
    return others[0] if is_crowded and others and re.search(ABOUT_CORES, first) else first


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_first_sentence_names_the_trouble(case: Case, require: Require) -> None:
    if case.needs and not os.environ.get(case.needs):
        pytest.skip(f"slow: {case.needs} names a Python that has what it imports")
    with running(case, require) as pids:
        told, screen = traced(case, pids)
    sentence = telling_sentence(told)
    for pattern in case.first:
        assert re.search(pattern, sentence), f"{pattern!r} is not in the first sentence:\n{screen}"
    for pattern in case.anywhere:
        assert re.search(pattern, " ".join(screen.split())), f"{pattern!r} is not on the screen:\n{screen}"
    assert max(map(len, screen.splitlines())) <= SCREEN[0]
    # A fixed number of rows is not made to fit.
    if case.rows is None and sum(len(each["pids"]) for each in told["processes"]) <= FEW:
        assert len(screen.splitlines()) < SCREEN[1], f"more than a screen:\n{screen}"


def test_every_program_is_a_case() -> None:
    programs = {path.stem for path in (HERE / "programs").iterdir() if path.suffix in (".c", ".py")}
    assert programs == {case.program.split()[0] for case in CASES} - {"workload"}
    assert len({case.name for case in CASES}) == len(CASES)
