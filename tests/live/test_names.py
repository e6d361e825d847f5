"""Names of native frames to the end: stripped programs, debuginfod, source lines and inlined functions."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Finished, folded, load, run
from debug_server import DebugServer
from stallscope.converters.model import Frame, Profile
from two_names import Built, Running, build, line_of
from watching import command_path, watch

pytestmark = pytest.mark.usefixtures("live")

SECONDS = 1


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("built") / "files")


@pytest.fixture
def stripped(built: Built, tmp_path: Path) -> Built:
    """Nothing says where its debug files are."""
    folder = tmp_path / "stripped"
    folder.mkdir()
    for path in built:
        subprocess.run(["objcopy", "--strip-all", path, folder / path.name], check=True)
    return Built(folder / "app", folder / "libpart.so")


@pytest.fixture
def program(built: Built) -> Iterator[Running]:
    with Running(built.app) as running:
        yield running


def trace(pid: int, folder: Path, *options: str, **environment: Any) -> tuple[Finished, Profile]:
    """Traces without servers that the machine knows of."""
    output = folder / "trace.pb.gz"
    arguments = ("-p", pid, "-d", SECONDS, "-o", output, *options)
    finished = run(*arguments, **{"DEBUGINFOD_URLS": "", **environment}).check_succeeded()
    return finished, load(output)


def own_frames(profile: Profile, files: Built) -> list[tuple[Frame, ...]]:
    """Frames of these files in each sample that has any; outermost first."""
    paths = set(map(str, files))
    own = [tuple(f for f in s.stack if f.module and f.module.path in paths) for s in profile.samples]
    return [frames for frames in own if frames]


def test_functions_of_a_stripped_program_fold_together(stripped: Built, built: Built, tmp_path: Path) -> None:
    """in_program calls twice: two return addresses, one function. in_library is exported and keeps its name."""
    listed = subprocess.run(["nm", built.app], capture_output=True, text=True, check=True).stdout
    begin = next(int(line.split()[0], 16) for line in listed.splitlines() if line.endswith(" in_program"))
    output = tmp_path / "out.folded"
    with Running(stripped.app) as running:
        finished, profile = trace(running.pid, tmp_path, "-o", str(output))
    mine = [frames for frames in own_frames(profile, stripped) if len(frames) == 5]
    assert {frame.name for frames in mine for frame in frames[2:3]} == {f"[app!fn_{begin:#x}]"}
    assert len({frame.address for frames in mine for frame in frames[2:3]}) == 2
    assert {frames[3].name for frames in mine} == {"in_library"}
    assert all(re.fullmatch(r"\[libpart.so!fn_0x[0-9a-f]+\]", frames[4].name) for frames in mine)
    # One stack in the text, whose two return addresses the profile still tells apart.
    waits = {stack.partition("clock_nanosleep")[0] for stack in folded(output.read_text()) if ";nanosleep;" in stack}
    assert len(waits) == 1
    assert profile.lost["frames without a name"] >= 4
    assert "frames without a name: " in finished.out


def test_names_from_debuginfod(
    require: Callable[[bool, str], None], stripped: Built, built: Built, tmp_path: Path
) -> None:
    require(shutil.which("debuginfod") is not None, "there is no debuginfod")
    with DebugServer(built.app, tmp_path / "served") as server, Running(stripped.app) as running:
        _, profile = trace(running.pid, tmp_path, **server.environment(tmp_path / "cache"))
    names = [tuple(frame.name for frame in frames) for frames in own_frames(profile, stripped)]
    waiting = [name for name in names if len(name) == 5]
    assert waiting
    assert {name[:4] for name in waiting} == {("_start", "main", "in_program", "in_library")}
    assert all(name[4].startswith("[libpart.so!fn_0x") for name in waiting)  # of which the server has nothing


def test_a_debuginfod_that_is_not_there_costs_no_trace(stripped: Built, tmp_path: Path) -> None:
    with Running(stripped.app) as running:
        cache = str(tmp_path / "cache")
        finished, profile = trace(
            running.pid, tmp_path, DEBUGINFOD_URLS="http://127.0.0.1:1", DEBUGINFOD_CACHE_PATH=cache
        )
    assert own_frames(profile, stripped)
    assert "Traceback" not in finished.tty


def test_ctrl_c_waits_for_no_silent_server(stripped: Built, tmp_path: Path) -> None:
    """Every file without debug information is asked for with --lines."""
    words = (command_path("trace-offcpu"), "--lines", "-o", tmp_path / "out.folded")
    with socket.create_server(("127.0.0.1", 0)) as server, Running(stripped.app) as running:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        environment = {"DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache")}
        without = watch(*words, "-p", running.pid, patience=60, DEBUGINFOD_URLS="")
        silent = watch(*words, "-p", running.pid, "--force", patience=60, **environment)
    assert without.ended is not None, without.text
    assert silent.ended is not None, "it does not end within 15 s"
    assert silent.ended < without.ended + 2
    assert silent.status == 0
    assert "after Ctrl-C nothing came from the server" in silent.text


def test_lines(program: Running, built: Built, tmp_path: Path) -> None:
    _, profile = trace(program.pid, tmp_path, "--lines")
    waiting = [
        [(frame.name, Path(frame.file).name, frame.line) for frame in frames[1:]]
        for frames in own_frames(profile, built)
        if frames[-1].name == "hidden_part" and any(frame.name == "main" for frame in frames)
    ]
    calls = {frames[1] for frames in waiting}
    begin = line_of("void in_program", library=False)
    assert calls == {("in_program", "app.c", begin + 1), ("in_program", "app.c", begin + 3)}
    rest = {(frames[0], *frames[2:]) for frames in waiting}
    assert rest == {
        (
            ("main", "app.c", line_of("        in_program();", library=False)),
            ("in_library", "part.c", line_of("void in_library", library=True)),
            ("inlined_part", "part.c", line_of("void inlined_part", library=True)),
            ("hidden_part", "part.c", line_of("void hidden_part", library=True)),
        )
    }
