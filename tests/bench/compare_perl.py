"""Comparison of our folded text with that of FlameGraph's Perl scripts, stack by stack.

    compare_perl.py [--mb 1] [--flamegraph FOLDER]

The scripts are taken from the folder, or $FLAMEGRAPH; without them nothing is compared. Inputs are our corpora, texts
that are made for measuring, and the recordings that the folder has for its own tests (perf only). Equal means: the same
lines, once sorted, equal stacks added up. Inputs that must differ are listed in REASONS; another difference is a
failure, and its first lines are shown.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import bench_readers
import texts_stacks
from corpora_perf import name_blanks
from stallscope.converters.convert import main as convert

DATA = Path(__file__).resolve().parents[1] / "data"
PERF_OPTIONS = (
    *((), ("--pid",), ("--tid",), ("--kernel",), ("--jit",), ("--all",), ("--addrs",)),
    *(("--pid", "--all"), ("--tid", "--all", "--addrs"), ("--pid", "--tid")),
)
SCRIPTS = {
    "stackcollapse-perf.pl": ("perf", "*", PERF_OPTIONS),
    "stackcollapse-stap.pl": ("stap", "*", ((),)),
    "stackcollapse-bpftrace.pl": ("bpftrace", "*", ((),)),
    "stackcollapse-elfutils.pl": ("gdb", "eu_stack*", ((),)),
    "stackcollapse-gdb.pl": ("gdb", "gdb*", ((),)),
    "stackcollapse.pl": ("dtrace", "*", ((),)),
}
"""Script → our reader, which files of its corpus are the script's, and the options to compare."""
_OFFSET = re.compile(r"\+\d+(?=;|\Z)")
"""stackcollapse-bpftrace.pl keeps it, so that one function is many frames."""
REASONS = {
    ("stackcollapse-perf.pl", "comm.txt"): "it reads no header without a process id",
    ("stackcollapse-perf.pl", "ip_sym.txt"): "it reads no samples without a header",
    ("stackcollapse-perf.pl", "no_comm_no_dso.txt"): "it reads no frames without a file",
    ("stackcollapse-perf.pl", "no_pid.txt"): "it takes the time for a process id",
    ("stackcollapse-perf.pl", "srcline.txt"): "it takes the source line of an inlined frame for its name",
    ("stackcollapse-perf.pl", "brstack.txt"): "it waits for a blank line, and takes branches for frames",
    ("stackcollapse-perf.pl", "perf-iperf-stacks-pidtid-01.txt"): "it takes the vdso for the kernel",
    ("stackcollapse-perf.pl", "perf-java-stacks-01.txt"): "it takes the vdso for the kernel",
    ("stackcollapse-stap.pl", "kernel.txt"): "it takes a warning for a frame",
    ("stackcollapse-stap.pl", "malformed.txt"): "it takes an error for a frame, and a count without a stack for one",
    ("stackcollapse-stap.pl", "sample_bt.txt"): "it cuts names of unknown frames, and takes a warning for a frame",
    ("stackcollapse-bpftrace.pl", "keys.txt"): "it reads no maps with a name",
    ("stackcollapse-perf.pl", "malformed.txt"): "it takes the arrow of operator-> for that of an inlined call",
    ("stackcollapse-bpftrace.pl", "cut.json"): "it does not read JSON",
    ("stackcollapse-bpftrace.pl", "malformed.txt"): "it takes histograms and other entries for frames",
    ("stackcollapse-bpftrace.pl", "maps.json"): "it reads no JSON",
    ("stackcollapse-bpftrace.pl", "maps.txt"): "it reads no maps with a name",
    ("stackcollapse-bpftrace.pl", "output.json"): "it reads no JSON",
    ("stackcollapse-bpftrace.pl", "perf_mode.txt"): "it keeps addresses, files and lines in the names",
    ("stackcollapse-bpftrace.pl", "system.txt"): "it takes keys for frames, and has addresses for [unknown]",
    ("stackcollapse-elfutils.pl", "eu_stack.txt"): "it keeps the versions of symbols in the names",
    ("stackcollapse-elfutils.pl", "eu_stack_lines.txt"): "it keeps what -i and -m add in the name",
    ("stackcollapse-elfutils.pl", "eu_stack_modules.txt"): "it keeps the module in the name",
    ("stackcollapse-elfutils.pl", "eu_stack_verbose.txt"): "it keeps what -a and -m add in the name",
    ("stackcollapse-gdb.pl", "gdb.txt"): "it cuts names at the first space",
    ("stackcollapse-gdb.pl", "gdb_cut.txt"): "it keeps a stack that is cut",
    ("stackcollapse-gdb.pl", "gdb_cxx_inlined.txt"): "it cuts names at the first space, and has ?? for [unknown]",
    ("stackcollapse-gdb.pl", "gdb_full.txt"): "it takes local variables for the end of a stack",
    ("stackcollapse-gdb.pl", "gdb_stripped.txt"): "it has ?? for [unknown], and no signal handlers",
    ("stackcollapse.pl", "keys.txt"): "it takes the process for a frame, its number for a name",
    ("stackcollapse.pl", "malformed.txt"): "it takes a histogram for frames",
    ("stackcollapse.pl", "profile.txt"): "it has the address for [unknown]",
}
"""Script and input → why they differ. All are said of the readers, too."""


