"""Records are made by hand here, of files of this process."""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stallscope.converters.model.wait_objects import (
    DEVICE,
    EVENTS,
    FILE,
    MEMORY,
    OTHER,
    PIPE,
    SOCKET,
    TCP,
    TERMINAL,
    UNIX,
    WRITES,
    WaitObject,
    label,
)
from stallscope.tracers.base import filesystems, fuse_servers
from stallscope.tracers.base.open_descriptors import Named, OpenDescriptors
from stallscope.tracers.base.unix_peers import peer_of
from stallscope.tracers.engines.ebpf import connection_figures
from stallscope.tracers.engines.ebpf import objects as module
from stallscope.tracers.engines.ebpf.objects import Objects
from stallscope.tracers.kernel import objects
from stallscope.tracers.kernel.objects import RECORD, ObjectRecord

ME = os.getpid()
EMPTY = ObjectRecord(ME, 5, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, ME, bytes(16), bytes(16))


@pytest.fixture(autouse=True)
def ends_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets this process be the other end."""
    monkeypatch.setattr(module, "_ours", set)


def recorded(fd: int, **given: Any) -> ObjectRecord:
    """Record of the probes of a descriptor of this process, as far as it can be asked for."""
    status = os.fstat(fd)
    dev = os.major(status.st_dev) << 20 | os.minor(status.st_dev)
    return EMPTY._replace(fd=fd, inode=status.st_ino, mode=status.st_mode, dev=dev, rdev=status.st_rdev)._replace(
        **given
    )


def found(record: ObjectRecord, *, polls: int = 0) -> WaitObject:
    made = Objects()
    made.add(RECORD.pack(9, *record))
    for _ in range(polls):
        made.poll()
    made.finish()
    (only,) = made.found({label(record.id)})
    assert only.id == label(record.id)
    return only


def internet(made: socket.socket, **given: Any) -> ObjectRecord:
    address, port = made.getsockname()
    remote, remote_port = made.getpeername()
    return recorded(
        made.fileno(), family=objects.INET, protocol=objects.TCP, state=1, local_port=port, remote_port=remote_port,
        local=socket.inet_aton(address) + bytes(12), remote=socket.inet_aton(remote) + bytes(12), **given,
    )  # fmt: skip


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    with path.open() as file:
        only = found(recorded(file.fileno(), magic=0xEF53))
        assert (only.kind, only.name, only.inode) == (FILE, str(path), path.stat().st_ino)
        assert only.filesystem
        reused = recorded(file.fileno(), magic=0xEF53)._replace(inode=1)
        assert (found(reused).name, found(reused).filesystem) == ("", "ext4")


def test_a_connection_of_this_host() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        only = found(internet(client))
        assert (only.kind, only.remote) == (TCP, f"127.0.0.1:{server.getsockname()[1]}")
        # Nobody has accepted it: who listens there may.
        assert [(end.pid, only.queued, only.is_full) for end in only.ends] == [(ME, 1, False)]
        assert only.backlog == 128
        with server.accept()[0]:
            only = found(internet(client), polls=1)
            assert (only.queued, only.backlog) == (0, 0)
            assert [end.pid for end in only.ends] == [ME]
            assert only.ends[0].process.startswith(Path("/proc/self/comm").read_text().strip())


def test_an_address_elsewhere() -> None:
    with socket.socket() as made:
        record = recorded(
            made.fileno(), family=objects.INET, protocol=objects.TCP, local_port=1, remote_port=5432,
            remote=bytes([192, 0, 2, 1]) + bytes(12),
        )  # fmt: skip
        only = found(record)
        assert (only.remote, only.ends) == ("192.0.2.1:5432", [])
        listening = found(record._replace(remote_port=0, state=10))
        assert (listening.remote, listening.listens, listening.local) == ("", True, "0.0.0.0:1")


def test_a_unix_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        peer = os.fstat(theirs.fileno()).st_ino
        only = found(recorded(ours.fileno(), family=objects.UNIX, peer=peer))
        assert (only.kind, [end.pid for end in only.ends]) == (UNIX, [ME])


def test_a_socket_of_another_family() -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW) as made:
        assert found(recorded(made.fileno(), family=16)).kind == SOCKET


@pytest.fixture
def writer() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process that has the end of a pipe for writing, and the other end."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        try:
            yield child, child.stdout.fileno()
        finally:
            child.kill()


def test_a_pipe(writer: tuple[subprocess.Popen[bytes], int]) -> None:
    child, fd = writer
    record = recorded(fd, magic=filesystems.PIPES, access=objects.READS)
    only = found(record)
    assert (only.kind, only.does, [end.pid for end in only.ends]) == (PIPE, WRITES, [child.pid])
    assert only.ends[0].process
    assert found(record._replace(access=3)).ends == []


def test_our_own_processes_are_no_ends(
    writer: tuple[subprocess.Popen[bytes], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    child, fd = writer
    monkeypatch.setattr(module, "_ours", lambda: {child.pid})
    assert found(recorded(fd, magic=filesystems.PIPES, access=objects.READS)).ends == []


def test_what_has_no_name() -> None:
    with select.epoll() as epoll:
        only = found(recorded(epoll.fileno(), magic=filesystems.ANONYMOUS, mode=0o600))
        assert (only.kind, only.name) == (EVENTS, "")
    fd = os.eventfd(0)
    try:
        only = found(recorded(fd, magic=filesystems.ANONYMOUS, mode=0o600))
        assert (only.kind, only.name) == (OTHER, "eventfd")
    finally:
        os.close(fd)


def test_devices() -> None:
    with open("/dev/null") as file:
        only = found(recorded(file.fileno()))
        assert (only.kind, only.name) in ((DEVICE, "/dev/null"), (DEVICE, ""))
    assert found(EMPTY._replace(mode=0o020600, magic=filesystems.TERMINALS)).kind == TERMINAL


def test_only_those_that_are_wanted() -> None:
    made = Objects()
    made.add(RECORD.pack(9, *EMPTY._replace(id=1 << 63 | 7)))
    made.finish()
    assert made.found({8}) == []
    assert [each.id for each in made.found({7, 8})] == [7]


def test_a_search_is_not_repeated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody would be found again, and a host may have thousands of processes."""
    begun: list[set[str]] = []

    class Nobody(module.Search):
        def __init__(self, links: Any, pids: Any) -> None:
            begun.append(set(links))
            super().__init__(links, iter(()))

    monkeypatch.setattr(module, "Search", Nobody)
    made = Objects()
    made.add(RECORD.pack(9, *EMPTY._replace(mode=0o140777, family=objects.UNIX, peer=4)))
    for _ in range(5):
        made.poll()
    assert begun == [{"socket:[4]"}]
    made.finish()
    assert len(begun) == 2


