"""The stacks of other runtimes and C libraries: the share of the time that is in complete ones, and gdb beside us.

    compare_gdb.py [--musl FOLDER] [--rounds 3] [NAME …]

Prints the table of docs/offcpu.md. Each program is traced at work, for the share; then, in each round, it is stopped
while it is traced, and the stack of each thread is compared with gdb's, address by address.

gdb reads call frame information, and guesses where there is none: C libraries like musl have none, so there gdb is no
witness. With --musl FOLDER, a source tree of musl (`apt-get source musl`), musl is built with debug information that
gdb finds in a file beside it, and which the traced files do not have. 32-bit code has it, and we do not use it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import NamedTuple

sys.path.extend(str(Path(__file__).resolve().parents[1] / folder) for folder in ("live", "workloads"))

from runtimes import BUILDS, SOURCES, Built, MissingError, build, put_aside
from stacks_truth import TruthFrame, TruthStack, gdb_stacks
from stallscope.converters.model import Frame, Profile
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.assemble import profile_of
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
from stallscope.tracers.engines.ebpf.session import Session
from stallscope.tracers.engines.ebpf.stacks import Stacks
from stallscope.tracers.kernel.records import RecordSink
from stallscope.tracers.measures.offcpu import OffCpu

SECONDS, ROUND_SECONDS, STOP_AFTER = 4.0, 1.2, 0.5
GO_ROOTS = ("runtime.goexit", "runtime.mstart", "runtime.mcall", "runtime.systemstack", "runtime.morestack")
"""Functions where our stacks of Go end; gdb goes on into what is left of earlier calls."""
MUSL = {"musl": (), "musl, static": ("-static",)}
VDSO = "[vdso]"


class Trace(NamedTuple):
    profile: Profile
    share: float
    """Part of the time in user code that is in complete stacks."""


def trace(pid: int, seconds: float, stop: bool = False) -> Trace:
    """``stop``: stops the process after some time, so that its threads stay where they are."""
    scope = Scope(pids=[pid])
    scope.resolve()
    sink = RecordSink()
    timer = threading.Timer(STOP_AFTER, os.kill, (pid, signal.SIGSTOP))
    begun: list[bool] = []

    def on_poll(*_: object) -> None:
        if stop and not begun:
            begun.append(True)
            timer.start()

    engine = Probes(ProbeOptions(scope, collectors([OffCpu()])), sink)
    try:
        capture = Session(engine, None, seconds).run(sink, on_poll)
        profile = profile_of(capture, "Off-CPU time")
        stacks = Stacks(capture, capture.rows, None)
    finally:
        engine.close()
    reached: Counter[int] = Counter()
    for row in capture.rows:
        reached[stacks.end_of(row)] += row.values[0]
    del reached[-1]
    return Trace(profile, reached[0] / reached.total())


def compared(ours: list[Frame], truth: TruthStack) -> str:
    """Text on a thread's stack; both are outermost first."""
    mine, true = [place(frame) for frame in reversed(ours)], [true_place(frame) for frame in reversed(truth)]
    same = 0
    while same < min(len(mine), len(true)) and mine[same] == true[same]:
        same += 1
    if same == len(mine) == len(true):
        return "equal"
    if same == len(mine) and truth[-same].name.removesuffix(".abi0") in GO_ROOTS:
        return "equal up to where Go's stack begins"
    if same == len(mine) and truth[-same].name == "_start":
        return "equal up to _start, where gdb goes on to what is no code"
    # Our next frame may be right, gdb's is none: there it guesses.
    if any(not path for path, _ in true[: same + 1]):
        return "equal up to code for which gdb has no rules"
    rest = iter(true)
    if all(each in rest for each in mine):
        return "without some of gdb's callers"
    return "different"