def inputs(script: str, folder: Path, made: Path, size: int) -> Iterator[Path]:
    """Files that the script reads."""
    reader, pattern, _ = SCRIPTS[script]
    yield from (path for path in sorted((DATA / reader).glob(pattern)) if path.suffix != ".golden")
    if reader == "perf":
        yield from sorted((folder / "test").glob("perf-*.txt"))
        texts = {"generated": bench_readers.perf_text}
    else:
        texts = {name: text for name, (_, text, peer) in texts_stacks.TEXTS.items() if peer == script}
    for name, text in texts.items():
        path = made / f"{script}.{name}"
        path.write_bytes(b"".join(text(size)))
        yield path


def value(script: Path) -> tuple[str, ...]:
    """Older versions of stackcollapse-perf.pl print the number of samples."""
    older = script.name == "stackcollapse-perf.pl" and "$m_period)" not in script.read_text()
    return ("--value", "samples") if older else ()


def ours(reader: str, options: tuple[str, ...], path: Path) -> Counter[str] | None:
    """Weights by stack; None when the input is refused."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        out = Path(folder, "out.folded")
        status = convert(["--from", reader, "--raw-names", *options, str(path), "-o", str(out)])
        return None if status else weights(out.read_text())


def theirs(script: Path, options: tuple[str, ...], path: Path) -> Counter[str]:
    with tempfile.NamedTemporaryFile() as file:
        text = path.read_bytes()
        if script.name == "stackcollapse-perf.pl":
            # It drops a last sample that no empty line follows, and keeps a blank for a name.
            text = name_blanks(text) + b"\n\n"
        file.write(text)
        file.flush()
        done = subprocess.run(["perl", script, *options, file.name], capture_output=True, check=False)
    return weights(done.stdout.decode(errors="replace"), _OFFSET if "bpftrace" in script.name else None)


def weights(text: str, without: re.Pattern[str] | None = None) -> Counter[str]:
    """``without`` is what is taken out of the stacks."""
    sums: Counter[str] = Counter()
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        stack = without.sub("", stack) if without else stack
        sums[stack] += int(weight) if weight.isdigit() else 0
    return sums


def compare(script: Path, path: Path, given: Counter[str], wanted: Counter[str], options: tuple[str, ...]) -> str:
    """``equal``, ``explained: why`` or ``different``, which is told."""
    if given == wanted:
        return "equal"
    if reason := REASONS.get((script.name, path.name)):
        return f"explained: {path.name}: {reason}"
    print(
        f"    {path.name} {' '.join(options)}: {len(wanted - given)} lines of theirs and {len(given - wanted)} of ours"
    )
    for name, lines in (("theirs", wanted - given), ("ours", given - wanted)):
        for line, weight in sorted(lines.items())[:2]:
            print(f"        {name}: {line[:400]!a} {weight}")
    return "different"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=float, default=1)
    parser.add_argument("--flamegraph", default=os.environ.get("FLAMEGRAPH", ""), metavar="FOLDER")
    arguments = parser.parse_args()
    folder = Path(arguments.flamegraph)
    if not arguments.flamegraph or not shutil.which("perl"):
        print("not compared: FLAMEGRAPH=FOLDER says where FlameGraph's scripts are, and perl runs them")
        return 0
    failed = 0
    for name, (reader, _, all_options) in SCRIPTS.items():
        script, outcomes = folder / name, Counter[str]()
        if not script.exists():
            print(f"{name}: not there")
            continue
        with tempfile.TemporaryDirectory() as made:
            for path in inputs(name, folder, Path(made), int(arguments.mb * 1e6)):
                for options in all_options:
                    given = ours(reader, (*options, *value(script)), path)
                    outcomes[compare(script, path, given or Counter(), theirs(script, options, path), options)] += 1
        explained = {text: count for text, count in outcomes.items() if text.startswith("explained")}
        print(
            f"{name}: {outcomes.total()} compared, {outcomes['equal']} equal, {sum(explained.values())} differ for a"
            f" reason, {outcomes['different']} differ",
            flush=True,
        )
        for text, count in explained.items():
            print(f"    {count} {text}")
        failed += outcomes["different"]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
