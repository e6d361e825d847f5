from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from default_signals import in_child
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Profile
from stallscope.converters.phrases.remarks import worded
from stallscope.converters.readers import detect, parallel
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.perf import script as perf


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_MIN_PART", 1000)


def perf_text(count: int) -> bytes:
    events = ("faults", "cycles", "cycles")
    return b"".join(
        f"p{i % 3} {i % 7 + 1}/{i % 11 + 1} 1.5: {i} {events[i % 3]}:\n\t 40{i % 9} f{i % 13}+0x1 (/bin/a)\n"
        f"\t 50 main+0x2 (/bin/a)\n\n".encode()
        for i in range(1, count)
    )


def same(one: Profile, other: Profile) -> bool:
    return (sorted(one.samples, key=repr), one.lost, worded(one.comments), one.title, one.value_types) == (
        sorted(other.samples, key=repr), other.lost, worded(other.comments), other.title, other.value_types
    )  # fmt: skip


def check(path: Path, options: ReadOptions, jobs: int = 3) -> Profile:
    """Reads it alone and in parts."""
    alone = detect.read(str(path), options)
    ((name, profile),) = parallel.read_all([str(path)], options, jobs=jobs)
    assert name == alone[0]
    assert same(profile, alone[1])
    return profile


@pytest.mark.parametrize("jobs", [2, 3, 7])
@pytest.mark.parametrize("options", [ReadOptions(), ReadOptions(tid=True), ReadOptions(event="faults")])
def test_parts_give_the_same_as_the_whole(tmp_path: Path, jobs: int, options: ReadOptions) -> None:
    path = tmp_path / "x"
    path.write_bytes(perf_text(900))
    check(path, options, jobs)


def test_the_first_event_is_that_of_the_whole_input(tmp_path: Path) -> None:
    path = tmp_path / "x"
    block = b"a 1/2 1.5: 1 %b:\n\t 40 f (/bin/a)\n\n"
    path.write_bytes(block % b"first" + block % b"second" * 500)
    assert check(path, ReadOptions()).total("samples") == 1


def test_the_line_of_what_is_skipped_is_that_of_the_whole_input(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("a;b 1\n" * 900 + "bad\n" + "a;c 2\n" * 100 + "worse\n" * 3)
    profile = check(path, ReadOptions())
    assert worded(profile.comments) == [f"{path}, line 901: expected a folded stack: frame;frame;frame WEIGHT"]
    assert profile.lost == {"lines without a count": 4}


def test_a_part_without_anything_useful_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("a;b 1\n" * 2100 + "bad\n" * 2000)
    assert check(path, ReadOptions()).lost == {"lines without a count": 2000}


def test_fractions_are_rounded_as_in_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("".join(f"a;f{i % 40} {i}.37\n" for i in range(900)))
    check(path, ReadOptions(), 2)


def test_an_input_without_samples_says_so_as_alone(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("hello world\n" * 1000)
    with pytest.raises(StallscopeError, match=r"x, line 1: expected a folded stack"):
        parallel.read_all([str(path)], ReadOptions(), "folded", jobs=2)


def test_several_inputs_keep_their_order(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.gz", "b", "c")]
    paths[0].write_bytes(gzip.compress(b"packed 1\n" * 1000))
    paths[1].write_bytes(perf_text(300))
    paths[2].write_bytes(b"last 5\n")
    found = parallel.read_all([str(path) for path in paths], ReadOptions(), jobs=2)
    assert [name for name, _ in found] == ["folded", "perf", "folded"]
    assert [profile.samples[0].stack[0].name for _, profile in found] == ["packed", "main", "last"]
    assert found[0][1].total("samples") == 1000


def test_a_missing_input_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a 1\n")
    with pytest.raises(StallscopeError, match="cannot be read: No such file"):
        parallel.read_all([str(tmp_path / "x"), str(tmp_path / "missing")], ReadOptions(), jobs=2)


def test_an_error_of_one_input_ends_it_all(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a 1\n")
    (tmp_path / "y").write_bytes(gzip.compress(b"a 1\n" * 1000)[:-10])
    with pytest.raises(StallscopeError) as caught:
        parallel.read_all([str(tmp_path / "x"), str(tmp_path / "y")], ReadOptions(), "folded", jobs=2)
    assert caught.value.remedy


def test_a_process_that_dies_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(detect, "read_source", die)
    (tmp_path / "x").write_bytes(b"a 1\n" * 10)
    with pytest.raises(StallscopeError, match="ended before it was done"):
        parallel.read_all([str(tmp_path / "x")], ReadOptions(), jobs=2)


def test_interrupted_it_leaves_no_process(tmp_path: Path) -> None:
    """Every process of the session is gone, and none said anything."""
    os.mkfifo(tmp_path / "pipe")
    code = (
        "import sys; from stallscope.converters.readers import parallel\n"
        "from stallscope.converters.readers.base.options import ReadOptions\n"
        "from stallscope.converters.readers.parallel import _Task\n"
        "print('ready', flush=True)\n"
        "try:\n    parallel._run([_Task(sys.argv[1], 'folded', ReadOptions())] * 2, 2)\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "pipe")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=in_child,  # noqa: PLW1509  # it only sets signals
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    end = time.monotonic() + 30
    while len(children.read_text().split()) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (out, err) == (b"ready\ninterrupted\n", b"")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_event_that_settles_is_the_first() -> None:
    head = b"# a comment\n\n" + perf_text(30)
    assert perf.settled(head, ReadOptions(pid=True)) == ReadOptions(pid=True, event="cycles")
    assert perf.settled(b"nothing", ReadOptions()) == ReadOptions()


def test_cuts_are_after_separators(tmp_path: Path) -> None:
    path = tmp_path / "x"
    text = perf_text(200)
    path.write_bytes(text)
    cuts = parallel._cuts(str(path), len(text), 5, b"\n\n")
    assert (cuts[0], cuts[-1], len(cuts)) == (0, len(text), 6)
    assert all(text[:cut].endswith(b"\n\n") for cut in cuts[1:])
    path.write_bytes(b"x" * 5000)
    assert parallel._cuts(str(path), 5000, 5, b"\n\n") == [0, 5000]


def test_a_part_is_never_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a 1\n" + gzip.compress(b"b 1\n"))
    with parallel.open_source(str(path), (4, 8)) as source:
        assert isinstance(source, Source)
        assert source.head == b"\x1f\x8b\x08\x00"


def test_a_part_that_looks_like_a_comparison_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a 1\n" * 600 + b"".join(b"worker %d 7\n" % i for i in range(900)))
    assert [each.name for each in check(path, ReadOptions()).value_types] == ["samples"]


def test_a_comparison_is_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"".join(b"a;f%d %d 7\n" % (i, i) for i in range(900)))
    assert [each.name for each in check(path, ReadOptions()).value_types] == ["after", "before"]


def test_a_pipe_is_opened_once(tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_bytes(perf_text(50))
    with subprocess.Popen(["cp", file, pipe]):
        ((name, profile),) = parallel.read_all([str(pipe)], ReadOptions(), jobs=2)
    assert (name, profile) == detect.read(str(file), ReadOptions())


@pytest.mark.parametrize("path", ["", "nothing/here", "nul\0", "/"])
def test_what_is_no_file_is_an_error(path: str) -> None:
    with pytest.raises(StallscopeError, match="cannot be read"):
        parallel.read_all([path], ReadOptions(), jobs=2)
