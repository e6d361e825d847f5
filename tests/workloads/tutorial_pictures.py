"""``make tutorial``: the commands of docs/tutorial.md, with what they print, and the pictures of that page.

Leaves everything in build/tutorial/; with --publish (``make tutorial-pictures``) copies the pictures to docs/.
Ends every process that it started.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from runner import FOLDER, Workload, WorkloadFailed

_ROOT = Path(__file__).resolve().parents[2]
_OUT = _ROOT / "build" / "tutorial"
_PROCESSES = 8
_LONGEST_MS = 100_000

SLOW = (
    "trace-oncpu -n '^demo$' -d 5 --merge -o oncpu.svg",
    "trace-offcpu -p $PID -d 10 -o one.svg",
    "trace-offcpu -n '^demo$' -d 10 --merge -o all.svg",
    "trace-wall -n '^demo$' -d 10 --merge -o wall.svg -o before.pb.gz",
    "trace-offcpu -n '^demo$' -d 1 --max-events 400 -o when.pftrace -o when.trace.json",
)
"""Commands that run while eight processes ask the driver each time."""

FAST = ("trace-wall -n '^demo$' -d 10 --merge -o after.svg -o after.pb.gz",)
"""Commands that run while eight processes have asked once."""

LATER = (
    "trace-convert --flamechart --keep thread=worker --title 'The eight workers' when.trace.json -o when.svg",
    "trace-convert --diff before.pb.gz after.pb.gz --show demo --root state --to table --form top-down",
    "trace-convert --diff before.pb.gz after.pb.gz --show demo --root none --value before "
    "--title 'Asked each time (width), compared with asked once' -o diff.svg",
    "trace-convert before.pb.gz --keep thread=worker -o workers.html -o workers.folded",
)
"""Commands for what was recorded: without root, without the processes."""

PICTURES = {"wall.svg": "tutorial-wall.svg", "when.svg": "tutorial-when.svg", "diff.svg": "tutorial-diff.svg"}
"""File in build/tutorial to file in docs."""


def _tell_rates(processes: int, *arguments: str) -> None:
    """Runs some demos to their end; each prints its rate."""
    command = [str(FOLDER / "demo"), "5000", *arguments]
    print(f"$ demo {shlex.join(command[1:])}  # {processes} of them", flush=True)
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(processes)]
    try:
        statuses = [demo.wait() for demo in running]
    finally:
        for demo in running:
            demo.kill()
    if any(statuses):
        raise WorkloadFailed("the demo cannot run here")


@contextlib.contextmanager
def _demos(*arguments: str) -> Iterator[list[Workload]]:
    with contextlib.ExitStack() as stack:
        demos = [stack.enter_context(Workload("demo", _LONGEST_MS, *arguments)) for _ in range(_PROCESSES)]
        for demo in demos:
            demo.release()
        yield demos


def _run(commands: Sequence[str], pid: int = 0) -> None:
    """Prints each command and what it prints; CalledProcessError when one fails."""
    for command in commands:
        print(f"\n$ {command}", flush=True)
        name, *arguments = shlex.split(command.replace("$PID", str(pid)))
        subprocess.run([str(Path(sys.executable).with_name(name)), *arguments], cwd=_OUT, check=True)


def _publish(picture: Path, target: Path) -> None:
    """A copy that names no folder of this machine."""
    target.write_text(picture.read_text(encoding="utf-8").replace(f"{_ROOT}/", ""), encoding="utf-8")


def main() -> int:
    """1 when a demo process cannot run or a command fails."""
    parser = argparse.ArgumentParser(description="Run the commands of docs/tutorial.md.")
    parser.add_argument("--publish", action="store_true", help="replace the pictures in docs/")
    options = parser.parse_args()
    shutil.rmtree(_OUT, ignore_errors=True)
    _OUT.mkdir(parents=True)
    os.environ["COLUMNS"] = "130"
    try:
        _tell_rates(1)
        _tell_rates(_PROCESSES)
        with _demos() as demos:
            _run(SLOW, demos[0].pid)
        _tell_rates(_PROCESSES, "once")
        with _demos("once") as demos:
            _run(FAST, demos[0].pid)
        _run(LATER)
    except (WorkloadFailed, subprocess.CalledProcessError) as failure:
        print(failure, file=sys.stderr)
        return 1
    for picture, target in PICTURES.items() if options.publish else ():
        _publish(_OUT / picture, _ROOT / "docs" / target)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # through the stack that ends the processes
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
