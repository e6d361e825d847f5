"""Inputs that cannot be converted, and what is said of them."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from conversions import DATA, FOLDED, convert
from stallscope.converters import pprof
from stallscope.converters.model import Frame, Profile, Sample, ValueType


@pytest.mark.parametrize(("closed", "told"), [("<&-", "standard input is closed"), (">&-", "output is closed")])
def test_closed_streams(closed: str, told: str, folded: Path) -> None:
    code = "import sys; from stallscope.converters.convert import main; sys.exit(main())"
    path = "-" if closed == "<&-" else folded
    run = subprocess.run(f"{sys.executable} -c '{code}' {path} {closed}", shell=True, capture_output=True, text=True)
    assert run.returncode == 1
    assert told in run.stderr


_MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
"""
"""A process begins with the largest size of the one that has started it: this one is small."""


def _converted(path: Path, out: str = "out.pb.gz", *options: str) -> tuple[str, int]:
    """Words of the command, and the largest size of the process in MiB."""
    program = Path(sys.executable).with_name("trace-convert")
    command = [str(program), str(path), "-o", str(path.with_name(out)), *options]
    done = subprocess.run([sys.executable, "-c", _MEASURE, *command], capture_output=True, text=True, check=True)
    return done.stderr, int(done.stdout.split()[-1])


@pytest.mark.parametrize("line", [b"%d" + b"A" * 4000 + b";b 1\n", b"a;" * 1000 + b"b%d 1\n"])
def test_a_small_input_with_gigabytes_of_stacks(line: bytes, tmp_path: Path) -> None:
    """Distinct names, or distinct stacks of known ones. Unpacked, the same is no surprise."""
    bomb = tmp_path / "bomb.folded.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        for number in range(150_000):
            file.write(line % number)
    said, size = _converted(bomb)
    assert "bomb.folded.gz has more than 320 MiB of distinct stacks" in said
    assert "unpack it first" in said
    assert size < 512
    plain = tmp_path / "plain.folded"
    plain.write_bytes(b"".join(line % number for number in range(50_000)))
    assert "50,000 distinct stacks" in _converted(plain)[0]


@pytest.mark.parametrize("suffix", ["svg", "md", "html", "speedscope.json", "trace.json"])
def test_a_small_input_with_a_very_deep_stack(suffix: str, tmp_path: Path) -> None:
    """Each frame has its box or line in what is written: of a million, an SVG took 294 MB, and had 195."""
    path = tmp_path / "deep.folded.gz"
    path.write_bytes(gzip.compress(b"a;b;" * 500_000 + b"c 1\n"))
    said, size = _converted(path, f"out.{suffix}", "--from", "folded")
    assert "1 distinct stack, total 1 count (samples); skipped: 1 stack cut in the middle" in said
    assert size < 128
    assert (tmp_path / f"out.{suffix}").stat().st_size < 2 << 20


def test_an_event_that_is_not_there_is_told_with_those_that_are(capfd: pytest.CaptureFixture[str]) -> None:
    for path, events in (
        (DATA / "perf" / "two_events.txt", "cpu-clock, task-clock"),
        (DATA / "bpftrace" / "maps.txt", "@"),
    ):
        assert convert(path, "--event-filter", "nosuch") == 2
        cause, remedy = capfd.readouterr().err.splitlines()
        assert "nosuch" in cause
        assert remedy.startswith("choose one of: ") and events in remedy


def test_an_input_without_threads_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.folded"
    path.write_text("a;b 3\n")
    assert convert(path, "--per-thread") == 0
    told = capfd.readouterr()
    assert told.out == "a;b 3\n"
    assert "the input names no threads" in told.err
    assert convert(path) == 0
    assert "threads" not in capfd.readouterr().err


