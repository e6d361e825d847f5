"""Two million events of the scheduler, with a stack for each wait, as .pftrace, .trace.json and speedscope.

CPU time and peak memory of a process that has the events in memory and writes one file; MB of that file. The events are
those of an imagined machine with 16 cores, 400 threads that come and go, and 50 different stacks.
"""

from __future__ import annotations

import os
import pickle
import resource
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

EVENTS = 2_000_000
GOAL_SECONDS, GOAL_MB = 20, 500
SUFFIXES = (".pftrace", ".trace.json", ".speedscope.json")


def record(path: Path, count: int) -> None:
    """Makes the events; in a process of its own, for that takes more memory than to write them."""
    from scheduling_traces import Machine

    machine = Machine(cores=16, threads=400, processes=8)
    while sum(len(machine.rows[kind]) for kind in ("switches", "wakeups", "created", "exited")) < count:
        machine.step()
    path.write_bytes(pickle.dumps(machine.scheduling(), protocol=pickle.HIGHEST_PROTOCOL))


def write(events: Path, output: Path) -> None:
    """Writes one file."""
    from stallscope.converters.model import Profile, ValueType
    from stallscope.converters.writers import output as writers

    profile = Profile([ValueType("off-cpu", "nanoseconds")], title="bench", start_ns=1_790_000_000 * 10**9)
    profile.scheduling = pickle.loads(events.read_bytes())
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    writers.write(profile, output)
    print(f"{held / 1024:.0f} MB of them before it was written", end="  ", flush=True)


def measured(*arguments: str) -> tuple[float, float]:
    """CPU seconds and peak MB of this program with these arguments."""
    pid = os.posix_spawn(sys.executable, [sys.executable, __file__, *arguments], os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"{arguments[0]} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(count: int) -> None:
    """Prints one line per format."""
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder, "events")
        measured("record", str(events), str(count))
        for suffix in SUFFIXES:
            output = Path(folder, f"x{suffix}")
            seconds, megabytes = measured("write", str(events), str(output))
            size = output.stat().st_size / 1e6
            goal = f"   (goal {GOAL_SECONDS} s, {GOAL_MB} MB)" if suffix == ".pftrace" else ""
            print(
                f"{suffix:17} {seconds:6.1f} s CPU  {megabytes:5.0f} MB peak  {size:6.0f} MB written{goal}", flush=True
            )
            output.unlink()


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        record(Path(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:2] == ["write"]:
        write(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else EVENTS)
