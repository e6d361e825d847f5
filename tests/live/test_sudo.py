"""Root works for somebody else: whose files, whose command, and no link of a user leads root astray."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import NOBODY, Tracer, folded, load, open_folder_of, run, sudo
from runner import Workload

pytestmark = pytest.mark.usefixtures("live")

FORMATS = ("svg", "folded", "speedscope.json", "pb.gz")


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder of an unprivileged user."""
    with open_folder_of(NOBODY) as folder:
        yield folder


def test_outputs_belong_to_the_user(home: Path) -> None:
    options = [option for suffix in FORMATS for option in ("-o", f"out.{suffix}")]
    run(*options, "--", "sleep", 0.1, cwd=home, **sudo()).check_succeeded()
    for suffix in FORMATS:
        status = (home / f"out.{suffix}").lstat()
        assert (status.st_uid, status.st_gid, status.st_nlink) == (NOBODY, NOBODY, 1)
        assert status.st_mode & 0o777 == 0o600
    assert len(list(home.iterdir())) == len(FORMATS)


@pytest.mark.parametrize("force", [False, True])
def test_no_file_where_the_user_may_not_write(tmp_path: Path, force: bool) -> None:
    """A user who may only run our commands by sudo gets no files into /etc/cron.d by them."""
    folder = tmp_path / "cron.d"
    folder.mkdir()
    old = folder / "out.svg"
    if force:
        old.write_text("precious")
    options = ["--force"] if force else []
    cause, _ = run("-o", old, *options, "--", "sleep", 0.1, **sudo()).check_failed()
    assert cause == f"{old} cannot be written: user {NOBODY}, who called sudo, may not do that"
    assert [each.read_text() for each in folder.iterdir()] == ["precious"] * force


def test_without_sudo_they_belong_to_root(home: Path) -> None:
    run("-o", "out.svg", "--", "sleep", 0.1, cwd=home).check_succeeded()
    assert (home / "out.svg").lstat().st_uid == 0
    run("-o", "odd.svg", "--", "sleep", 0.1, cwd=home, SUDO_UID="x", SUDO_GID="-1").check_succeeded()
    assert (home / "odd.svg").lstat().st_uid == 0


def test_command_runs_as_the_user(home: Path) -> None:
    script = "id -u; id -g; id -G; echo $HOME; echo $USER; grep CapEff /proc/self/status; touch made"
    finished = run("-o", "out.svg", "--", "sh", "-c", script, cwd=home, **sudo()).check_succeeded()
    user = pwd.getpwuid(NOBODY)
    uid, gid, _, folder, name, capabilities = finished.out.splitlines()[:6]
    assert (uid, gid) == (str(user.pw_uid), str(user.pw_gid))
    assert (folder, name) == (user.pw_dir, user.pw_name)
    assert int(capabilities.split()[1], 16) == 0
    assert (home / "made").lstat().st_uid == NOBODY


def test_command_runs_as_root_without_sudo() -> None:
    finished = run("-o", "-", "--", "sh", "-c", "id -u; sleep 0.05").check_succeeded()
    assert finished.err.splitlines()[0] == "0"  # standard output is for the folded text


