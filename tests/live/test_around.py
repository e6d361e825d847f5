"""Python functions around calls on the timeline, against a program that says when it was in them."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import perfetto_rules
import pytest
from pythons import interpreters
from runner import Workload
from stallscope.converters.model.around import CATEGORY, drawn_calls
from stallscope.converters.model.scheduling import NO_STACK, Threads
from stallscope.converters.writers import output as writers
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.measures.protocol import Measure
from stallscope.tracers.measures.span_options import SpanOptions
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.probe_targets.targets import Target, Targets
from tracing import Traced, collecting, run_traced

pytestmark = pytest.mark.usefixtures("live")

MANY = SpanOptions(1 << 16)
ROUNDS = 15
"""Number of rounds of the workload."""
FIRST = next(iter(interpreters().values()))


def usleep(python: Sequence[str] = FIRST) -> Targets:
    """Target in the C library of this interpreter."""
    ask = [*python, "-c", "import ctypes; ctypes.CDLL('libc.so.6'); print(open('/proc/self/maps').read())"]
    maps = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split()
    (libc,) = {part for part in maps if part.endswith("/libc.so.6")}
    return Targets.of([Target.parse(f"{libc}:usleep")])


def drawn(traced: Traced) -> list[tuple[str, str, int, int]]:
    """Name, category, begin and end (CLOCK_MONOTONIC) of what is drawn, sorted by begin, outer ones first."""
    scheduling = traced.profile.scheduling
    assert scheduling is not None
    rows, names = drawn_calls(scheduling, Threads(scheduling.threads))
    began = scheduling.monotonic
    found = sorted((begin + began, level, end + began, *names[name]) for begin, end, _, name, level in rows.tolist())
    return [(name, category, begin, end) for begin, _, end, name, category in found]


def check_functions(traced: Traced, *functions: str) -> None:
    """Checks that each of these functions has a slice for each time that the program was in it, and within that
    time."""
    found = drawn(traced)
    for function in functions:
        expected = [(begin, end) for name, begin, end in traced.truth["spans"] if name == function]
        slices = [(begin, end) for name, category, begin, end in found if (name, category) == (function, CATEGORY)]
        assert len(slices) == len(expected) == ROUNDS, (function, found)
        for (begin, end), (entered, left) in zip(slices, expected, strict=True):
            assert entered < begin < end < left
    outer = [name for name, category, _, _ in found if category == CATEGORY][:2]
    assert outer == ["<module>", "main"]
    assert Counter(name for name, category, _, _ in found if category == CATEGORY)["main"] == 1


def run(*measures: Measure, python: Sequence[str] = FIRST, **options: Any) -> Traced:
    with Workload("python_calls", ROUNDS, linger=True, python=python) as workload:
        scope = Scope(tgids={workload.pid})
        return run_traced(
            workload, ProbeOptions(scope, collecting([*measures, Timeline()]), **{"python": True, **options}), None
        )


@pytest.mark.parametrize("version", list(interpreters()))
def test_functions_are_around_their_calls(version: str, tmp_path: Path) -> None:
    python = interpreters()[version]
    traced = run(Calls(usleep(python), spans=MANY), python=python)
    check_functions(traced, "load", "train", "step")
    writers.write_all(traced.profile, [str(tmp_path / "x.pftrace")])
    slices = perfetto_rules.read((tmp_path / "x.pftrace").read_bytes()).slices
    calls = [each for each in slices if each.name == "usleep"]
    assert len(calls) == 4 * ROUNDS
    names = Counter(
        tuple(
            outer.name
            for outer in slices
            if outer.name in {"main", "load", "train", "step"}
            and outer.begin <= each.begin
            and (outer.end or each.end or 0) >= (each.end or 0)
        )
        for each in calls
    )
    expected = {("main", "load"): 2 * ROUNDS, ("main", "train"): ROUNDS, ("main", "train", "step"): ROUNDS}
    assert names == expected


def test_of_ioctls() -> None:
    """Nothing tells that `load` returns between two of them."""
    made = drawn(run(Ioctl(spans=MANY)))
    ioctls = [(begin, end) for name, category, begin, end in made if category == "ioctl"]
    assert len(ioctls) == ROUNDS
    whole = ioctls[0][0], ioctls[-1][1]
    around = [(name, begin, end) for name, category, begin, end in made if category == CATEGORY]
    assert around == [(name, *whole) for name in ("<module>", "main", "load")]


def test_of_ioctls_and_of_functions_together() -> None:
    """The ioctl is the first thing that `load` does."""
    ioctls = Ioctl(alone=False, spans=MANY)
    traced = run(ioctls, Calls(usleep(), spans=MANY))
    check_functions(traced, "load", "train", "step")
    made = drawn(traced)
    for name, category, begin, _ in made:
        if (name, category) == ("load", CATEGORY):
            assert ("TCGETS /dev/null", begin) in {(each[0], each[2]) for each in made}


def test_without_stacks_of_programs_there_are_none() -> None:
    traced = run(Calls(usleep(), spans=MANY), user_stacks=False)
    scheduling = traced.profile.scheduling
    assert scheduling is not None
    assert len(scheduling.calls) == 4 * ROUNDS
    assert (scheduling.calls["stack"] == NO_STACK).all()
    assert {category for _, category, _, _ in drawn(traced)} == {"call"}
