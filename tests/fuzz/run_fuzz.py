"""Fuzzes the parsers of what others control.

    run_fuzz.py [--seconds 600] [--jobs 2] [--work build/fuzz] [TARGET...]    all of them share the time
    run_fuzz.py --pack [TARGET...]             puts the inputs that reach most into the corpus
    run_fuzz.py --replay FILE TARGET           runs one input

Each input may take 10 s of a core and 512 MiB; only the exceptions that a target names may come out of it. Inputs after
which something else happened are in WORK/TARGET/findings, as small as they could be made; put them into corpus/TARGET
when the parser is mended. What reached new code is in WORK/TARGET/kept, and goes on being changed in the next run.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]


def _load() -> Any:
    """The rest, with all of stallscope that it imports instrumented."""
    sys.path[:0] = [str(_ROOT / "tests" / "fuzz"), str(_ROOT / "tests")]
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: each thread of it takes memory
    import fuzz_coverage

    fuzz_coverage.install()
    return importlib.import_module("fuzz_jobs")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--work", type=Path, default=_ROOT / "build" / "fuzz")
    parser.add_argument("--pack", action="store_true")
    parser.add_argument("--replay", type=Path)
    given = parser.parse_args()
    fuzz_jobs = _load()
    names = given.targets or list(fuzz_jobs.TARGETS)
    if unknown := set(names) - fuzz_jobs.TARGETS.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(fuzz_jobs.TARGETS)}")
    os.nice(19)
    if given.replay:
        return fuzz_jobs.replay(fuzz_jobs.TARGETS[names[0]], given.replay)
    if given.pack:
        fuzz_jobs.pack(names, given.work)
        return 0
    return bool(fuzz_jobs.fuzz(names, given.seconds, given.jobs, given.work, given.seed))


if __name__ == "__main__":
    sys.exit(main())
