"""The checks of loading, in a guest: the programs, `trace-doctor`, the wheel, and a kernel that is too old."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import verifier
from guest_traces import ROOT, TRACE, run
from runner import Workload
from stallscope.tracers.kernel.shapes import BTF_SHAPES, RAW_SHAPES, kernel_helpers
from stallscope.tracers.measures.commands import COMMANDS


def load() -> str:
    """Every program in every shape for which the kernel has the helpers, with margins."""
    helpers = kernel_helpers()
    wanted = [shape for shape in BTF_SHAPES if helpers.issuperset(shape.needs)]
    assert wanted, "no shape is for this kernel"
    lines = []
    for shape in (*wanted, *RAW_SHAPES):
        for program in verifier.programs(shape):
            print(f"{shape.name}: {program}")
            lines.append(program)
            assert program.instructions <= 0.9 * verifier.MOST_INSTRUCTIONS, program
            assert program.stack <= 0.9 * verifier.MOST_STACK, program
    worst = max(lines, key=lambda program: program.stack)
    longest = max(lines, key=lambda program: program.instructions)
    return (
        f"{len(wanted)} of {len(BTF_SHAPES)} shapes and the raw one; at most {worst.stack} of 512 bytes of stack "
        f"({worst.name}), {longest.instructions:,} instructions verified ({longest.name})"
    )


def doctor() -> str:
    said = run(str(ROOT / ".venv/bin/trace-doctor"), timeout=300)
    (programs,) = re.findall(r"ok +BPF programs: loaded and attached in (\d+) ms \((.*)\)", said)
    *others, last = COMMANDS
    assert f"{', '.join(others)} and {last} can run here" in said.splitlines()
    return f"{programs[1]}; attached after {programs[0]} ms"


def wheel() -> str:
    """The wheel in an environment of its own, in memory."""
    wheels = ROOT / "build" / "vm-wheels"
    (ours,) = wheels.glob("stallscope-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", "/run/wheel", timeout=300)
    pip = [sys.executable, "-m", "pip", "--python", "/run/wheel/bin/python", "install", "--quiet", "--no-compile"]
    pip += ["--no-index", "--find-links", str(wheels), str(ours)]
    run(*pip, timeout=300)
    command = "/run/wheel/bin/trace-offcpu"
    with Workload("sleeps", 1000) as workload:
        workload.release()
        run(command, "-p", str(workload.pid), "-d", "2", "-o", "/run/wheel.folded")
    assert "sleep_10ms" in Path("/run/wheel.folded").read_text()
    return run(command, "--version").strip()


def refused() -> str:
    """A kernel that is too old is refused in one line, which names the kernel that is needed and another way."""
    done = subprocess.run([TRACE, "-a", "-d", "1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    cause, remedy = done.stderr.strip().splitlines()
    pattern = (
        r"trace-offcpu: this kernel \(\S+\) is too old for the probes: it lacks bpf_\w+\(\); they need \S+ \S+ or newer"
    )
    assert re.fullmatch(pattern, cause), cause
    assert "perf sched record" in remedy
    doctor = subprocess.run([str(ROOT / ".venv/bin/trace-doctor")], capture_output=True, text=True, timeout=60)
    assert doctor.returncode == 1
    assert cause.split(": ", 1)[1] in doctor.stdout
    return cause.split(": ", 1)[1]