def place(frame: Frame) -> tuple[str, int]:
    """File and address in it; in generated code, only the address."""
    path = frame.module.path if frame.module else ""
    if path == VDSO or frame.name.startswith(VDSO[:-1]):
        return VDSO, 0
    return (path if path.startswith("/") else ""), frame.address or 0


def true_place(frame: TruthFrame) -> tuple[str, int]:
    """See `place`."""
    if frame.path == VDSO:
        return VDSO, 0
    return (frame.path.removesuffix(" (deleted)") if frame.path.startswith("/") else ""), frame.vaddr


def last_stacks(profile: Profile) -> dict[int, list[Frame]]:
    """Stacks of the threads that were stopped before the trace ended: others have gone on since."""
    found: dict[int, list[Frame]] = {}
    for sample in profile.samples:
        if sample.label("open") == "yes" and sample.label("state") == "stopped":
            found[int(sample.label("tid"))] = [frame for frame in sample.stack if frame.kind == "native"]
    return found


def rounds(program: Built, count: int, outcomes: Counter[str], verbose: bool) -> None:
    with program.running() as child:
        for _ in range(count):
            stacks = last_stacks(trace(child.pid, ROUND_SECONDS, stop=True).profile)
            truth = gdb_stacks(child.pid)
            os.kill(child.pid, signal.SIGCONT)
            for tid, ours in stacks.items():
                if tid not in truth or not ours:
                    continue
                outcome = compared(ours, truth[tid])
                outcomes[outcome] += 1
                if verbose and not outcome.startswith("equal"):
                    print(f"  {program.name}: {outcome}", *_both(ours, truth[tid]), sep="\n    ", file=sys.stderr)


def _both(ours: list[Frame], truth: TruthStack) -> list[str]:
    mine = " → ".join(f"{frame.name}@{frame.address or 0:#x}" for frame in ours)
    return [mine, " → ".join(f"{frame.name}@{frame.vaddr:#x}" for frame in truth)]


def share(program: Built) -> float:
    with program.running() as child:
        return trace(child.pid, SECONDS).share


def musl_with_debug(source: Path, folder: Path) -> dict[str, Built]:
    """The programs of `MUSL`, and their C library, with debug information in files beside them."""
    prefix = folder / "with-debug"
    (folder / "built").mkdir()
    configure = [source.resolve() / "configure", f"--prefix={prefix}", f"--syslibdir={prefix}/lib", "--enable-debug"]
    for command in (configure, ["make", "install"]):
        subprocess.run([*map(str, command)], cwd=folder / "built", check=True, capture_output=True)
    put_aside(prefix / "lib/libc.so", "--strip-all")
    found = {}
    for name, options in MUSL.items():
        target = folder / f"debug-{name.replace(', ', '-')}"
        command = [prefix / "bin/musl-gcc", "-O2", "-g", *options, "-o", target, SOURCES / "waits.c", "-pthread"]
        subprocess.run([*map(str, command)], check=True)
        put_aside(target, "--strip-debug" if options else "--strip-all")
        found[name] = Built(name, (str(target),))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--musl", metavar="FOLDER", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-v", "--verbose", action="store_true", help="print the stacks that differ")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {'; '.join(BUILDS)}")
    options = parser.parse_args()
    wrong = 0
    print("| Program | Complete | Stacks compared | As gdb's |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="compare-gdb-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with_debug = musl_with_debug(options.musl, folder) if options.musl else {}
        for each in options.names or BUILDS:
            try:
                program = build(each, folder)
            except MissingError as error:
                print(f"{each}: left out: {error}", file=sys.stderr)
                continue
            outcomes: Counter[str] = Counter()
            witness = with_debug.get(each, program)
            if each not in MUSL or each in with_debug:
                rounds(witness, options.rounds, outcomes, options.verbose)
            told = ", ".join(f"{count} {what}" for what, count in outcomes.most_common())
            print(f"| {each} | {share(program):.2%} | {outcomes.total()} | {told or 'not compared'} |", flush=True)
            wrong += outcomes["different"]
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