def test_searches_get_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them takes a second here. What waits begin on soon after each other is looked for at once."""
    now = 0.0

    class Slow(module.Search):
        def go_on(self, until: float) -> None:
            nonlocal now
            now += 1.0
            self.ended = True

    monkeypatch.setattr(module, "Search", Slow)
    made, begun = Objects(lambda: now), []
    for number in range(8):
        made.add(RECORD.pack(9, *EMPTY._replace(id=number, mode=0o140777, family=objects.UNIX, peer=number + 1)))
        for _ in range(100):
            before = now
            made.poll()
            if now > before:
                begun.append(round(before, 1))
                break
            now += 0.5
    pauses = [after - before - 1 for before, after in zip(begun, begun[1:], strict=False)]
    assert pauses == [0, 1, 3, 7, 15, 20, 20]


def test_epoll_on_one_connection() -> None:
    wakes = socket.socketpair()
    with wakes[0], wakes[1], socket.create_server(("127.0.0.1", 0)) as server, select.epoll() as epoll:
        reader, writer = os.pipe()
        event = os.eventfd(0)
        try:
            with socket.create_connection(server.getsockname()) as client, server.accept()[0]:
                for fd in (client.fileno(), reader, event):
                    epoll.register(fd)
                if peer_of(ME, os.fstat(wakes[0].fileno()).st_ino):
                    epoll.register(wakes[0].fileno())
                record = recorded(epoll.fileno(), magic=filesystems.ANONYMOUS, mode=0o600)
                only = found(record, polls=1)
                assert (only.kind, only.remote) == (TCP, f"127.0.0.1:{server.getsockname()[1]}")
                assert [end.pid for end in only.ends] == [ME]
                epoll.register(server.fileno())
                assert found(record).kind == EVENTS  # there are two now
        finally:
            for fd in (reader, writer, event):
                os.close(fd)


def test_epoll_on_a_listening_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, select.epoll() as epoll:
        epoll.register(server.fileno())
        only = found(recorded(epoll.fileno(), magic=filesystems.ANONYMOUS, mode=0o600))
        assert (only.kind, only.listens, only.ends) == (TCP, True, [])


def test_an_accept_queue_that_is_full() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=1) as server:
        address = server.getsockname()
        with socket.create_connection(address), socket.create_connection(address) as second:
            only = found(internet(second))
            assert (only.queued, only.backlog, only.is_full) == (2, 1, True)


def test_a_page_fault(tmp_path: Path) -> None:
    path = tmp_path / "mapped"
    path.write_bytes(bytes(1 << 16))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        (line,) = [each for each in Path("/proc/self/maps").read_text().splitlines() if str(path) in each]
        record = recorded(file.fileno(), magic=0xEF53, address=int(line.partition("-")[0], 16))._replace(fd=0)
        only = found(record)
        assert (only.kind, only.name, only.filesystem) == (FILE, str(path), "ext4")
        assert found(record._replace(inode=1)).name == ""
    assert only.mapped
    assert found(EMPTY._replace(address=4096)) == WaitObject(5, MEMORY, mapped=True)


def test_a_page_fault_of_a_file_that_is_mapped_again(tmp_path: Path) -> None:
    """Files may be mapped at another address when they are looked for again."""
    path = tmp_path / "mapped"
    path.write_bytes(bytes(1 << 16))
    made = Objects()
    with path.open("rb") as file:
        record = recorded(file.fileno(), magic=0xEF53, address=4096)._replace(fd=0)
        made.add(RECORD.pack(9, *record))
        made.poll()
        assert made.found({label(record.id)})[0].name == ""
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
            made.poll()
    assert made.found({label(record.id)})[0].name == str(path)


def test_a_file_that_stays_unmapped_is_not_looked_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr(module, "path_at", lambda pid, *_: looks.append(pid) or "")
    made = Objects()
    made.add(RECORD.pack(9, *EMPTY._replace(inode=5, mode=stat.S_IFREG, address=4096)))
    for _ in range(50):
        made.poll()
    made.finish()
    assert looks == [ME] * 8


def test_memory_that_is_shared_without_a_file() -> None:
    shared = mmap.mmap(-1, 1 << 16)
    lines = Path("/proc/self/maps").read_text().splitlines()
    line = next(each for each in lines if each.endswith("/dev/zero (deleted)"))
    address, inode = int(line.partition("-")[0], 16), int(line.split()[4])
    record = EMPTY._replace(address=address, inode=inode, mode=0o100600, magic=0x01021994)
    assert found(record).kind == MEMORY
    shared.close()


def test_an_event_loop_with_several_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, select.epoll() as epoll:
        connects = "kept = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in 'ab']"
        program = f"import socket, sys; {connects}; input()"
        command = [sys.executable, "-c", program, str(server.getsockname()[1])]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
            try:
                accepted = [server.accept()[0] for _ in "ab"]
                for each in accepted:
                    epoll.register(each.fileno())
                only = found(recorded(epoll.fileno(), magic=filesystems.ANONYMOUS), polls=1)
                assert (only.kind, [(peer.pid, peer.number) for peer in only.peers]) == (EVENTS, [(child.pid, 2)])
                assert not only.peers[0].serves
            finally:
                child.kill()
                for each in accepted:
                    each.close()


def test_connections_that_an_event_loop_gets_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_figures, "is_within", lambda *_: False)
    now = 100.0
    with socket.create_server(("127.0.0.1", 0)) as server, select.epoll() as epoll, contextlib.ExitStack() as stack:
        made, record = Objects(lambda: now), recorded(epoll.fileno(), magic=filesystems.ANONYMOUS)
        made.add(RECORD.pack(9, *record))
        made.poll()
        ports = set()
        for _ in "ab":
            client = stack.enter_context(socket.create_connection(server.getsockname()))
            accepted = stack.enter_context(server.accept()[0])
            epoll.register(accepted.fileno())
            ports.add(client.getsockname()[1])
        now += 0.6  # the sockets of a namespace are remembered for less
        made.poll()
        made.figures.cut()
        (only,) = made.found({label(record.id)})
        assert {int(each.remote.rpartition(":")[2]) for each in only.links} == ports


def test_several_descriptors_without_epoll() -> None:
    only = found(EMPTY._replace(fd=(1 << 32) - 2))
    assert only.kind == EVENTS


@pytest.mark.parametrize("served", [True, False])
def test_who_serves_a_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, served: bool) -> None:
    """Servers have the device open for this file system, not for another one."""
    device, path = tmp_path / "fuse", tmp_path / "data"
    device.touch()
    path.touch()
    monkeypatch.setattr(fuse_servers, "LINK", str(device))
    with path.open() as file, device.open() as end, subprocess.Popen(["sleep", "60"], stdin=end) as server:
        end.close()
        record = recorded(file.fileno(), magic=0x65735546)
        number = record.dev if served else record.dev + 1
        monkeypatch.setattr(fuse_servers, "served_by", lambda pid: {number} if pid == server.pid else set())
        monkeypatch.setattr(OpenDescriptors, "named", lambda *_: Named(str(path), "fuse.x", "a@nas:"))
        made = found(record, polls=3)
        server.kill()
    assert (made.name, made.filesystem, made.source) == (str(path), "fuse.x", "a@nas:")
    assert [end.pid for end in made.ends] == ([server.pid] if served else [])


def test_servers_are_asked_once_for_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path / "fuse"
    device.touch()
    monkeypatch.setattr(fuse_servers, "LINK", str(device))
    monkeypatch.setattr(OpenDescriptors, "named", lambda *_: Named("/data", "fuse.x", "a@nas:"))
    asked: list[int] = []
    monkeypatch.setattr(fuse_servers, "served_by", lambda pid: asked.append(pid) or set())
    made = Objects()
    with device.open() as end, subprocess.Popen(["sleep", "60"], stdin=end) as server:
        for number in range(20):
            made.add(RECORD.pack(9, *recorded(end.fileno(), magic=0x65735546)._replace(id=number + 1)))
        for _ in range(3):
            made.poll()
        made.finish()
        server.kill()
    assert 0 < asked.count(server.pid) < 20


def test_what_is_mounted_on_a_disk_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "data").open("w") as file:
        monkeypatch.setattr(OpenDescriptors, "named", lambda *_: Named("/data", "ext4", "/dev/sda"))
        assert found(recorded(file.fileno())).source == ""
