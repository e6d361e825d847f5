"""Interpreters that are killed, forked and executed anew, with functions that change while they are read."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from commands import TRACE_OFFCPU
from pythons import interpreters
from stallscope.converters import pprof

SCRIPT = Path(__file__).resolve().parents[1] / "workloads" / "python_storm.py"
OWN = re.compile(r"storm_(recursion|grows|makes|forks|made_\d{1,3})|<module>|<listcomp>")
CALLED = {
    "storm_recursion": {"storm_recursion", "storm_grows", "storm_forks"},
    "storm_grows": {"run", "Thread.run", "<module>"},
    "storm_makes": {"run", "Thread.run"},
    "storm_forks": {"<module>"},
}
"""Callers of each function."""


@pytest.mark.parametrize("version", list(interpreters()))
def test_no_wrong_name(live: None, tmp_path: Path, version: str) -> None:
    out = tmp_path / "out.pb.gz"
    trace = [TRACE_OFFCPU, "-o", out, "--", *interpreters()[version], SCRIPT, "4"]
    subprocess.run(trace, check=True, capture_output=True, timeout=120)
    with out.open("rb") as file:
        profile = pprof.load(file)
    seen: Counter[str] = Counter()
    for sample in profile.samples:
        functions = [frame for frame in sample.stack if frame.kind == "python"]
        for caller, frame in zip([None, *functions], functions, strict=False):
            if Path(frame.file).name == SCRIPT.name or frame.name.startswith("storm_"):
                assert OWN.fullmatch(frame.name), frame
            seen[frame.name] += sample.values[0]
            if caller and frame.name in CALLED and caller.name[:1] != "[":
                assert caller.name in CALLED[frame.name], (caller, frame)
    assert "storm_recursion" in seen, seen
    missing = {"storm_grows", "storm_makes", "storm_forks"} - seen.keys()
    assert not missing or profile.lost["Python functions without a name"], (missing, seen)
    unreadable = sum(frame.name == "[Python not readable]" for s in profile.samples for frame in s.stack)
    assert not unreadable or profile.lost["Python stacks that could not be read"]
