"""Writing in folders that somebody else may control. Real file systems, real limits."""

from __future__ import annotations

import errno
import os
import resource
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from stallscope.converters.base import safefile
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.base.rights import Owner
from stallscope.converters.base.safefile import create, open_folder

STRANGER = 12345


@pytest.fixture
def as_root() -> None:
    if os.geteuid() != 0:
        if os.environ.get("REQUIRE_LIVE") == "1":
            pytest.fail("this test needs root")
        pytest.skip("needs root")


@pytest.fixture
def tiny(as_root: None, tmp_path: Path) -> Iterator[Path]:
    """A file system with 64 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def put(
    path: Path, content: bytes = b"new", *, force: bool = False, owner: Owner | None = None, mode: int = 0o600
) -> None:
    with create(path, force=force, owner=owner, mode=mode) as file:
        file.write(content)


def test_a_new_file_and_nothing_beside_it(tmp_path: Path) -> None:
    put(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.svg"]
    assert os.stat(tmp_path / "a.svg").st_nlink == 1


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640])
@pytest.mark.parametrize("force", [False, True])
def test_the_mode_is_the_one_asked_for(tmp_path: Path, umask: int, mode: int, force: bool) -> None:
    """The mode depends on neither the umask nor the mode of the file that is replaced."""
    path = tmp_path / "a.svg"
    if force:
        path.write_bytes(b"old")
        path.chmod(0o666)
    before = os.umask(umask)
    try:
        put(path, mode=mode, force=force)
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(path).st_mode) == mode


def test_nobody_else_can_read_it_before_it_is_complete(tmp_path: Path) -> None:
    with create(tmp_path / "a.svg", mode=0o644) as file:
        file.write(b"half")
        file.flush()
        (aside,) = tmp_path.iterdir()
        assert stat.S_IMODE(aside.stat().st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "a.svg").st_mode) == 0o644


def test_the_name_appears_only_when_the_content_is_complete(tmp_path: Path) -> None:
    with create(tmp_path / "a.svg") as file:
        file.write(b"half")
        file.flush()
        assert "a.svg" not in os.listdir(tmp_path)


def test_an_existing_file_is_kept_without_force_and_replaced_with_it(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    path.write_bytes(b"old")
    with pytest.raises(StallscopeError, match="exists") as caught:
        put(path)
    assert "--force" in caught.value.remedy
    assert path.read_bytes() == b"old"
    put(path, force=True)
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.svg"]


def test_a_file_that_appears_meanwhile_is_kept_without_force(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    with pytest.raises(StallscopeError, match="exists"), create(path) as file:
        file.write(b"new")
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["a.svg"]


@pytest.mark.parametrize("error", [errno.EPERM, errno.EOPNOTSUPP])
def test_file_systems_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "a.svg"
    put(path)
    assert path.read_bytes() == b"new"
    path.unlink()
    with pytest.raises(StallscopeError, match="File exists"), create(path) as file:
        file.write(b"new")
        path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["a.svg"]


@pytest.mark.parametrize("force", [False, True])
def test_no_symbolic_link_is_written_through(tmp_path: Path, force: bool) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    path = tmp_path / "a.svg"
    for target in (victim, tmp_path / "not-there"):
        path.symlink_to(target)
        with pytest.raises(StallscopeError, match="symbolic link"):
            put(path, force=force)
        path.unlink()
    assert victim.read_bytes() == b"precious"
    assert os.listdir(tmp_path) == ["victim"]


@pytest.mark.parametrize("force", [False, True])
def test_a_link_put_there_meanwhile_is_not_followed(tmp_path: Path, force: bool) -> None:
    victim, path = tmp_path / "victim", tmp_path / "a.svg"
    victim.write_bytes(b"precious")
    with pytest.raises(StallscopeError, match="symbolic link"), create(path, force=force) as file:
        file.write(b"new")
        path.symlink_to(victim)
    assert victim.read_bytes() == b"precious"
    assert path.is_symlink()


def test_a_folder_exchanged_meanwhile_changes_nothing(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    with create(folder / "a.svg") as file:
        file.write(b"new")
        folder.rename(tmp_path / "moved")
        folder.symlink_to(elsewhere)
    assert os.listdir(elsewhere) == []
    assert (tmp_path / "moved/a.svg").read_bytes() == b"new"


@pytest.mark.parametrize("kind", ["folder", "socket"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.svg"
    if kind == "folder":
        path.mkdir()
    else:
        monkeypatch.chdir(tmp_path)  # the path of a socket must be short
        socket.socket(socket.AF_UNIX).bind(path.name)
    with pytest.raises(StallscopeError, match=f"is a {kind} and will not be written to"):
        put(path, force=True)


def test_devices_are_refused_except_null() -> None:
    put(Path("/dev/null"))
    put(Path("/dev/null"), force=True, owner=Owner(STRANGER, STRANGER))
    status = os.stat("/dev/null")
    assert (status.st_uid, stat.S_ISCHR(status.st_mode)) == (0, True)
    with pytest.raises(StallscopeError, match="/dev/zero is a device"):
        put(Path("/dev/zero"), force=True)


@pytest.mark.parametrize("force", [False, True])
def test_a_named_pipe_gets_the_content_and_stays(tmp_path: Path, force: bool) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as reader:
        put(path, force=force)
        assert reader.communicate(timeout=60)[0] == b"new"
    assert stat.S_ISFIFO(os.lstat(path).st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_named_pipe_without_its_reader_is_told(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with (
        subprocess.Popen(["head", "-c", "1", path], stdout=subprocess.DEVNULL),
        pytest.raises(StallscopeError, match="pipe cannot be written: Broken pipe"),
    ):
        put(path, b"x" * (1 << 22))


def test_a_named_pipe_of_somebody_else_is_refused(as_root: None, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    os.chown(path, STRANGER, STRANGER)
    with pytest.raises(StallscopeError, match="is a named pipe that another user made"):
        put(path, force=True)
    (tmp_path / "link").symlink_to("/dev/null")
    with pytest.raises(StallscopeError, match="is a symbolic link"):
        put(tmp_path / "link", force=True)


@pytest.mark.parametrize("name", ["..", "/"])
def test_what_is_no_file_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(StallscopeError) as caught:
        put(tmp_path / name)
    assert caught.value.exit_code in (1, 2)


def test_a_missing_folder_and_a_file_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in ("missing", "file"):
        with pytest.raises(StallscopeError, match="cannot be used"):
            put(tmp_path / folder / "a.svg")


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(StallscopeError, match="too long"):
        put(tmp_path / ("a" * 300))
    assert os.listdir(tmp_path) == []


def test_hostile_paths_are_shown_as_text(tmp_path: Path) -> None:
    with pytest.raises(StallscopeError) as caught:
        put(tmp_path / "\x1b[2J" / "a.svg")
    assert "\x1b" not in str(caught.value)


# Links on the way to the folder


def test_links_of_a_trusted_user_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real/deep").mkdir(parents=True)
    (tmp_path / "absolute").symlink_to(tmp_path / "real")
    (tmp_path / "real/relative").symlink_to("../absolute/deep/.")
    put(tmp_path / "absolute/relative/../../real/relative/a.svg")
    assert (tmp_path / "real/deep/a.svg").read_bytes() == b"new"


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(StallscopeError, match="Too many levels"):
        put(tmp_path / "a/x.svg")


def test_root_does_not_follow_a_strangers_link(as_root: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "out").symlink_to("etc")
    os.lchown(tmp_path / "out", STRANGER, STRANGER)
    for folder in ("out", "out/."):
        with pytest.raises(StallscopeError, match=f"symbolic link that user {STRANGER} made"):
            put(tmp_path / folder / "a.svg")
    assert os.listdir(tmp_path / "etc") == []
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    monkeypatch.setenv("SUDO_GID", str(STRANGER))
    put(tmp_path / "out/a.svg")
    assert os.listdir(tmp_path / "etc") == ["a.svg"]


def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    put(Path("a.svg"))
    put(Path("sub/../sub/b.svg"))
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.svg")) == ["a.svg", "sub/b.svg"]


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(".")
    before = len(os.listdir("/proc/self/fd"))
    put(tmp_path / "link/a.svg")
    for path in (tmp_path / "link/a.svg", tmp_path / "missing/b.svg"):
        with pytest.raises(StallscopeError):
            put(path)
    with open_folder(tmp_path):
        pass
    assert len(os.listdir("/proc/self/fd")) == before


# Failures on the way


@pytest.mark.parametrize("reason", [KeyboardInterrupt, SystemExit, ValueError, MemoryError])
@pytest.mark.parametrize("force", [False, True])
def test_an_interrupted_write_leaves_nothing(tmp_path: Path, reason: type[BaseException], force: bool) -> None:
    path = tmp_path / "a.svg"
    if force:
        path.write_bytes(b"old")
    with pytest.raises(reason), create(path, force=force) as file:
        file.write(b"half")
        raise reason
    assert os.listdir(tmp_path) == (["a.svg"] if force else [])
    assert not force or path.read_bytes() == b"old"


@pytest.mark.parametrize("force", [False, True])
def test_a_full_disk(tiny: Path, force: bool) -> None:
    path = tiny / "a.svg"
    if force:
        path.write_bytes(b"old")
    with pytest.raises(StallscopeError, match="no space is left") as caught:
        put(path, bytes(100_000), force=force)
    assert caught.value.remedy
    assert os.listdir(tiny) == (["a.svg"] if force else [])
    assert not force or path.read_bytes() == b"old"
    put(tiny / "b.svg", bytes(50_000))  # the space is free again


def test_the_file_size_limit(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(StallscopeError, match="file size limit"):
            put(tmp_path / "a.svg", bytes(10_000))
        with pytest.raises(StallscopeError, match="file size limit"):  # only noticed when the buffer is flushed
            put(tmp_path / "a.svg", bytes(4097))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == []


def test_a_used_up_quota(tmp_path: Path) -> None:
    with pytest.raises(StallscopeError, match="quota"), create(tmp_path / "a.svg"):
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
    assert os.listdir(tmp_path) == []


def test_a_read_only_file_system(tiny: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", tiny], check=True)
    with pytest.raises(StallscopeError, match="Read-only"):
        put(tiny / "a.svg")
    with open_folder(tiny) as folder, pytest.raises(StallscopeError, match="read-only"):
        safefile.check_writable(tiny / "a.svg", folder)
