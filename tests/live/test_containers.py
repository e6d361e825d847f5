"""Programs in other mount and pid namespaces: at the paths of their files there is nothing outside, or another file."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Finished, Tracer, folded, load, run
from container import can_contain
from stacks_truth import reaches_start
from stallscope.converters.model import Profile
from two_names import FUNCTIONS, Built, Running, build, inside, run_contained

pytestmark = pytest.mark.usefixtures("live")

SECONDS = 1
BRIEFLY = 0.3
"""Seconds where only names are looked at."""


@pytest.fixture(autouse=True)
def _contained(require: Callable[[bool, str], None]) -> None:
    require(can_contain(), "new namespaces and mounts need root")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("built") / "files")


@pytest.fixture(scope="module")
def decoy(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("decoy") / "files", decoy=True)


@pytest.fixture(params=["nothing outside", "another outside"])
def place(request: pytest.FixtureRequest, tmp_path: Path, decoy: Built) -> Path:
    """Place of the program, for those inside."""
    folder = tmp_path / "place"
    folder.mkdir()
    if request.param == "another outside":
        shutil.copy(decoy.app, folder)
        shutil.copy(decoy.library, folder)
    return folder


@pytest.fixture(params=["tmpfs", "overlay"])
def running(request: pytest.FixtureRequest, place: Path, built: Built) -> Iterator[Running]:
    with run_contained(request.param, place, built.app.parent) as started:
        yield started


def check(profile: Profile, place: Path) -> None:
    """Every stack of the program's loop is whole, and each frame of its own files has its name."""
    time_ns = {True: 0, False: 0}
    for sample in profile.samples:
        names = tuple(f.name for f in sample.stack if f.module and f.module.path.startswith(f"{place}/"))
        whole = reaches_start(sample.stack) and (names == ("_start", *FUNCTIONS[: len(names) - 1]))
        time_ns[whole] += sample.values[0]
        assert not [name for name in names if name.startswith(("[", "wrong_"))], names
    assert time_ns[True] > 0.5e9 * SECONDS, (time_ns, profile.comments, profile.lost)
    # A thread that is killed may wait for a core when its memory is gone already.
    assert time_ns[True] >= 0.9 * sum(time_ns.values()), (time_ns, profile.comments, profile.lost)
    modules = {frame.module for sample in profile.samples for frame in sample.stack if frame.module}
    ours = {module.path for module in modules if module.path.startswith(f"{place}/")}
    assert ours == {f"{place}/app", f"{place}/libpart.so"}


def trace(pid: int, folder: Path, *options: str) -> Profile:
    output = folder / "trace.pb.gz"
    run("-p", pid, "-d", SECONDS, "-o", output, *options).check_succeeded()
    return load(output)


def test_names_are_those_of_the_files_inside(running: Running, place: Path, tmp_path: Path) -> None:
    check(trace(running.pid, tmp_path), place)


def test_deleted(running: Running, place: Path, tmp_path: Path) -> None:
    for name in ("app", "libpart.so"):
        inside(running, place / name).unlink()
    check(trace(running.pid, tmp_path), place)


def test_replaced(running: Running, place: Path, decoy: Built, tmp_path: Path) -> None:
    for path in decoy:
        new = inside(running, place / "new")
        shutil.copy(path, new)
        new.replace(new.with_name(path.name))
    check(trace(running.pid, tmp_path), place)


def test_gone_before_the_trace_ends(running: Running, place: Path, tmp_path: Path) -> None:
    """The container's file system goes with it: what is named was opened while it lived."""
    output = tmp_path / "trace.pb.gz"
    with Tracer("-p", running.pid, "-o", output) as tracer:
        tracer.ready()
        time.sleep(SECONDS)
        running.kill()
        tracer.finish().check_succeeded()
    check(load(output), place)


def test_debug_files_of_the_container(place: Path, built: Built, decoy: Built, tmp_path: Path) -> None:
    """Debug files are found by debug link, beside the program: inside its own, outside that of another program."""
    files = tmp_path / "stripped"
    files.mkdir()
    for path in built:
        debug = files / f"{path.name}.debug"
        subprocess.run(["objcopy", "--only-keep-debug", path, debug], check=True)
        target = files / path.name
        subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", path, target], check=True)
    for path in decoy:
        subprocess.run(["objcopy", "--only-keep-debug", path, place / f"{path.name}.debug"], check=True)
    with run_contained("tmpfs", place, files) as started:
        without = trace(started.pid, tmp_path)
        names = {frame.name for sample in without.samples for frame in sample.stack}
        assert not names & {"in_program", "hidden_part", "wrong_program", "wrong_hidden"}
        assert any(name.startswith("[libpart.so!fn_0x") for name in names)
        for path in built:
            shutil.copy(files / f"{path.name}.debug", inside(started, place))
        (tmp_path / "trace.pb.gz").unlink()
        check(trace(started.pid, tmp_path), place)


def both(running: Running, folder: Path, *options: str) -> tuple[Finished, set[str]]:
    """The run, and the processes of its folded text, which is out.folded."""
    output = folder / "out.folded"
    finished = run("-p", running.pid, "-d", BRIEFLY, "-o", output, *options).check_succeeded()
    return finished, {stack.partition(";")[0] for stack in folded(output.read_text())}


def test_both_process_ids(place: Path, built: Built, tmp_path: Path) -> None:
    with run_contained("tmpfs", place, built.app.parent) as running:
        outer, inner = running.pid, running.pid_inside
        assert outer != inner
        profile = trace(outer, tmp_path, "--container-pid")
        finished, roots = both(running, tmp_path, "--container-pid")
        answer, _ = both(running, tmp_path, "--container-pid", "--json", "--force")
        plain, plain_roots = both(running, tmp_path, "--force")
    assert {(s.label("pid"), s.label("process")) for s in profile.samples} == {(outer, f"app ({inner} inside)")}
    assert {(t.pid, t.process, t.thread) for t in profile.threads} == {(outer, f"app ({inner} inside)", "app")}
    assert f"app ({inner} inside) (pid {outer})" in finished.out
    assert roots == {f"app_({inner}_inside)-{outer}"}
    assert json.loads(answer.out)["processes"] == [{"name": f"app ({inner} inside)", "pids": [outer], "ended": 0}]
    assert f"app (pid {outer})" in plain.out
    assert plain_roots == {f"app-{outer}"}


def test_process_ids_of_the_host_need_no_second_one(built: Built, tmp_path: Path) -> None:
    with Running(built.app) as running:
        _, roots = both(running, tmp_path, "--container-pid")
    assert roots == {f"app-{running.pid}"}
