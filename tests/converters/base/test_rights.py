"""The user behind sudo: what root writes for him is his, and nothing is written where he could not."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.base.rights import Owner, sudo_owner, with_rights_of
from stallscope.converters.base.safefile import check_writable, create, open_folder

STRANGER = 12345


@pytest.fixture
def as_root(require: Callable[[bool, str], None]) -> None:
    require(os.geteuid() == 0, "this needs root")


def put(path: Path, *, force: bool = False, owner: Owner | None = None) -> None:
    with create(path, force=force, owner=owner) as file:
        file.write(b"new")


@pytest.mark.parametrize(
    ("uid", "gid", "owner"),
    [
        ("1000", "1001", Owner(1000, 1001)),
        ("0", "0", None),
        ("4294967294", "0", Owner(4294967294, 0)),
        ("1000", None, None),
        (None, "1000", None),
        ("-1", "1000", None),
        ("4294967295", "1000", None),
        ("99999999999999999999", "1000", None),
        ("٣", "1000", None),
        ("1000; rm", "1000", None),
        ("", "", None),
    ],
)
def test_sudo_owner(monkeypatch: pytest.MonkeyPatch, uid: str | None, gid: str | None, owner: Owner | None) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name, value in (("SUDO_UID", uid), ("SUDO_GID", gid)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert sudo_owner() == owner


def test_no_sudo_owner_without_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "1000")
    monkeypatch.setenv("SUDO_GID", "1000")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert sudo_owner() is None


@pytest.fixture
def user(as_root: None, monkeypatch: pytest.MonkeyPatch) -> Owner:
    """User who called us by sudo."""
    owner = Owner(STRANGER, STRANGER + 1)
    monkeypatch.setenv("SUDO_UID", str(owner.uid))
    monkeypatch.setenv("SUDO_GID", str(owner.gid))
    monkeypatch.setenv("SUDO_COMMAND", "/usr/local/bin/trace-offcpu -a")
    return owner


def his(folder: Path, owner: Owner) -> Path:
    folder.mkdir()
    os.chown(folder, *owner)
    return folder


@pytest.mark.parametrize("force", [False, True])
def test_the_file_belongs_to_the_owner_from_the_first_byte(user: Owner, tmp_path: Path, force: bool) -> None:
    folder = his(tmp_path / "home", user)
    with create(folder / "a.svg", owner=user, force=force) as file:
        file.write(b"new")
        (aside,) = folder.iterdir()
        status = aside.stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (*user, 0o600)
    status = os.stat(folder / "a.svg")
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (*user, 0o600)


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o750])
@pytest.mark.parametrize("force", [False, True])
def test_nothing_is_written_where_the_user_could_not(user: Owner, tmp_path: Path, mode: int, force: bool) -> None:
    """Nothing is written to folders such as /etc/cron.d; nor through a link of the user's."""
    folder = tmp_path / "cron.d"
    folder.mkdir(mode=mode)
    os.chown(folder, 0, user.gid)
    if force:
        (folder / "a.svg").write_bytes(b"precious")
    link = his(tmp_path / "home", user) / "link"
    link.symlink_to(folder)
    os.lchown(link, *user)
    for path in (folder / "a.svg", link / "a.svg"):
        with pytest.raises(StallscopeError, match=f"user {STRANGER}, who called sudo, may not") as caught:
            put(path, force=force, owner=user)
        assert "sudo -i" in caught.value.remedy
        with open_folder(path.parent) as opened, pytest.raises(StallscopeError, match="who called sudo"):
            check_writable(path, opened)
    assert [each.read_bytes() for each in folder.iterdir()] == [b"precious"] * force


def test_a_group_of_the_user_counts_and_no_group_of_root_does(user: Owner, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    shared, roots = tmp_path / "shared", tmp_path / "roots"
    for folder, group in ((shared, user.gid), (roots, 0)):
        folder.mkdir()
        folder.chmod(0o770)
        os.chown(folder, 0, group)
    put(shared / "a.svg", owner=user)
    assert os.stat(shared / "a.svg").st_uid == user.uid
    with pytest.raises(StallscopeError, match="who called sudo"):
        put(roots / "a.svg", owner=user)


def test_files_of_others_in_a_sticky_folder_are_not_replaced(user: Owner, tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    theirs, own = folder / "theirs.svg", folder / "own.svg"
    for path, uid in ((theirs, 54321), (own, user.uid)):
        path.write_bytes(b"old")
        os.chown(path, uid, uid)
    put(own, force=True, owner=user)
    with pytest.raises(StallscopeError, match="not permitted"):
        put(theirs, force=True, owner=user)
    assert (own.read_bytes(), theirs.read_bytes()) == (b"new", b"old")
    assert sorted(os.listdir(folder)) == ["own.svg", "theirs.svg"]


def test_a_hard_link_is_replaced_and_not_written_through(user: Owner, tmp_path: Path) -> None:
    folder, victim = his(tmp_path / "home", user), tmp_path / "victim"
    victim.write_bytes(b"precious")
    os.link(victim, folder / "a.svg")
    put(folder / "a.svg", force=True, owner=user)
    assert victim.read_bytes() == b"precious"
    assert victim.stat().st_uid == 0


def test_in_a_root_shell_the_file_is_roots_where_the_user_may_not(
    user: Owner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_COMMAND", "/bin/bash")
    folder = tmp_path / "root"
    folder.mkdir(mode=0o700)
    with open_folder(folder) as opened:
        check_writable(folder / "a.svg", opened)
    put(folder / "a.svg", owner=user)
    put(his(tmp_path / "home", user) / "a.svg", owner=user)
    assert os.stat(folder / "a.svg").st_uid == 0
    assert os.stat(tmp_path / "home/a.svg").st_uid == user.uid


def test_the_rights_end_with_the_call(user: Owner, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o600)
    with pytest.raises(PermissionError):
        with_rights_of(user, lambda: os.open(secret, os.O_RDONLY))
    os.close(os.open(secret, os.O_RDONLY))
    assert os.geteuid() == 0
    status = Path("/proc/thread-self/status").read_text()
    assert "Uid:\t0\t0\t0\t0" in status
