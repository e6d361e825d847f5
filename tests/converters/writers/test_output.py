from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import pytest
from stallscope.converters import pprof
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.writers import output
from stallscope.converters.writers.output import Owner, WriteOptions

PROFILE = Profile([ValueType("off-cpu", "nanoseconds")], [Sample((Frame("main"), Frame("read")), (5_000_000,))])


def test_the_suffix_chooses_the_format(tmp_path: Path) -> None:
    for suffix in (".folded", ".speedscope.json", ".pb.gz", ".PB.GZ"):
        output.write(PROFILE, tmp_path / f"x{suffix}")
    assert (tmp_path / "x.folded").read_text() == "main;read 5000\n"
    assert json.loads((tmp_path / "x.speedscope.json").read_text())["profiles"][0]["weights"] == [5_000_000]
    assert gzip.decompress((tmp_path / "x.pb.gz").read_bytes())
    with open(tmp_path / "x.PB.GZ", "rb") as file:
        assert pprof.load(file) == PROFILE
    assert sorted(os.listdir(tmp_path)) == ["x.PB.GZ", "x.folded", "x.pb.gz", "x.speedscope.json"]


def test_every_suffix_has_a_writer() -> None:
    pictures, traces = [".svg", ".html"], [".speedscope.json", ".trace.json", ".pftrace"]
    graphs = [".dot", ".graphml", ".graph.json"]
    assert output.suffixes() == [".folded", *pictures, *traces, ".pb.gz", ".md", *graphs]
    assert all(callable(output.writer_for("x" + suffix).write) for suffix in output.suffixes())


def test_every_format_has_a_writer_and_no_two_the_same() -> None:
    writers = [output.writer_for("-", name) for name in output.formats()]
    assert len(set(writers)) == len(output.formats()) == 12


def test_the_format_of_a_path() -> None:
    assert [output.format_of(path) for path in ("-", "a.svg", "b.Trace.JSON")] == ["folded", "svg", "chrome"]
    assert output.format_of("-", "table") == output.format_of("a.txt", "table") == "table"
    assert output.format_of("a.svg", "table") == "svg"


def test_a_format_decides_where_the_path_does_not(tmp_path: Path) -> None:
    for name, options in (
        ("x.out", WriteOptions(format="markdown")),
        ("x.folded", WriteOptions(format="markdown")),
        ("x.json", WriteOptions(format="speedscope")),
    ):
        output.check([tmp_path / name], format_name=options.format)
        output.write(PROFILE, tmp_path / name, options)
    assert (tmp_path / "x.out").read_text().startswith("# Profile\n")
    assert (tmp_path / "x.folded").read_text() == "main;read 5000\n"
    assert "profiles" in json.loads((tmp_path / "x.json").read_text())


def test_a_format_on_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    output.write(PROFILE, "-", WriteOptions(format="table", form="functions"))
    assert b"Functions\n" in capfdbinary.readouterr().out
    output.write(PROFILE, "-")
    assert capfdbinary.readouterr().out == b"main;read 5000\n"


@pytest.mark.parametrize("path", ["x.png", "x.json", "x", "", "x.svg.gz", "pb.gz", "x.txt", "--"])
def test_an_unknown_suffix(path: str) -> None:
    with pytest.raises(StallscopeError) as caught:
        output.check([path])
    assert caught.value.exit_code == 2
    assert all(suffix in caught.value.remedy for suffix in output.suffixes())
    with pytest.raises(StallscopeError, match="no format"):
        output.write(PROFILE, path)


def test_options_reach_the_writer(tmp_path: Path) -> None:
    with pytest.raises(StallscopeError, match="nothing"):
        output.write(PROFILE, tmp_path / "x.folded", WriteOptions(value="nothing"))
    assert os.listdir(tmp_path) == []


def test_force_and_owner_reach_the_file(tmp_path: Path) -> None:
    owner = Owner(os.geteuid(), os.getegid())
    output.write(PROFILE, tmp_path / "x.folded", owner=owner)
    with pytest.raises(StallscopeError, match="exists"):
        output.write(PROFILE, tmp_path / "x.folded", owner=owner)
    output.write(PROFILE, tmp_path / "x.folded", force=True, owner=owner)


