"""The VM lane: runs the checks of `in_guest.py` on the kernels of `kernels.py`, one boot a check.

    python tests/vm/lane.py                    # the short set
    python tests/vm/lane.py --all              # all of it; writes docs/kernels.md
    python tests/vm/lane.py --all --jobs 1     # the same, one guest at a time
    python tests/vm/lane.py --page             # writes it from the latest result of each check, and runs nothing
    python tests/vm/lane.py --kernel 6.1 --check truth

The tests call `run_together`. Results are kept in build/vm/results, each with its date and commit; the log of a case
that failed stays in build/vm/KERNEL.CHECK/.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import guest
import image
import plan
import report
import results
import standin_driver
import stap_modules
from archive import ArchiveError
from guest import Outcome
from headers import HeadersError, build_folder
from image import Image, ImageError
from kernels import KERNELS, Kernel, named
from results import Result

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "vm"
SOURCES = ("tests", "tests/live", "tests/workloads", "tests/bench", "tests/vm")
AT_ONCE = max(os.cpu_count() or 1, 1)
"""Guests that run side by side: each keeps one core busy."""
_PREPARING = threading.Lock()
"""Held while something is compiled or fetched: what two guests need is made once."""

DRIVERS = (*plan.DRIVER, *plan.DRIVER_BESIDE)
"""Checks that load the stand-in for NVIDIA's driver."""

_TROUBLE = re.compile(r"WARNING:|BUG:|Oops|Call Trace:|soft lockup|rcu.*stall|general protection|use-after-free")
"""Text that a clean kernel log has nothing of."""


def missing() -> str:
    """Text on what this machine lacks to boot guests; empty if nothing."""
    if os.geteuid() != 0:
        return "guests see the host's files as the user who starts them: it takes root"
    absent = [name for name in (guest.QEMU, str(image.BUSYBOX), "cpio") if not shutil.which(name)]
    return f"{', '.join(absent)} missing: scripts/system-packages.sh vm" if absent else ""


@lru_cache
def _image(kernel: Kernel) -> Image:
    return image.build(kernel)


def run_case(kernel_name: str, check: str, *, keeps_log: bool = False) -> Result:
    """Boots, runs, judges. ``keeps_log``: also if it passes. ImageError, ArchiveError: there is no kernel to boot."""
    if check in plan.NO_SYSTEMTAP:
        return _refused_on_the_host(named(kernel_name), check)
    return run_together(kernel_name, (check,), keeps_log=keeps_log)[0]


def run_together(kernel_name: str, checks: Sequence[str], *, keeps_log: bool = False) -> list[Result]:
    """Runs some checks one after the other in one guest, which boots and imports once; as `run_case` does one."""
    kernel = named(kernel_name)
    with _PREPARING:
        booted, *_ = [_prepared(kernel, check) for check in checks]
    keep = RESULTS / f"{kernel.name}.{'.'.join(checks)}"
    folders = ":".join(str(ROOT / folder) for folder in SOURCES)
    job = "".join(stap_modules.preparation(kernel, check) for check in checks)
    job += f"PYTHONPATH={folders} {ROOT}/.venv/bin/python {ROOT}/tests/vm/in_guest.py {' '.join(checks)}\n"
    outcome = guest.run(booted, job, folder=ROOT, keep=keep, timeout=600)
    found = []
    for check in checks:
        answer = _answer(keep, check)
        result = Result(
            kernel.name,
            booted.version,
            check,
            answer["figures"],
            answer["failure"] or _failure(outcome, answered=answer["ok"]),
            round(outcome.boot_seconds, 1),
            round(outcome.seconds if len(checks) == 1 else answer["seconds"], 1),
            outcome.tries,
            str((keep / "log").relative_to(ROOT)),
            results.today(),
            results.commit(),
        )
        results.save(result)
        found.append(result)
    if all(result.ok for result in found) and not keeps_log:
        shutil.rmtree(keep)
    return found


def _answer(keep: Path, check: str) -> dict[str, Any]:
    """Answer of a check in the guest; not ok if it did not come to one."""
    answer = {"ok": False, "figures": "", "failure": "", "seconds": 0.0}
    file = keep / f"{check}.json"
    return answer | (json.loads(file.read_text()) if file.exists() else {})


def _failure(outcome: Outcome, *, answered: bool) -> str:
    """Reason why a check has failed that says none itself, or empty. The guest's log is about all of its checks."""
    if outcome.status is None:
        return "the guest came to no end"
    if not answered:
        return f"status {outcome.status}"
    trouble = _TROUBLE.search(outcome.dmesg)
    return f"the kernel's log says {trouble[0]}" if trouble else ""