def test_an_event_of_a_format_without_events(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.folded"
    path.write_text("a;b 3\n")
    assert convert(path, "--event-filter", "cycles") == 2
    assert "is folded: it has no events to choose from" in capfd.readouterr().err


def test_inputs_with_one_value_in_common(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("a 1 1.5: 3 cycles:\n\t 40 f (/bin/a)\n\n")
    other.write_text("a 1 1.5: 5 instructions:\n\t 40 f (/bin/a)\n\n")
    assert convert(one, other) == 2
    cause, remedy = capfd.readouterr().err.splitlines()
    assert "period (cycles)" in cause and "period (instructions)" in cause
    assert remedy == "choose with --value what all have: samples"
    assert convert(one, other, "--value", "samples") == 0
    assert capfd.readouterr().out == "a;f 2\n"
    other.write_text("a;f 7\n")
    assert convert(one, other, "--value", "count") == 0
    assert capfd.readouterr().out == "a;f 8\n"


@pytest.mark.parametrize("suffix", [".folded", ".svg", ".html", ".speedscope.json", ".trace.json", ".md"])
def test_nothing_to_show_is_no_empty_file(tmp_path: Path, suffix: str, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.txt"
    path.write_text("a;b 0\na;c 0\n")
    assert convert(path, "-o", tmp_path / f"out{suffix}") == 1
    assert "every samples is 0: there is nothing to show\nwas anything recorded?" in capfd.readouterr().err
    assert not (tmp_path / f"out{suffix}").exists()


def test_another_value_is_named_where_one_is_0(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kinds = [ValueType("alloc_space", "bytes"), ValueType("inuse_space", "bytes")]
    profile = Profile(kinds, [Sample((Frame("f"),), (7, 0))], default_value="inuse_space")
    with (tmp_path / "x.pb.gz").open("wb") as file:
        pprof.save(profile, file)
    assert convert(tmp_path / "x.pb.gz") == 1
    assert "choose another value: --value alloc_space" in capfd.readouterr().err
    assert convert(tmp_path / "x.pb.gz", "-o", tmp_path / "y.pb.gz") == 0
    assert convert(tmp_path / "x.pb.gz", "--value", "alloc_space") == 0


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ("", 1, "is empty"),
        ("hello\n", 1, "looks like none of the formats that are read: pprof, "),
        ('{"profiles": [], "shared": \n', 1, "is cut short: it ends in line 2, within its JSON"),
        ("# nothing\n\n", 1, "has nothing but comments"),
        ("PERFILE2\0\0", 1, "is a recording of perf, not its text, which is not read\nperf script -i FILE"),
        ("a 1 1.0: 1 x:\n\t 40 f (a", 1, "no samples; skipped: 1 sample cut short at the end"),
    ],
)
def test_bad_input(text: str, status: int, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    assert convert(path) == status
    assert message in capfd.readouterr().err


def test_usage_errors(folded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert convert(folded, "-o", tmp_path / "x.unknown") == 2
    assert convert(folded, "--value", "nothing") == 2
    assert convert(folded, DATA / "pstats" / "python3.8.prof") == 2
    assert "measure different things" in capfd.readouterr().err
    assert convert(tmp_path / "missing") == 1
    assert convert(folded, "--from", "speedscope") == 1
    assert convert(folded, "-o", folded) == 1
    assert folded.read_text() == FOLDED


def test_critical_path_of_a_saved_profile(folded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert convert("--critical", "7", folded) == 1
    assert "a saved profile has sums of waits, a critical path needs each switch" in capfd.readouterr().err


def test_nothing_left_is_an_error_that_names_the_filter(folded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert convert(folded, "--focus", "nowhere") == 1
    assert "no sample is left: kept 0.0 % of samples: --focus nowhere" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--focus", "("], "--focus: missing )"),
        (["--keep", "x"], "expected KEY=REGEX"),
        (["--keep", "proces=x"], "no sample has the label 'proces'"),
        (["--normalize"], "--normalize scales the base of --diff"),
        (["--root", "process", "--per-thread"], "exclude each other"),
        (["--to", "perfetto"], "made of the scheduler's events"),
        (["--callers", "--reverse"], "both turn the stacks over"),
        (["--context"], "use --inline --context"),
        (["--diff", "-", "-"], "standard input cannot be both sides"),
        (["--max-depth", "0"], "--max-depth"),
    ],
)
def test_what_does_not_go_together(
    arguments: list[str], message: str, folded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert convert(*arguments, folded) == 2
    err = capfd.readouterr().err
    assert message in err
    assert "Traceback" not in err


def test_a_comparison_needs_what_is_after(folded: Path) -> None:
    code = "import sys; from stallscope.converters.convert import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "--diff", str(folded)]
    nothing = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (nothing.returncode, nothing.stdout) == (2, "")
    assert "--diff needs IN, the profile after" in nothing.stderr
    piped = subprocess.run(command, input="a;c 9\n", capture_output=True, text=True)
    assert (piped.returncode, piped.stdout) == (0, "a;b;read_[k] 3 0\na;c 4 9\n")