# check


def test_check_accepts_what_write_can_write(tmp_path: Path) -> None:
    output.check([tmp_path / "a.svg", tmp_path / "b.svg", "-"])
    (tmp_path / "a.svg").touch()
    output.check([tmp_path / "a.svg"], force=True)
    assert os.listdir(tmp_path) == ["a.svg"]


def test_check_refuses_what_write_would_refuse(tmp_path: Path) -> None:
    (tmp_path / "old.svg").touch()
    (tmp_path / "link.svg").symlink_to("old.svg")
    (tmp_path / "folder.svg").mkdir()
    for path, cause in {
        "old.svg": "exists",
        "link.svg": "symbolic link",
        "folder.svg": "is a folder",
        "missing/a.svg": "No such file",
        "old.svg/a.svg": "Not a directory",
    }.items():
        with pytest.raises(StallscopeError, match=cause) as caught:
            output.check([tmp_path / path])
        assert caught.value.exit_code == 1
        assert caught.value.remedy


def test_check_refuses_a_folder_without_write_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    with pytest.raises(StallscopeError, match="read-only"):
        output.check([tmp_path / "a.svg"])


def test_check_finds_the_same_file_under_two_paths(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "here").symlink_to(tmp_path)
    for twin in ("a.svg", "./a.svg", "sub/../a.svg", "here/a.svg"):
        with pytest.raises(StallscopeError, match="twice") as caught:
            output.check([tmp_path / "a.svg", f"{tmp_path}/{twin}"])
        assert caught.value.exit_code == 2
    with pytest.raises(StallscopeError, match="twice"):
        output.check(["-", "-"])
    output.check([tmp_path / "a.svg", tmp_path / "sub/a.svg"])


# Several outputs


def test_one_failure_does_not_lose_the_other_outputs(tmp_path: Path) -> None:
    (tmp_path / "b.folded").touch()
    with pytest.raises(StallscopeError, match=r"b\.folded exists"):
        output.write_all(PROFILE, [tmp_path / "a.pb.gz", tmp_path / "b.folded", tmp_path / "c.folded"])
    assert sorted(os.listdir(tmp_path)) == ["a.pb.gz", "b.folded", "c.folded"]
    assert (tmp_path / "b.folded").read_bytes() == b""


def test_all_failures_are_named(tmp_path: Path) -> None:
    (tmp_path / "b.folded").touch()
    paths = [tmp_path / "no/a.svg", tmp_path / "b.folded", tmp_path / "c.folded", tmp_path / "d.unknown"]
    with pytest.raises(StallscopeError) as caught:
        output.write_all(PROFILE, paths)
    assert caught.value.cause.startswith("3 of 4 outputs were not written: ")
    assert all(name in caught.value.cause for name in ("/no", "b.folded", "d.unknown"))
    assert "--force" in caught.value.remedy
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.cause + caught.value.remedy
    assert (tmp_path / "c.folded").exists()


def test_a_defect_in_a_writer_does_not_lose_the_other_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_profile: Profile, file: BinaryIO, _options: WriteOptions) -> None:
        file.write(b"half")
        raise ZeroDivisionError

    real, defective = output.writer_for, SimpleNamespace(write=write)
    monkeypatch.setattr(output, "writer_for", lambda path, _="": defective if "bad" in str(path) else real(path))
    with pytest.raises(ZeroDivisionError):
        output.write_all(PROFILE, [tmp_path / "bad.svg", tmp_path / "good.pb.gz"])
    assert os.listdir(tmp_path) == ["good.pb.gz"]


def test_ctrl_c_ends_it_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_profile: Profile, _file: BinaryIO, _options: WriteOptions) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(output, "writer_for", lambda *_: SimpleNamespace(write=write))
    with pytest.raises(KeyboardInterrupt):
        output.write_all(PROFILE, [tmp_path / "a.svg", tmp_path / "b.svg"])
    assert os.listdir(tmp_path) == []


