"""Users who can make a reader wait."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stallscope.tracers.outside.mounts import Mounts
from stallscope.tracers.outside.owners import UNKNOWN, user_of, user_of_mount, user_of_path

pytestmark = pytest.mark.usefixtures("root")

USER, SUBORDINATE = 54_321, 1_054_321
_AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--")
_SLEEP = "echo $$; exec sleep 60"


@contextmanager
def running(*command: str) -> Iterator[int]:
    """A process that says its id."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"%d\n" % process.pid
            yield process.pid
        finally:
            process.kill()


def test_a_process() -> None:
    assert user_of(os.getpid()) == os.getuid()
    assert user_of(1 << 22) == UNKNOWN
    with running(*_AS_USER, "sh", "-c", _SLEEP) as pid:
        assert user_of(pid) == USER


def test_who_has_begun_a_setuid_program(tmp_path: Path) -> None:
    with running("setpriv", f"--ruid={USER}", "--clear-groups", "--", "sh", "-p", "-c", _SLEEP) as pid:
        assert os.stat(f"/proc/{pid}").st_uid == 0
        assert user_of(pid) == USER


def test_a_user_namespace_is_of_its_maker() -> None:
    """A namespace inside it is its maker's, too, whatever the id there."""
    nested = ("unshare", "-Ur", "unshare", "-U", "sh", "-c", _SLEEP)
    with running(*_AS_USER, *nested) as pid:
        assert user_of(pid) == USER


def test_subordinate_ids_are_of_the_maker() -> None:
    """The administrator's newuidmap gives them to him."""
    wait = "echo; read line; exec setpriv --reuid=7 sh -c 'echo; exec sleep 60'"
    command = [*_AS_USER, "unshare", "-U", "sh", "-c", wait]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdin and process.stdout
            process.stdout.readline()
            Path(f"/proc/{process.pid}/uid_map").write_text(f"0 {USER} 1\n7 {SUBORDINATE} 1\n")
            process.stdin.write(b"\n")
            process.stdin.flush()
            process.stdout.readline()
            assert f"Uid:\t{SUBORDINATE}\t" in Path(f"/proc/{process.pid}/status").read_text()
            assert user_of(process.pid) == USER
        finally:
            process.kill()


def test_paths(tmp_path: Path) -> None:
    """Paths belong to whoever can decide where they lead."""
    assert os.stat(tmp_path).st_uid == 0
    folder = tmp_path / "folder"
    folder.mkdir()
    his = folder / "his"
    his.mkdir()
    os.chown(his, USER, USER)
    (folder / "file").touch()
    (folder / "link").symlink_to("../folder/his/../file")
    (folder / "to_root").symlink_to("/")
    own = folder / "own"
    own.symlink_to(folder / "file")
    os.chown(own, USER, USER, follow_symlinks=False)
    public = folder / "public"
    public.mkdir()
    public.chmod(0o1777)
    for path, user in (
        ("file", 0),
        ("absent", 0),
        ("his/absent/file", USER),
        ("own", USER),
        ("link", USER),
        ("to_root/etc/passwd", 0),
        ("public/absent", UNKNOWN),
    ):
        assert user_of_path(os.fsencode(folder / path), None, 0, Mounts(0)) == user, path
    root = os.open(folder, os.O_PATH)
    assert user_of_path(b"/../../file", root, 0, Mounts(0)) == 0
    assert user_of_path(b"/his", root, 0, Mounts(0)) == USER
    os.close(root)
    (folder / "loop").symlink_to("loop")
    assert user_of_path(os.fsencode(folder / "loop"), None, 0, Mounts(0)) in (0, UNKNOWN)


def test_mounts_in_his_namespace() -> None:
    """The mount is his whatever is there: it can be FUSE below something else."""
    mount = f"mount -t tmpfs none /mnt && {_SLEEP}"
    with running(*_AS_USER, "unshare", "-Urm", "sh", "-c", mount) as pid:
        root = os.open(f"/proc/{pid}/root", os.O_PATH)
        assert user_of_path(b"/mnt/x", root, pid, Mounts(pid)) == USER
        here = os.open(f"/proc/{pid}/root/mnt", os.O_PATH)
        assert user_of_mount(here, 0, Mounts(0)) == UNKNOWN
        os.close(here)
        os.close(root)