def test_command_of_the_user_cannot_do_what_he_cannot(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("#!/bin/sh\n")
    secret.chmod(0o700)
    cause, _ = run("-o", "-", "--", secret, **sudo()).check_failed()
    assert cause == f"cannot run '{secret}': Permission denied"


def test_user_without_an_entry(home: Path) -> None:
    """The user has no entry in a container, or with the directory service down: the command never runs as root, and
    never without a word."""
    taken = {user.pw_uid for user in pwd.getpwall()}
    uid = next(number for number in range(54321, 60000) if number not in taken)
    os.chown(home, uid, uid)
    finished = run("-o", "-", "--", "sh", "-c", "id -u > made", cwd=home, **sudo(uid, uid))
    if finished.status == 0:
        assert (home / "made").read_text() == f"{uid}\n"
    else:
        finished.check_failed()
        assert not (home / "made").exists()


@pytest.mark.parametrize("force", [False, True])
def test_existing_output_is_refused_before_the_trace(home: Path, force: bool) -> None:
    old = home / "out.svg"
    old.write_text("old")
    marker = home / "marker"
    options = ["--force"] if force else []
    finished = run("-o", old, *options, "--", "touch", marker, **sudo())
    assert marker.exists() == force
    if force:
        finished.check_succeeded()
        assert old.read_text().startswith("<?xml")
        assert old.lstat().st_uid == NOBODY
    else:
        cause, remedy = finished.check_failed()
        assert cause == f"{old} exists"
        assert "--force" in remedy
        assert old.read_text() == "old"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("dangling", [False, True])
def test_symbolic_link_is_refused_before_the_trace(home: Path, tmp_path: Path, force: bool, dangling: bool) -> None:
    victim = tmp_path / "victim"
    if not dangling:
        victim.write_text("precious")
    link = home / "out.svg"
    link.symlink_to(victim)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    marker = home / "marker"
    cause, _ = run("-o", link, *(["--force"] if force else []), "--", "touch", marker, **sudo()).check_failed()
    assert cause == f"{link} is a symbolic link and will not be written to"
    assert not marker.exists()
    assert victim.exists() != dangling
    assert dangling or victim.read_text() == "precious"
    assert link.is_symlink()


@pytest.mark.parametrize("force", [False, True])
def test_symbolic_link_swapped_in_during_the_trace(home: Path, tmp_path: Path, force: bool) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    swapped, whole = home / "out.svg", home / "out.folded"
    if force:
        swapped.write_text("old")
    options = ["--force"] if force else []
    with (
        Workload("sleeps", 1, linger=True) as workload,
        Tracer("-p", workload.pid, "-o", swapped, "-o", whole, *options, **sudo()) as tracer,
    ):
        tracer.ready()
        swapped.unlink(missing_ok=True)
        swapped.symlink_to(victim)
        finished = tracer.interrupt().finish()
        assert finished.status == 1
        assert f"trace-offcpu: {swapped} is a symbolic link and will not be written to\n" in finished.err
        assert "Traceback" not in finished.err
        assert victim.read_text() == "precious"
        assert victim.lstat().st_uid == 0
        assert swapped.is_symlink()
        assert folded(whole.read_text())
        assert sorted(home.iterdir()) == sorted([swapped, whole])


@pytest.mark.parametrize("when", ["before", "during"])
def test_folder_that_another_user_linked_is_refused(home: Path, tmp_path: Path, when: str) -> None:
    """A third user's link is no way to a folder of root's."""
    folder = home / "results"
    with Workload("sleeps", 1, linger=True) as workload:
        if when == "before":
            folder.symlink_to(tmp_path)
            os.chown(folder, 1, 1, follow_symlinks=False)
            cause, _ = run("-p", workload.pid, "-d", 0.1, "-o", folder / "out.svg", **sudo()).check_failed()
        else:
            folder.mkdir()
            os.chown(folder, NOBODY, NOBODY)
            with Tracer("-p", workload.pid, "-o", folder / "out.svg", **sudo()) as tracer:
                tracer.ready()
                folder.rmdir()
                folder.symlink_to(tmp_path)
                os.chown(folder, 1, 1, follow_symlinks=False)
                cause, _ = tracer.interrupt().finish().err.splitlines()
        assert str(folder) in cause
        assert "symbolic link that user 1 made" in cause
        assert list(tmp_path.iterdir()) == []


def test_output_taken_by_somebody_during_the_trace(home: Path) -> None:
    path = home / "out.pb.gz"
    with (
        Workload("sleeps", 1, linger=True) as workload,
        Tracer("-p", workload.pid, "-o", path, **sudo()) as tracer,
    ):
        tracer.ready()
        path.write_text("theirs")
        tracer.interrupt()
        finished = tracer.finish()
        assert finished.status == 1
        assert f"trace-offcpu: {path} exists\n" in finished.err
        assert path.read_text() == "theirs"
        assert list(home.iterdir()) == [path]


def test_same_output_again_with_force(home: Path) -> None:
    """A hard link to a file of somebody else's is replaced, not written through."""
    victim = home / "victim"
    victim.write_text("precious")
    path = home / "out.pb.gz"
    os.link(victim, path)
    run("--force", "-o", path, "--", "sleep", 0.1, **sudo()).check_succeeded()
    assert victim.read_text() == "precious"
    assert load(path).samples