# Names


def test_default_path_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda _format: "20261120-231502")
    first = output.default_path("offcpu", tmp_path)
    assert first == tmp_path / "offcpu-20261120-231502.svg"
    first.symlink_to("nowhere")
    second = output.default_path("offcpu", tmp_path)
    assert second == tmp_path / "offcpu-20261120-231502-2.svg"
    second.touch()
    assert output.default_path("offcpu", tmp_path).name == "offcpu-20261120-231502-3.svg"
    assert output.default_path("offcpu", tmp_path, ".pb.gz").name == "offcpu-20261120-231502.pb.gz"


def test_default_path_is_relative_to_the_current_folder() -> None:
    assert re.fullmatch(r"offcpu-\d{8}-\d{6}\.svg", str(output.default_path("offcpu")))


# Standard output, in a process of its own

SCRIPT = """
import sys
from stallscope.converters.writers import output
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import *
samples = [Sample((Frame(f"f{i}"),), (5000,)) for i in range(50_000)]
try:
    output.write_all(Profile([ValueType("off-cpu", "nanoseconds")], samples), ["-"])
except StallscopeError as error:
    print(error.cause, file=sys.stderr)
    sys.exit(error.exit_code)
"""


def run(stdout: int) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=stdout, stderr=subprocess.PIPE, text=True)


def test_standard_output() -> None:
    with run(subprocess.PIPE) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("f0 5\n")
    assert out.count("\n") == 50_000


def test_a_reader_that_goes_away_is_a_normal_end() -> None:
    with run(subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(3) == "f0 "
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 0


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1"])
def test_standard_output_by_its_path(path: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    output.check([path])
    output.write_all(PROFILE, [path])
    assert capfdbinary.readouterr().out == b"main;read 5000\n"
    with pytest.raises(StallscopeError, match="twice"):
        output.check([path, "-"])


def test_an_open_file_by_its_number() -> None:
    """An open file is written to as in: -o >(program)."""
    read, write = os.pipe()
    path = f"/dev/fd/{write}"
    options = WriteOptions(format="folded")
    output.check([path], format_name="folded")
    with pytest.raises(StallscopeError, match="stands for no format") as caught:
        output.check([path])
    assert caught.value.remedy.startswith("use one of: .folded")
    assert caught.value.remedy.endswith("trace-convert takes --to FORMAT, too")
    output.write_all(PROFILE, [path], options)
    assert os.read(read, 100) == b"main;read 5000\n"
    with pytest.raises(StallscopeError, match=f"/dev/fd/{read} is not open for writing"):
        output.check([f"/dev/fd/{read}"], format_name="folded")
    os.close(read)
    with pytest.raises(StallscopeError, match="cannot be written: Broken pipe"):
        output.write_all(PROFILE, [path], options)
    os.close(write)
    with pytest.raises(StallscopeError, match="is not open for writing"):
        output.check([path], format_name="folded")


def test_what_keeps_nothing_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    paths = ["/dev/null", str(pipe)]
    output.check(paths, format_name="folded")
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        output.write_all(PROFILE, paths, WriteOptions(format="folded"))
        assert reader.communicate(timeout=60)[0] == b"main;read 5000\n"


def test_standard_output_on_a_full_disk() -> None:
    with open("/dev/full", "wb") as full, run(full.fileno()) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err == "standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("name", ["x.folded", "x.trace.json", "x.speedscope.json"])
def test_what_viewers_read_packed_is_written_so(tmp_path: Path, name: str) -> None:
    profile = Profile([ValueType("samples", "count")], [Sample((Frame("main"),), (3,))])
    output.write(profile, tmp_path / name)
    output.write(profile, tmp_path / f"{name}.gz")
    assert gzip.decompress((tmp_path / f"{name}.gz").read_bytes()) == (tmp_path / name).read_bytes()


def test_a_packed_picture_is_no_format(tmp_path: Path) -> None:
    with pytest.raises(StallscopeError, match="stands for no format"):
        output.format_of(tmp_path / "x.svg.gz")
