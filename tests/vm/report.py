"""docs/kernels.md from the results of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import plan
from kernels import KERNELS, Kernel
from results import Result

TITLES = {
    "load": "every program in every shape",
    "doctor": "`trace-doctor`",
    "truth": "times and counts",
    "wall": "`trace-wall`: running and waiting",
    "wakeup": "`trace-wakeup`: who ends waits",
    "locks": "locks, their holders, and a critical path",
    "objects": "what waits are on, and who has the other end",
    "timeline": "timelines",
    "ioctl": "ioctl calls, counted and timed",
    "calls": "calls of functions, counted and timed",
    "func": "USDT probes and tracepoints, counted; functions of the kernel, counted and timed",
    "collectives": "collectives of ranks: who comes last, and who does not come",
    "quota": "a quota of half a core",
    "stacks": "stacks without frame pointers",
    "python": "Python functions",
    "everything": "`trace-offcpu -a`",
    "demo": "`make demo`",
    "storms": "forks, execs, SIGKILL",
    "command": "`trace-offcpu -- COMMAND`",
    "peer": "beside libbpf-tools' offcputime",
    "wheel": "the wheel",
    "ask": "questions about calls, compiled by bcc",
    "stap": "`--engine stap` beside libbpf",
    "nvidia": "a driver's lock, with its call path, and its ioctls",
    "nvidia_holder": "who has a driver's lock, asleep or on a core",
    "nvidia_stap": "a driver's lock: `--engine stap` beside libbpf",
    "stap_ioctl": "`trace-ioctl --engine stap` beside libbpf",
    "stap_wakeup": "`trace-wakeup --engine stap` beside libbpf",
    "stap_cuda": "`trace-cuda --engine stap` beside libbpf",
    "stap_clock": "`--engine stap`",
    "no_stap": "`--engine stap` with Debian 12's compiler: refused",
    "stap_storm": "`--engine stap`: a storm of switches",
    "stap_deep": "`--engine stap`: deep stacks",
    "stap_killed": "`--engine stap`: SIGKILL",
    "stap_waits": "`--engine stap`: waits go on",
    "stap_plain": "the scripts of stap/ by themselves",
    "refused": "refused",
    "no_bpf": "`--engine libbpf` and `--engine bcc` without BPF",
    "bcc": "`--engine auto` where libbpf cannot be used, or finds no type information: bcc",
    "auto_stap": "`--engine auto` without BPF: stap",
    "auto_perf": "`--engine auto` without BPF, where no module can be loaded: perf",
    "perf": "`--engine perf`",
    "eu_stack": "`--engine eu-stack`",
}

_FAILED = "**failed**: "
_KERNEL = re.compile(r"## (\S+): .*")
_FIGURES = re.compile(r"(.*) \((\d{4}-\d\d-\d\d), (\w+\+?)\)")

_HEAD = """\
# Kernels

What was run on which kernel, in QEMU's emulation, with which result: the latest of each check, with its date and
commit, written by `make vm-test-all` or `lane.py --page`. The checks and their bounds are in
[tests/vm/](../tests/vm/README.md). Where one passed, the kernel's log stayed clean, too.

A cell that is empty was not run. A kernel that is not here was not run either: what the probes can use is found out by
trying, so newer ones and those between are likely to work.

The first table has the engines ([engines.md](engines.md)): `refused` means that the engine has to refuse this kernel,
and did. The second one has the checks.

"""


def page(results: Sequence[Result]) -> str:
    """The page in Markdown: a table of verdicts, then the figures."""
    by_case = {(result.kernel, result.check): result for result in results}
    kernels = [kernel for kernel in KERNELS if any(name == kernel.name for name, _ in by_case)]
    checks = [check for check in TITLES if any(name == check for _, name in by_case)]
    lines = _of_engines(kernels, by_case)
    lines += ["| | " + " | ".join(kernel.name for kernel in kernels) + " |", "|---" * (len(kernels) + 1) + "|"]
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
        lines += [f"- {TITLES[result.check]}: {_said(result)} ({result.date}, {result.commit})" for result in mine]
    return _HEAD + "\n".join(lines) + "\n"


def kept(page: str) -> list[Result]:
    """The results in a page, for those that were not run in this checkout: all but times of boots and logs."""
    found: list[Result] = []
    seconds = _seconds(page)
    kernel = version = ""
    for line in page.splitlines():
        if match := _KERNEL.fullmatch(line):
            kernel, version = match[1], ""
        elif kernel and not version and line:
            version = line.partition(";")[0].rstrip(".")
        # One title may be another one's beginning.
        checks = [check for check, title in TITLES.items() if line.startswith(f"- {title}: ")]
        check = max(checks, key=lambda check: len(TITLES[check]), default="")
        if check and (match := _FIGURES.fullmatch(line.removeprefix(f"- {TITLES[check]}: "))):
            figures, failed = match[1], match[1].startswith(_FAILED)
            what = ("", figures.removeprefix(_FAILED)) if failed else (figures, "")
            time = seconds.get((kernel, check), 0.0)
            found.append(Result(kernel, version, check, *what, 0.0, time, 1, "", match[2], match[3]))
    return found


def _seconds(page: str) -> dict[tuple[str, str], float]:
    """Seconds by kernel and check, of the second table."""
    checks = {title: check for check, title in TITLES.items()}
    found: dict[tuple[str, str], float] = {}
    names: list[str] = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| | "):
            names = cells[1:]
        elif names and cells[0] in checks:
            for name, cell in zip(names, cells[1:], strict=True):
                if match := re.fullmatch(r"ok \((\d+) s\)", cell):
                    found[name, checks[cells[0]]] = float(match[1])
    return found


def _of_engines(kernels: Sequence[Kernel], by_case: Mapping[tuple[str, str], Result]) -> list[str]:
    """A table: a row for each kernel, a column for each engine."""
    lines = ["| Kernel | " + " | ".join(plan.ENGINES) + " |", "|---" * (len(plan.ENGINES) + 1) + "|"]
    for kernel in kernels:
        mine = {check: result for (name, check), result in by_case.items() if name == kernel.name}
        lines.append(f"| {kernel.name} | " + " | ".join(_of_engine(engine, mine) for engine in plan.ENGINES) + " |")
    return [*lines, ""]


def _of_engine(engine: str, mine: Mapping[str, Result]) -> str:
    """Text of the checks of one kernel on an engine."""
    checks = [mine[check] for check in plan.ENGINES[engine] if check in mine]
    refusals = [result for check, result in mine.items() if engine in plan.REFUSALS.get(check, ())]
    if failed := [result.check for result in (*checks, *refusals) if not result.ok]:
        return f"**failed**: {len(failed)} of {len(checks) + len(refusals)} checks"
    if checks:
        return f"ok ({len(checks)} {'checks' if len(checks) > 1 else 'check'})"
    return "refused" if refusals else ""


def _said(result: Result) -> str:
    """Figures that a check measured, or the beginning of why it failed, without a folder of the machine."""
    if not result.failure:
        return result.figures
    why = result.failure.replace(f"{Path(__file__).resolve().parents[2]}/", "")
    return f"{_FAILED}{why[:100]}"


def _verdict(result: Result | None) -> str:
    if result is None:
        return ""
    return f"ok ({result.seconds:.0f} s)" if result.ok else "**failed**"
