"""docs/kernels.md from the results of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernels import KERNELS

if TYPE_CHECKING:
    from lane import Result

TITLES = {
    "load": "every program in every shape",
    "doctor": "`trace-doctor`",
    "truth": "times and counts",
    "wall": "`trace-wall`: running and waiting",
    "wakeup": "`trace-wakeup`: who ends waits",
    "locks": "locks, their holders, and a critical path",
    "timeline": "timelines",
    "ioctl": "ioctl calls, counted and timed",
    "calls": "calls of functions, counted and timed",
    "quota": "a quota of half a core",
    "stacks": "stacks without frame pointers",
    "python": "Python functions",
    "everything": "`trace-offcpu -a`",
    "demo": "`make demo`",
    "storms": "forks, execs, SIGKILL",
    "command": "`trace-offcpu -- COMMAND`",
    "peer": "beside libbpf-tools' offcputime",
    "wheel": "the wheel",
    "refused": "refused",
}

_HEAD = """\
# Kernels

What was run on which kernel, in QEMU's emulation, with which result: the latest of each check, written by `make
vm-test-all` or `lane.py --page`. The checks and their bounds are in [tests/vm/in_guest.py](../tests/vm/in_guest.py).
Where one passed, the kernel's log stayed clean, too.

A cell that is empty was not run. A kernel that is not here was not run either: what the probes can use is found out by
trying, so newer ones and those between are likely to work.

"""


def page(results: Sequence[Result]) -> str:
    """The page in Markdown: a table of verdicts, then the figures."""
    by_case = {(result.kernel, result.check): result for result in results}
    kernels = [kernel for kernel in KERNELS if any(name == kernel.name for name, _ in by_case)]
    checks = [check for check in TITLES if any(name == check for _, name in by_case)]
    lines = ["| | " + " | ".join(kernel.name for kernel in kernels) + " |", "|---" * (len(kernels) + 1) + "|"]
    for check in checks:
        cells = [_verdict(by_case.get((kernel.name, check))) for kernel in kernels]
        lines.append(f"| {TITLES[check]} | " + " | ".join(cells) + " |")
    for kernel in kernels:
        mine = [by_case[kernel.name, check] for check in checks if (kernel.name, check) in by_case]
        version = next((result.version for result in mine if result.version), "not booted")
        boots = sorted(result.boot_seconds for result in mine if result.boot_seconds)
        lines += ["", f"## {kernel.name}: {kernel.stands_for}", ""]
        boot = f"; a job starts after {boots[0]:.1f} to {boots[-1]:.1f} s" if boots else ""
        lines += [f"{version}{boot}.", ""]
        lines += [f"- {TITLES[result.check]}: {_said(result)}" for result in mine]
    return _HEAD + "\n".join(lines) + "\n"


def _said(result: Result) -> str:
    """What it measured, or the beginning of why it failed, without a folder of the machine."""
    if not result.failure:
        return result.figures
    why = result.failure.replace(f"{Path(__file__).resolve().parents[2]}/", "")
    return f"**failed**: {why[:100]}"


def _verdict(result: Result | None) -> str:
    if result is None:
        return ""
    return f"ok ({result.seconds:.0f} s)" if result.ok else "**failed**"
