"""Traces jobs of real programs and keeps their captures: record_jobs.py [NAME…]; without names all of them.

Root only. A job whose programs are missing is told with their packages, and the status is 1 then.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from capture_truths import JOBS
from job import Job
from record import keep
from stage import PYTHON, Failed, Stage

SETTLE = 0.3
"""Seconds from when a job is ready until it is traced."""


def missing(job: Job) -> list[str]:
    """Packages that a job needs and that are not there."""
    packages = [package for program, package in job.programs.items() if not shutil.which(program)]
    for module, package in job.modules.items():
        code = f"import sys, importlib.util; sys.exit(not importlib.util.find_spec({module!r}))"
        if subprocess.run([PYTHON, "-c", code]).returncode:
            packages.append(package)
    return sorted(set(packages))


def trace(job: Job, command: str, pids: Sequence[int], path: Path) -> None:
    """Writes the capture of these processes to this path."""
    program = Path(sys.executable).with_name(f"trace-{command}")
    line: list[str | Path] = [program, "-p", ",".join(map(str, pids)), "-d", str(job.seconds), *job.options, "-o", path]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise Failed(f"trace-{command}: {done.stderr[-500:]}")


def record(job: Job) -> Iterator[Path]:
    """Starts a job, and traces it with one command after the other. The captures that are kept."""
    with tempfile.TemporaryDirectory() as folder, Stage() as stage:
        pids = job.start(stage)
        time.sleep(SETTLE)
        for command in job.commands:
            path = Path(folder) / f"{command}.pb.gz"
            trace(job, command, pids, path)
            yield keep(job.capture(command), path)


def main(names: Sequence[str]) -> int:
    known = {job.name: job for job in JOBS}
    failed = [f"{name}: no such job" for name in names if name not in known]
    for job in [known[name] for name in names if name in known] if names else JOBS:
        if packages := missing(job):
            failed.append(f"{job.name}: not recorded: apt-get install {' '.join(packages)}")
            continue
        try:
            for kept in record(job):
                print(f"{kept.name}: {kept.stat().st_size:,} bytes", flush=True)
        except Failed as error:
            failed.append(f"{job.name}: {error}")
    print(*failed, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
