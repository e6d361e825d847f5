"""The checks of stacks, in a guest: without frame pointers, of Python, of the whole host, and of a command."""

from __future__ import annotations

from pathlib import Path

from guest_traces import ROOT, WHOLE, profile_by, run, told_share, traced, whole_share
from runner import FOLDER, Workload

WHOLE_AGAIN = 0.75
"""Part of the time in whole stacks, at least, of 8 s of the whole host after `trace-doctor --prepare`. Reading tables
takes a second or two here, and `-a` does not wait for that."""
WHOLE_FROM_START = 0.75
"""Part of the time in whole stacks, at least, of a command of some seconds: it takes a moment to learn what the loader
has mapped, and a moment is ten times as long here. tests/live/test_cold.py demands more."""
LONG_MS = 300_000
"""Time in ms that a workload runs that is ended by us: a tracer may take long to begin on a busy host."""


def stacks() -> str:
    """Programs without frame pointers, on an empty cache, with threads that sleep from the start."""
    shares = {}
    for name, arguments in (("python_threads", (1500,)), ("cpp_frames", (1500,)), ("call_paths", ("near", 2))):
        found = traced(name, *arguments)
        shares[name] = whole_share(found.profile)
        print(f"{name}: {shares[name]:.2%} in whole stacks")
    assert min(shares.values()) >= WHOLE, shares
    return ", ".join(f"{name} {share:.2%}" for name, share in shares.items()) + " in whole stacks"


def python() -> str:
    """The Python functions of threads that wait."""
    found = traced("python_frames", 3000, python=True)
    by_name = {wait["function"]: wait["tid"] for wait in found.truth["waits"]}
    for name, truth in found.truth["stacks"].items():
        expected = [(qualified, line) for qualified, _, line in truth]
        (still,) = [s for s in found.profile.samples if s.label("tid") == by_name[name] and s.label("open")]
        functions = [(frame.name, frame.line) for frame in still.stack if frame.kind == "python"]
        assert functions == expected, (name, functions, expected)
    waits = sum(wait["calls"] for wait in found.truth["waits"])
    failed = found.counters["python_stacks_failed"]
    assert failed <= waits / 50, (failed, waits)
    version = ".".join(map(str, found.truth["version"]))
    return f"{version}, {len(by_name)} threads, {waits:,} waits, {failed} stacks not readable"


def everything() -> str:
    """The whole host."""
    shares = []
    for seconds in ("3", "8"):
        with Workload("python_threads", LONG_MS, linger=True) as workload:
            if shares:
                run(str(ROOT / ".venv/bin/trace-doctor"), "--prepare", timeout=300)
            workload.release()
            profile = profile_by("-a", "-d", seconds, timeout=300)
            found = {sample.label("pid") for sample in profile.samples}
            assert workload.pid in found, (Path(f"/proc/{workload.pid}/status").read_text(), found)
        shares.append(told_share(profile))
        assert profile.lost["intervals"] == profile.lost["threads"] == 0
    first, again = shares
    assert again >= WHOLE_AGAIN, (first, again)
    return f"{len(found)} processes, {first:.1%} in whole stacks on an empty cache, {again:.1%} when it was prepared"


def command() -> str:
    """A command from its first instruction, on an empty cache."""
    script = "import time, threading\nfor _ in range(30): time.sleep(0.05)"
    shares = {}
    for name, *line in (("python3", "/usr/bin/python3", "-c", script), ("sleeps", str(FOLDER / "sleeps"), "20")):
        shares[name] = told_share(profile_by("--", *line, timeout=300))
    assert min(shares.values()) >= WHOLE_FROM_START, shares
    return ", ".join(f"{name} {share:.2%}" for name, share in shares.items()) + " in whole stacks on an empty cache"