def _refused_on_the_host(kernel: Kernel, check: str) -> Result:
    """The engine stap has to say why it cannot compile a module for this kernel: a cause and a remedy."""
    with _PREPARING:
        version, build = _image(kernel).version, build_folder(kernel)
    began = time.monotonic()
    words = [str(ROOT / ".venv/bin/trace-wall"), "--engine", "stap", "--stap-compile-only"]
    words += [str(RESULTS / f"never-{kernel.name}.ko"), "-a", "--stap-build", str(build)]
    done = subprocess.run(words, capture_output=True, text=True)
    lines = done.stderr.strip().splitlines()
    clear = done.returncode == 1 and len(lines) == 2 and re.search("this kernel", lines[0])
    figures, failure = (lines[0].removeprefix("trace-wall: "), "") if clear else ("", f"not refused: {done.stderr}")
    seconds = round(time.monotonic() - began, 1)
    result = Result(
        kernel.name, version, check, figures, failure, 0.0, seconds, 1, "", results.today(), results.commit()
    )
    results.save(result)
    return result


def _prepared(kernel: Kernel, check: str) -> Image:
    """The kernel's image, and what the check takes into the guest."""
    booted = _image(kernel)
    if check == "wheel":
        _wheels()
    if check in stap_modules.OF_CHECKS:
        stap_modules.make(kernel, check)
    if check == "stap_plain":
        stap_modules.make_plain(kernel)
    if check in DRIVERS:
        standin_driver.build(kernel)
    return booted


@lru_cache
def _wheels() -> None:
    """The wheel and what it depends on, for guests, which have no network."""
    folder = ROOT / "build" / "vm-wheels"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["make", "-s", "wheel", f"DIST={folder}"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("stallscope-*.whl")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "-d", str(folder), str(wheel)]
    subprocess.run(pip, check=True)


def run_cases(cases: Iterable[tuple[str, str]], jobs: int = AT_ONCE, *, keeps_logs: bool = False) -> list[Result]:
    """Some guests at a time; prints a line for each that has ended."""

    def run(case: tuple[str, str]) -> Result:
        kernel, check = case
        try:
            result = run_case(kernel, check, keeps_log=keeps_logs)
        except (ImageError, ArchiveError, HeadersError) as error:
            result = Result(kernel, "", check, "", str(error), 0, 0, 0, "")
        verdict = "ok  " if result.ok else "FAIL"
        said = result.figures if result.ok else f"{result.failure} ({result.log})"
        print(f"{verdict} {kernel:9} {check:10} {result.seconds:5.1f} s  {said}", flush=True)
        return result

    RESULTS.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(run, cases))


def write_page() -> int:
    """docs/kernels.md from the latest result of every check; names those that were not run.

    What was never run in this checkout stays as the page has it, with its date and commit.
    """
    wanted = [(kernel.name, check) for kernel in KERNELS for check in plan.checks_of(kernel, short=False)]
    page = ROOT / "docs" / "kernels.md"
    kept = {(result.kernel, result.check): result for result in report.kept(page.read_text())}
    found = {case: results.latest(*case) or kept.get(case) for case in wanted}
    never = [" ".join(case) for case, result in found.items() if result is None]
    if never:
        print(f"not run: {', '.join(never)}")
    page.write_text(report.page([result for result in found.values() if result]))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the checks of the VM lane.")
    parser.add_argument("--all", action="store_true", help="every check on every kernel; writes docs/kernels.md")
    parser.add_argument("--kernel", action="append", choices=[kernel.name for kernel in KERNELS])
    parser.add_argument("--check", action="append", choices=plan.ALL)
    parser.add_argument("--jobs", type=int, default=AT_ONCE, help="guests at a time (default: one a core)")
    parser.add_argument("--keep-logs", action="store_true", help="also those of checks that pass")
    parser.add_argument("--page", action="store_true", help="only write docs/kernels.md, from the latest results")
    options = parser.parse_args()
    if options.page:
        return write_page()
    if lacks := missing():
        sys.exit(lacks)
    everything = options.all or options.kernel or options.check
    cases = [(kernel.name, check) for kernel in KERNELS for check in plan.checks_of(kernel, short=not everything)]
    cases = [
        case for case in cases if case[0] in (options.kernel or [case[0]]) and case[1] in (options.check or [case[1]])
    ]
    found = run_cases(cases, options.jobs, keeps_logs=options.keep_logs)
    if options.all:
        write_page()
    failed = sum(not result.ok for result in found)
    print(f"{len(found) - failed} passed, {failed} failed")
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
