from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stallscope.tracers.base import open_descriptors
from stallscope.tracers.base.open_descriptors import (
    Holder,
    Mount,
    Named,
    OpenDescriptors,
    Search,
    Target,
    fields_of,
    info_of,
    link_of,
    mounts_of,
    targets_of,
)

ME = os.getpid()


def device_of(path: Path) -> str:
    number = path.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


def test_a_file_and_another_one_with_its_number(tmp_path: Path, require: Callable[[bool, str], None]) -> None:
    path, other = tmp_path / "a\nb", tmp_path / "other"
    path.touch()
    other.touch()
    files, device = OpenDescriptors(), device_of(path)
    mounts = mounts_of(Path("/proc/self/mountinfo").read_bytes()).values()
    require(
        device in {mount.device for mount in mounts},
        "a file system whose files have another device than its super block",
    )
    with path.open() as file:
        fd, inode = file.fileno(), path.stat().st_ino
        assert files.named(ME, ME, fd, inode, device)[0] == str(path)
        assert files.named(ME, ME, fd, inode, device)[1]
        assert files.named(ME, ME, fd, other.stat().st_ino, device) == Named()
        assert files.named(ME, ME, fd, inode, "0:0") == Named()
    assert files.named(ME, ME, fd, inode, device) == Named()


def test_a_process_that_is_gone() -> None:
    with subprocess.Popen(["true"]) as child:
        pass
    assert link_of(child.pid, child.pid, 0) == ""
    assert info_of(child.pid, child.pid, 0) == b""
    assert OpenDescriptors().named(child.pid, child.pid, 0, 1, "8:1") == Named()


def test_targets_of_epoll() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, select.epoll() as epoll:
        epoll.register(ours)
        found = targets_of(info_of(ME, ME, epoll.fileno()))
        assert found == [Target(ours.fileno(), os.fstat(ours.fileno()).st_ino)]
        assert link_of(ME, ME, epoll.fileno()) == "anon_inode:[eventpoll]"
    assert (
        targets_of(b"tfd: x events: 19 ino:1 sdev:2\ntfd:        5 events:       19 data: 5  pos:0 ino:zz sdev:9\n")
        == []
    )


def test_mounts() -> None:
    text = (
        b"36 35 98:0 /a /b\\040c rw,noatime master:1 - ext3 /dev/root rw\n"
        b"37 35 0:44 / /x rw - fuse.a\\040b x rw\n" + b"9" * 5000 + b" 35 0:44 / /x rw - ext4 x rw\n"
        b"x 35 0:44 / /x rw - ext4 x rw\n38 35 0:44 / /x rw ext4\n\xff\n"
    )
    assert mounts_of(text) == {36: Mount("98:0", "ext3", "/dev/root"), 37: Mount("0:44", "fuse.a b", "x")}


def test_fields() -> None:
    assert fields_of(b"pos:\t0\nmnt_id:\t29\nino:\t7\nino:\t8\nrubbish\n") == {
        b"pos": b"0",
        b"mnt_id": b"29",
        b"ino": b"7",
    }


def test_who_has_a_pipe() -> None:
    program = "import os, sys, time; os.close(int(sys.argv[1])); print(flush=True); time.sleep(60)"
    reader, writer = os.pipe()
    command = [sys.executable, "-c", program, str(reader)]
    with subprocess.Popen(command, pass_fds=(reader, writer), stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout
            child.stdout.readline()
            link = os.readlink(f"/proc/self/fd/{reader}")
            search = Search({link, "pipe:[0]"}, iter([1 << 30, ME, child.pid]))
            search.go_on(time.monotonic() + 10)
            assert search.ended
            assert search.found == {link: {Holder(ME, 1), Holder(ME, 2), Holder(child.pid, 2)}, "pipe:[0]": set()}
        finally:
            child.kill()
            os.close(reader)
            os.close(writer)


def test_a_search_goes_on_where_it_was() -> None:
    asked: list[int] = []

    def pids() -> Iterator[int]:
        for pid in (1 << 30, (1 << 30) + 1):
            asked.append(pid)
            yield pid

    search = Search({"pipe:[0]"}, pids())
    search.go_on(0.0)
    assert (len(asked), search.ended) == (1, False)
    search.go_on(0.0)
    search.go_on(0.0)
    assert (len(asked), search.ended) == (2, True)


def test_a_process_with_very_many_descriptors_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_descriptors, "_PATIENCE", 0.0)
    monkeypatch.setattr(os, "listdir", lambda _: [b"0"] * (1 << 40 >> 20))
    search, began = Search({"pipe:[0]"}, iter([ME])), time.monotonic()
    search.go_on(began)
    assert time.monotonic() - began < 5
