"""The VM lane: runs the checks of `in_guest.py` on the kernels of `kernels.py`, one boot a check.

    python tests/vm/lane.py                    # the short set
    python tests/vm/lane.py --all              # all of it; writes docs/kernels.md
    python tests/vm/lane.py --page             # writes it from the latest result of each check, and runs nothing
    python tests/vm/lane.py --kernel 6.1 --check truth

`run_case` is what the tests call. The log of a case that failed stays in build/vm/KERNEL.CHECK/.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import guest
import image
import report
from archive import ArchiveError
from image import Image, ImageError
from kernels import KERNELS, Kernel, named

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "vm"
SOURCES = ("tests", "tests/live", "tests/workloads", "tests/bench", "tests/vm")
AT_ONCE = max(os.cpu_count() or 1, 1)
"""Guests that run side by side: each keeps one core busy."""

SHORT = ("load", "doctor", "truth", "stacks")
LONG = (
    *("wall", "ioctl", "calls", "wakeup", "locks", "timeline", "quota", "python", "everything"),
    *("demo", "storms", "command", "peer", "wheel"),
)
REFUSED = ("refused",)
"""What there is to check where the probes do not run."""
TOO_OLD = ("5.10",)
BRIEF = ("everything", "demo")
SAME_AS_ANOTHER = ("6.1-cloud",)
"""Another build of a kernel that is there in full."""

_TROUBLE = re.compile(r"WARNING:|BUG:|Oops|Call Trace:|soft lockup|rcu.*stall|general protection|use-after-free")
"""What a clean kernel log has nothing of."""


@dataclass(frozen=True)
class Result:
    """What came out of one check on one kernel. ``figures``: what it measured; ``failure``: why it failed, or empty."""

    kernel: str
    version: str
    check: str
    figures: str
    failure: str
    boot_seconds: float
    seconds: float
    tries: int
    log: str

    @property
    def ok(self) -> bool:
        return not self.failure


def checks_of(kernel: Kernel, *, short: bool) -> tuple[str, ...]:
    """The names of the checks that a kernel has to pass."""
    if kernel.name in TOO_OLD:
        return () if short else REFUSED
    if short:
        return SHORT if kernel.short else ()
    return SHORT + (BRIEF if kernel.name in SAME_AS_ANOTHER else LONG)


def short_set() -> list[tuple[str, str]]:
    return [(kernel.name, check) for kernel in KERNELS for check in checks_of(kernel, short=True)]


def missing() -> str:
    """What this machine lacks to boot guests; empty if nothing."""
    if os.geteuid() != 0:
        return "guests see the host's files as the user who starts them: it takes root"
    absent = [name for name in (guest.QEMU, str(image.BUSYBOX), "cpio") if not shutil.which(name)]
    return f"{', '.join(absent)} missing: scripts/system-packages.sh vm" if absent else ""


@lru_cache
def _image(kernel: Kernel) -> Image:
    return image.build(kernel)


def run_case(kernel_name: str, check: str) -> Result:
    """Boots, runs, judges. ImageError, ArchiveError: there is no kernel to boot."""
    kernel = named(kernel_name)
    booted = _image(kernel)
    if check == "wheel":
        _wheels()
    keep = RESULTS / f"{kernel.name}.{check}"
    folders = ":".join(str(ROOT / folder) for folder in SOURCES)
    job = f"PYTHONPATH={folders} {ROOT}/.venv/bin/python {ROOT}/tests/vm/in_guest.py {check}\n"
    outcome = guest.run(booted, job, folder=ROOT, keep=keep, timeout=600)
    answer = {"figures": "", "failure": ""}
    if (keep / "answer.json").exists():
        answer |= json.loads((keep / "answer.json").read_text())
    failure = answer["failure"]
    if outcome.status is None:
        failure = "the guest came to no end"
    elif outcome.status and not failure:
        failure = f"status {outcome.status}"
    elif not failure and (trouble := _TROUBLE.search(outcome.dmesg)):
        failure = f"the kernel's log says {trouble[0]}"
    result = Result(
        kernel.name,
        booted.version,
        check,
        answer["figures"],
        failure,
        round(outcome.boot_seconds, 1),
        round(outcome.seconds, 1),
        outcome.tries,
        str((keep / "log").relative_to(ROOT)),
    )
    (RESULTS / f"{kernel.name}.{check}.json").write_text(json.dumps(asdict(result), indent=1))
    if result.ok:
        shutil.rmtree(keep)
    return result


@lru_cache
def _wheels() -> None:
    """The wheel and what it depends on, for guests, which have no network."""
    folder = ROOT / "build" / "vm-wheels"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["make", "-s", "wheel", f"DIST={folder}"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("stallscope-*.whl")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "-d", str(folder), str(wheel)]
    subprocess.run(pip, check=True)


def run_cases(cases: Iterable[tuple[str, str]]) -> list[Result]:
    """Some guests at a time; prints a line for each that has ended."""

    def run(case: tuple[str, str]) -> Result:
        kernel, check = case
        try:
            result = run_case(kernel, check)
        except (ImageError, ArchiveError) as error:
            result = Result(kernel, "", check, "", str(error), 0, 0, 0, "")
        verdict = "ok  " if result.ok else "FAIL"
        said = result.figures if result.ok else f"{result.failure} ({result.log})"
        print(f"{verdict} {kernel:9} {check:10} {result.seconds:5.1f} s  {said}", flush=True)
        return result

    RESULTS.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, cases))


def write_page() -> int:
    """docs/kernels.md from the latest result of every check; names those that were not run."""
    wanted = [(kernel.name, check) for kernel in KERNELS for check in checks_of(kernel, short=False)]
    files = {case: RESULTS / f"{case[0]}.{case[1]}.json" for case in wanted}
    missing_results = [" ".join(case) for case, file in files.items() if not file.exists()]
    if missing_results:
        print(f"not run: {', '.join(missing_results)}")
    results = [Result(**json.loads(file.read_text())) for file in files.values() if file.exists()]
    (ROOT / "docs" / "kernels.md").write_text(report.page(results))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the checks of the VM lane.")
    parser.add_argument("--all", action="store_true", help="every check on every kernel; writes docs/kernels.md")
    parser.add_argument("--kernel", action="append", choices=[kernel.name for kernel in KERNELS])
    parser.add_argument("--check", action="append", choices=SHORT + LONG + REFUSED)
    parser.add_argument("--page", action="store_true", help="only write docs/kernels.md, from the latest results")
    options = parser.parse_args()
    if options.page:
        return write_page()
    if lacks := missing():
        sys.exit(lacks)
    everything = options.all or options.kernel or options.check
    cases = [(kernel.name, check) for kernel in KERNELS for check in checks_of(kernel, short=not everything)]
    cases = [
        case for case in cases if case[0] in (options.kernel or [case[0]]) and case[1] in (options.check or [case[1]])
    ]
    results = run_cases(cases)
    if options.all:
        write_page()
    failed = sum(not result.ok for result in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
