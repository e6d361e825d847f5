from __future__ import annotations

import gc
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from conversions import DATA, FOLDED, convert
from stallscope.converters import pprof
from stallscope.converters.convert import main
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers import detect

CORPUS = sorted(path for name in detect.formats() for path in (DATA / name).iterdir() if path.suffix != ".golden")


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_golden(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA)
    out = tmp_path / "out.folded"
    assert convert("--all", "--pid", path.relative_to(DATA), "-o", out) == 0
    golden = path.with_name(path.name + ".golden")
    if os.environ.get("BLESS") == "1":
        golden.write_bytes(out.read_bytes())
    assert out.read_bytes() == golden.read_bytes()


def test_corpus_is_there() -> None:
    assert {path.parent.name for path in CORPUS} == set(detect.formats())


def test_report_and_default_output(folded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert convert(folded) == 0
    out, err = capfd.readouterr()
    assert out == FOLDED
    assert err == "trace-convert: 2 distinct stacks, total 7 count (samples); skipped: nothing\n"


def test_skipped_lines_are_told_with_their_place(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.folded"
    path.write_text("a;b 1\nno count\nc\nd 2\n")
    assert convert(path) == 0
    err = capfd.readouterr().err
    assert "skipped: 2 lines without a count" in err
    assert f"{path}, line 2: expected a folded stack" in err


def test_both_sides_of_a_comparison_are_told(tmp_path: Path, folded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.folded"
    path.write_text("a;b 1\nno count\n")
    assert convert("--diff", path, folded, "-o", tmp_path / "diff.folded") == 0
    assert convert(tmp_path / "diff.folded", "--value", "before") == 0
    out, err = capfd.readouterr()
    assert f"skipped first (before) at {path}, line 2: expected" in err
    assert "total 7 count (after), 1 (before)" in err
    assert "total 1 count (before), 7 (after)" in err
    assert out == (tmp_path / "diff.folded").read_text() == "a;b 1 0\na;b;read_[k] 0 3\na;c 0 4\n"


def test_files_are_added_up_in_every_format(folded: Path, tmp_path: Path) -> None:
    packed = tmp_path / "in.gz"
    packed.write_bytes(gzip.compress(b"a;c 10\nz 1\n"))
    outs = [tmp_path / f"out{suffix}" for suffix in (".folded", ".svg", ".speedscope.json", ".pb.gz")]
    assert convert(folded, packed, "--title", "Both", *[part for out in outs for part in ("-o", out)]) == 0
    assert outs[0].read_text() == "a;b;read_[k] 3\na;c 14\nz 1\n"
    assert "Both" in outs[1].read_text()
    with outs[3].open("rb") as file:
        profile = pprof.load(file)
    assert (profile.title, profile.total("samples")) == ("Both", 18)


def test_standard_input() -> None:
    code = "import sys; from stallscope.converters.convert import main; sys.exit(main())"
    for arguments in ([], ["-"]):
        run = subprocess.run([sys.executable, "-c", code, *arguments], input=FOLDED, capture_output=True, text=True)
        assert (run.returncode, run.stdout) == (0, FOLDED)


def test_merge_and_per_thread(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.folded"
    path.write_text("rank-1/11;a 1\nrank-2/12;a 2\n")
    assert convert(path, "--merge") == 0
    assert capfd.readouterr().out == "rank;a 3\n"
    assert convert(path, "--per-thread") == 0
    assert capfd.readouterr().out == "rank-1/11;a 1\nrank-2/12;a 2\n"


def test_value_and_event_of_perf(capfd: pytest.CaptureFixture[str]) -> None:
    path = DATA / "perf" / "two_events.txt"
    assert convert(path) == 0
    first = capfd.readouterr()
    assert convert(path, "--event-filter", "task-clock") == 0
    second = capfd.readouterr()
    assert convert(path, "--value", "samples") == 0
    third = capfd.readouterr()
    totals = [sum(int(line.rsplit(None, 1)[1]) for line in told.out.splitlines()) for told in (first, second, third)]
    assert totals == [12 * 5025125, 12 * 5025125, 12]
    assert "12 samples of other events" in first.err


def test_names_are_demangled_unless_raw_ones_are_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folded, perf = tmp_path / "x.folded", tmp_path / "x.perf"
    folded.write_text("_ZN1a1bEi;core::f::h7bfab8630dda96cf 1\n")
    perf.write_text("a 1 1.5: 3 cycles:\n\t 40 _ZN1a1bEi (/bin/a)\n\n")
    for path, options, line in (
        (folded, (), "a::b(int);core::f 1\n"),
        (folded, ("--raw-names",), folded.read_text()),
        (perf, (), "a;a::b 3\n"),
        (perf, ("--raw-names",), "a;_ZN1a1bEi 3\n"),
    ):
        assert convert(path, *options) == 0
        assert capfd.readouterr().out == line


def test_threads_are_told_apart_where_they_are_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    path = DATA / "perf" / "two_events_pid_tid.txt"
    assert convert(path, "--per-thread") == 0
    per_thread = capfd.readouterr().out
    assert convert(path, "--tid") == 0
    assert per_thread == capfd.readouterr().out
    assert "/" in per_thread.split(";")[0]


def test_marks_are_as_in_stackcollapse(capfd: pytest.CaptureFixture[str]) -> None:
    path = DATA / "perf" / "malformed.txt"
    shown = {}
    for option in ("", "--kernel", "--jit", "--all", "--addrs", "--tid"):
        assert convert(*filter(None, [option]), path) == 0
        shown[option] = capfd.readouterr().out
    assert "_[k]" not in shown[""] and "_[j]" not in shown[""]
    assert "do_syscall_64_[k]" in shown["--kernel"] and "_[j]" not in shown["--kernel"]
    assert "Lorg/foo/Bar:::baz_[j]" in shown["--jit"] and "_[k]" not in shown["--jit"]
    assert "do_syscall_64_[k]" in shown["--all"] and "_[j]" in shown["--all"]
    assert "[libfoo.so <7ff0aa>]" in shown["--addrs"] and "[unknown <7ff0ab>]" in shown["--addrs"]
    assert "app-71/72;" in shown["--tid"] and "java-?/99;" in shown["--tid"]
    assert "java;org/foo/Bar:::baz 1\n" in shown[""]


def test_filters_are_told_in_the_report_and_in_the_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "x.folded", tmp_path / "out.pb.gz"
    path.write_text("python3-7;a;b 3\nsshd-9;a;c 1\n")
    assert convert(path, "--keep", "process=python", "--end-at", "a", "-o", out) == 0
    assert "trace-convert: kept 75.0 % of samples: --keep process=python\n" in capfd.readouterr().err
    with out.open("rb") as file:
        profile = pprof.load(file)
    assert worded(profile.comments) == ["kept 75.0 % of samples: --keep process=python"]
    assert [sample.values for sample in profile.samples] == [(3,)]


def test_roots_by_label(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.folded"
    path.write_text("rank-1/11;a 1\nrank-2/12;a 2\n")
    assert convert(path, "--root", "thread,process") == 0
    assert capfd.readouterr().out == "rank-11;rank-1;a 1\nrank-12;rank-2;a 2\n"
    assert convert(path, "--root", "process", "--merge") == 0
    assert capfd.readouterr().out == "rank;a 3\n"
    assert convert(path, "--root", "none") == 0
    assert capfd.readouterr().out == "a 3\n"
    assert convert(path, "--root", "state") == 2
    assert "pid, process, thread, tid" in capfd.readouterr().err


def test_differences(folded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bases = [tmp_path / "base1", tmp_path / "base2"]
    bases[0].write_text("a;b;read_[k] 1\n")
    bases[1].write_text("a;gone 1\n")
    compared = ["--diff", bases[0], "--diff", bases[1], folded]
    assert convert(*compared) == 0
    out, err = capfd.readouterr()
    assert out == "a;b;read_[k] 1 3\na;c 0 4\na;gone 1 0\n"
    assert err == "trace-convert: 3 distinct stacks, total 7 count (after), 2 (before); skipped: nothing\n"
    assert convert(*compared, "--normalize", "--focus", "b") == 0
    out, err = capfd.readouterr()
    assert out == "a;b;read_[k] 1000000000 1000000000\n"
    assert "before: kept 50.0 % of samples: --focus b" in err
    assert "after: kept 42.9 % of samples: --focus b" in err
    assert convert("--diff", folded, folded, "--value", "before") == 0
    out, err = capfd.readouterr()
    assert out == "a;b;read_[k] 3 3\na;c 4 4\n"
    assert "total 7 count (before)" in err


def test_a_saved_difference_is_one_again(folded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "diff.pb.gz"
    assert convert("--diff", folded, folded, "-o", saved) == 0
    assert convert(saved) == 0
    assert capfd.readouterr().out == "a;b;read_[k] 3 3\na;c 4 4\n"


def test_time_and_count(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    profile = Profile(
        [ValueType("off-cpu", "nanoseconds"), ValueType("waits", "count")], [Sample((Frame("a"),), (5_000, 2))]
    )
    path = tmp_path / "x.pb.gz"
    with path.open("wb") as file:
        pprof.save(profile, file)
    for value, shown in (("time", "a 5\n"), ("count", "a 2\n"), ("waits", "a 2\n")):
        assert convert(path, "--value", value) == 0
        assert capfd.readouterr().out == shown


def test_the_collector_is_as_it_was(folded: Path, tmp_path: Path) -> None:
    assert gc.isenabled()
    assert convert(folded, "-o", tmp_path / "x.folded") == 0
    assert gc.isenabled()
    assert convert(tmp_path / "missing") == 1
    assert gc.isenabled()


def test_help_starts_with_examples(capfd: pytest.CaptureFixture[str]) -> None:
    assert convert("--help") == 0
    assert capfd.readouterr().out.splitlines()[2] == "Examples:"


def test_times_are_kept_for_the_outputs_that_show_them(tmp_path: Path) -> None:
    path = DATA / "chrome" / "mixed.json"
    alone, beside, evented = tmp_path / "a.folded", tmp_path / "b.folded", tmp_path / "b.speedscope.json"
    assert convert(path, "-o", alone) == 0
    assert convert(path, "-o", beside, "-o", evented) == 0
    assert alone.read_bytes() == beside.read_bytes()
    assert {profile["type"] for profile in json.loads(evented.read_text())["profiles"]} == {"evented"}
    odd = tmp_path / "odd"
    assert convert(path, "-o", odd, "--to", "speedscope") == 0
    assert json.loads(odd.read_text()) == json.loads(evented.read_text())


def test_where_samples_come_from(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ranks = [tmp_path / f"rank{i}.folded" for i in range(3)]
    for i, path in enumerate(ranks):
        path.write_text(f"python3-1;main;f {10 + i}\n")
    assert convert(*ranks) == 0
    out, err = capfd.readouterr()
    assert out == "python3-1;main;f 33\n"
    assert "trace-convert: added up: python3-1 of several inputs; --root input,process tells them apart\n" in err
    assert convert("--root", "input,process", *ranks) == 0
    out, err = capfd.readouterr()
    assert out.splitlines() == [f"rank{i}.folded;python3-1;main;f {10 + i}" for i in range(3)]
    assert "added up" not in err
    assert convert("--keep", "input=rank[01]", *ranks) == 0
    assert capfd.readouterr().out == "python3-1;main;f 21\n"
    assert convert("--diff", ranks[0], "--drop", "input=rank1", *ranks[1:]) == 0
    assert capfd.readouterr().out == "python3;main;f 10 12\n"


def test_the_rank_that_is_not_like_the_others(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ranks = [tmp_path / f"rank{i}.folded" for i in range(4)]
    for i, path in enumerate(ranks):
        path.write_text(f"python3-{i};main;f 90\npython3-{i};main;{'decode' if i == 2 else 'g'} 12\n")
    others = [part for i in (0, 1, 3) for part in ("--diff", ranks[i])]
    assert convert("--merge", "--normalize", *others, ranks[2], "--to", "table", "--form", "functions") == 0
    out, err = capfd.readouterr()
    rows = [line for line in out.splitlines() if line.endswith("[native]")]
    changes = {line.split()[-2]: re.findall(r"[-+]?[\d.]+ %", line)[2] for line in rows}
    assert changes == {"g": "-11.8 %", "decode": "+11.8 %", "main": "0.0 %", "f": "0.0 %"}
    assert "shares of what is before, and of what is after" in out
    assert "added up" not in err


def test_the_title_names_the_input(folded: Path, tmp_path: Path) -> None:
    picture = tmp_path / "x.svg"
    assert convert(folded, "-o", picture) == 0
    assert '<title id="title">folded stacks of in.folded</title>' in picture.read_text()


def test_folded_text_of_perf_has_nanoseconds_other_outputs_times(capfd: pytest.CaptureFixture[str]) -> None:
    path = DATA / "perf" / "two_events.txt"
    assert convert(path, "--event-filter", "task-clock") == 0
    assert str(12 * 5025125) in capfd.readouterr().out
    assert convert(path, "--value", "time", "--to", "table", "--form", "functions") == 0
    out, err = capfd.readouterr()
    assert "60.3 ms period" in out
    assert f"total {12 * 5025125:,} nanoseconds (period)" in err


def test_help_shows_every_option_once_and_almost_all_under_headings(capsys: pytest.CaptureFixture[str]) -> None:
    grouped = [name for names in main.groups.values() for name in names]
    known = [max(param.opts, key=len) for param in main.params if isinstance(param, click.Option) and not param.hidden]
    assert sorted([*grouped, "--version"]) == sorted(known)
    assert convert("--help") == 0
    out = capsys.readouterr().out
    headings = ["Input:", "Selection:", "Transforms:", "Comparison:", "Picture", "Output:", "Other options:"]
    places = [out.index(f"\n{heading}") for heading in headings]
    assert places == sorted(places)
    assert places[2] < out.index("--max-depth") < places[3]


def on_terminal(*arguments: str | Path) -> str:
    """Output of the command on a terminal."""
    code = "import sys; from stallscope.converters.convert import main; sys.exit(main())"
    leader, follower = os.openpty()
    with subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=follower, stderr=-3) as process:
        os.close(follower)
        parts = []
        try:
            while data := os.read(leader, 1 << 16):
                parts.append(data)
        except OSError:  # the other side is closed
            pass
    os.close(leader)
    assert process.returncode == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_table(folded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = on_terminal(folded)
    assert "Functions\nself" in out and "Top-down" not in out
    assert "Top-down" in on_terminal(folded, "--to", "table")
    assert on_terminal(folded, "--to", "folded") == on_terminal(folded, "-o", "-") == FOLDED
    assert on_terminal(folded, "-o", tmp_path / "x.folded") == ""
    assert convert(folded, "--form", "top-down") == 0
    out = capfd.readouterr().out
    assert "Top-down" in out and "Functions" not in out


def test_a_table_of_threads(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.folded"
    path.write_text("rank-1/11;a 1\nrank-1/12;a;b 6\nrank-1/12;a 3\n")
    assert convert(path, "--to", "table", "--form", "threads") == 0
    assert capfd.readouterr().out.splitlines()[4:] == [
        "Threads",
        "total          thread   top function, its own share of the thread",
        "    9  90.0 %  rank-12  66.7 % b [native]",
        "    1  10.0 %  rank-11  100.0 % a [native]",
    ]
    path.write_text("a 1\n")
    assert convert(path, "--to", "table", "--form", "threads") == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "the input names no threads\n" in err


def test_threads_of_perf_need_no_option(capfd: pytest.CaptureFixture[str]) -> None:
    assert convert(DATA / "perf" / "two_events_pid_tid.txt", "--form", "threads") == 0
    assert "tiny-23546  100.0 % inner [native, tiny]" in capfd.readouterr().out


@pytest.mark.parametrize("suffix", ["pb.gz", "folded", "svg", "html", "speedscope.json", "trace.json", "md"])
def test_ranks_and_gpus_of_merged_processes_are_in_every_output(suffix: str, tmp_path: Path) -> None:
    """Processes and threads can be the roots of the stacks."""
    made = Profile([ValueType("wall", "nanoseconds")])
    for pid, rank in ((7, "31337"), (8, "41338")):
        labels = (("gpu", f"9{rank}"), ("pid", pid), ("process", "train"), ("rank", rank), ("tid", pid))
        made.samples.append(Sample((Frame("main"), Frame(f"f{pid}")), (5_000_000,), labels))
    source, path = tmp_path / "in.pb.gz", tmp_path / f"out.{suffix}"
    with source.open("wb") as file:
        pprof.save(made, file)
    form = ("--to", "table", "--form", "top-down") if suffix == "md" else ()
    assert convert("--merge", "--root", "process,rank,gpu", source, *form, "-o", path) == 0
    data = path.read_bytes()
    if suffix == "html":
        assert data
        return  # its data are packed: those of the SVG
    text = (gzip.decompress(data) if suffix == "pb.gz" else data).decode(errors="replace")
    assert all(value in text for value in ("31337", "41338", "931337", "941338"))
    if suffix == "pb.gz":
        with path.open("rb") as file:
            samples = pprof.load(file).samples
        assert [dict(each.labels) for each in samples] == [
            {"process": "train", "rank": rank, "gpu": f"9{rank}"} for rank in ("31337", "41338")
        ]
