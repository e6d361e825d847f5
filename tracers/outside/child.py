"""The process that reads other processes, and may be abandoned: started by `client.py`, as a script of its own.

A page of a process's memory, or a file that it maps, may be served by a program of its user (FUSE, userfaultfd) that
never answers: the reader then waits in the kernel, perhaps for ever, and may hold a lock that the next reader needs. So
this process reads, and has nothing that is missed when it is killed: no BPF program, no output, no lock.

It imports little, so that it starts fast, and nothing of this project. Requests and answers are packets of a socket:
`marshal` of (number, operation, arguments) and of (number, error, result); a large result is in memory that both share.
"""

from __future__ import annotations

import errno
import fcntl
import marshal
import os
import socket
import stat
import sys
from array import array
from mmap import mmap
from typing import Any

from .lookups import ABOUT, PIECE, SHARED, Place, head_of, maps_of, open_in, open_place
from .mounts import Mounts
from .owners import NOT_ASKED, user_of, user_of_mount, user_of_path
from .rights import drop_rights

INLINE = 1 << 15
"""Bytes of a result that still goes into the packet; others are in the shared memory."""
GOES_ON, REFUSED = -1, -2
"""Errors of an answer: there is progress, and the answer is still to come; it was not read, for this user's processes
have not answered before."""
_MOST_OPEN = 64
_OWN = 5
"""The first descriptor behind ours: the standard ones, the socket and the memory."""
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Refused(OSError):
    """Refusal to read what is of a user of whom nothing is read any more."""

    def __init__(self) -> None:
        super().__init__(REFUSED, "not read: others of this user have not answered")


class Server:
    """Answers requests until the other side is gone."""

    def __init__(self, link: socket.socket, memory: int) -> None:
        self._link = link
        self._map = mmap(memory, SHARED + ABOUT)
        self._shared = memoryview(self._map)
        self._memories: dict[int, int] = {}
        """Open /proc/PID/mem by the client's number."""
        self._number = 0
        self._refused: list[int] | None = None
        """Users of whom nothing is read any more. None: nobody is silent, and users are not looked up."""

    def run(self) -> None:
        while True:
            data, fds, _, _ = socket.recv_fds(self._link, 1 << 16, 1)
            if not data:
                return
            self._number, name, self._refused, *arguments = marshal.loads(data)
            sent: list[int] = []
            try:
                result, sent = getattr(self, f"do_{name}")(fds, *arguments)
                error = 0
            except OSError as failure:
                error, result = failure.errno or errno.EIO, failure.strerror
            except (ValueError, OverflowError):
                error, result = errno.EINVAL, None
            for fd in fds:
                os.close(fd)
            if self._number:
                self._answer(error, result, sent)
            for fd in sent:
                os.close(fd)

    def _answer(self, error: int, result: Any, fds: list[int]) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []
        self._link.sendmsg([marshal.dumps((self._number, error, result))], rights)

    def _about(self, pid: int) -> None:
        """Says which process is being read, and of which user. Refused."""
        self._for(NOT_ASKED if self._refused is None or not pid else user_of(pid), pid)

    def _for(self, user: int, pid: int | None = None) -> None:
        """Says for which user something is read: of a process, if it is given. Refused."""
        if pid is not None:
            self._shared[SHARED : SHARED + 8] = pid.to_bytes(8, "little")
        self._shared[SHARED + 8 :] = user.to_bytes(8, "little", signed=True)
        if self._refused and user in self._refused:
            raise Refused

    def _for_path(self, path: bytes, root: list[int], pid: int, mounts: Mounts) -> None:
        """Says for which user something at a path is read. Refused."""
        if self._refused is not None:
            self._for(user_of_path(path, root[0] if root else None, pid, mounts))

    def do_memory(self, fds: list[int], key: int, pid: int, reads: list[tuple[int, int]]) -> tuple[object, list[int]]:
        """Bytes at these addresses, as far as they are there: the sizes, and the bytes if they are few."""
        self._about(pid)
        fd = self._memory(key, pid)
        at, sizes = 0, []
        for address, size in reads:
            try:
                count = os.preadv(fd, [self._shared[at : at + size]], address)
            except (OSError, OverflowError):
                count = -1
            sizes.append(count)
            at += max(count, 0)
        return (sizes, bytes(self._shared[:at]) if at <= INLINE else at), []

    def _memory(self, key: int, pid: int) -> int:
        if key not in self._memories:
            while len(self._memories) >= _MOST_OPEN:
                os.close(self._memories.pop(next(iter(self._memories))))
            self._memories[key] = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        return self._memories[key]

    def do_forget(self, fds: list[int], key: int) -> tuple[object, list[int]]:
        """Closes a process's memory."""
        if key in self._memories:
            os.close(self._memories.pop(key))
        return None, []

    def do_maps(self, fds: list[int], pid: int, only_code: bool) -> tuple[object, list[int]]:
        """The lines of its maps, and whether they are all; of executable mappings only, if wanted."""
        self._about(pid)
        text, is_all = maps_of(pid, only_code=only_code)
        if not text and pid:
            for tid in os.listdir(f"/proc/{pid}/task"):  # the main thread may have ended
                if tid != str(pid):
                    try:
                        text, is_all = maps_of(pid, only_code=only_code, below=f"task/{tid}/")
                    except OSError:
                        continue
                    if text:
                        break
        return (is_all, self._bytes(text)), []

    def _bytes(self, text: bytes) -> object:
        """Bytes for a result: they, or how many there are in the shared memory."""
        if len(text) <= INLINE:
            return text
        self._shared[: len(text)] = text
        return len(text)

    def do_files(
        self, fds: list[int], pids: list[int], names: list[tuple[str, int]], until: int
    ) -> tuple[object, list[int]]:
        """The first bytes of files in /proc/PID, for each process; as many processes as fit."""
        found: list[list[bytes | None]] = []
        size = 0
        for pid in pids:
            if found and size > until:
                break
            try:
                self._about(pid)
            except Refused:
                found.append([None] * len(names))
                continue
            found.append([head_of(f"/proc/{pid}/{name}", most) for name, most in names])
            size += sum(len(text or b"") for text in found[-1])
        packed = marshal.dumps(found)
        return self._bytes(packed), []

    def do_pagemap(self, fds: list[int], pid: int, offset: int, size: int) -> tuple[object, list[int]]:
        self._about(pid)
        fd = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return self._bytes(os.pread(fd, size, offset)), []
        finally:
            os.close(fd)

    def do_mapped(
        self, fds: list[int], pid: int, files: list[tuple[int, int, int, int, int, bytes]], room: int
    ) -> tuple[object, list[int]]:
        """Opens files that a process maps, with the root in ``fds`` for their paths. For each the error, and how many
        bytes of it were copied, -1 for none: then its own descriptor is passed. ``room``: bytes for copies."""
        self._about(pid)
        mounts = Mounts(pid)

        def look(fd: int) -> None:
            if self._refused is not None and (user := user_of_mount(fd, pid, mounts)):
                self._for(user)

        def look_at(path: bytes) -> None:
            self._for_path(path, fds, pid, mounts)

        found, sent = [], []
        for each in files:
            try:
                fd, copied = self._readable(open_place(pid, Place(*each), fds, look, look_at), mounts, room)
            except (OSError, ValueError) as error:
                found.append((getattr(error, "errno", 0) or errno.EINVAL, 0))
                continue
            room -= max(copied, 0)
            found.append((0, copied))
            sent.append(fd)
        return found, sent

    def do_path(self, fds: list[int], path: bytes, flags: int, pid: int, room: int) -> tuple[object, list[int]]:
        """Opens a regular file by its path in a root, which is our own without a descriptor. ``pid``: a process there,
        0: none. The result is (bytes copied, as above; its dev, inode, size, uid, times of content and status)."""
        mounts = Mounts(pid)
        self._for(NOT_ASKED if self._refused is None else 0, pid)
        self._for_path(path, fds, pid, mounts)
        path_fd = open_in(fds, path, flags)
        status = os.fstat(path_fd)
        fd, copied = self._readable(path_fd, mounts, room)
        about = status.st_dev, status.st_ino, status.st_size, status.st_uid, status.st_mtime_ns, status.st_ctime_ns
        return (copied, about), [fd]

    def _readable(self, path_fd: int, mounts: Mounts, room: int) -> tuple[int, int]:
        """A readable descriptor of a regular file, and -1; of a copy, and its size, if users could make its file system
        wait. Takes ``path_fd`` over."""
        try:
            if not stat.S_ISREG(os.fstat(path_fd).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            is_trusted = mounts.are_trusted(path_fd)
            fd = os.open(f"/proc/self/fd/{path_fd}", _READ)
        finally:
            os.close(path_fd)
        if is_trusted:
            return fd, -1
        try:
            return self._copy(fd, room)
        finally:
            os.close(fd)

    def _copy(self, fd: int, room: int) -> tuple[int, int]:
        size = os.fstat(fd).st_size
        if size > room:
            raise OSError(errno.EFBIG, "too large to be copied")
        copy = os.memfd_create("stallscope", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            at = 0
            while at < size:
                data = os.pread(fd, min(PIECE, size - at), at)
                if not data:
                    break
                os.pwrite(copy, data, at)
                at += len(data)
                self._answer(GOES_ON, None, [])
            seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(copy, fcntl.F_ADD_SEALS, seals)
            # Its receiver only reads: a descriptor of its own, without the right to write.
            return os.open(f"/proc/self/fd/{copy}", os.O_RDONLY | os.O_CLOEXEC), at
        finally:
            os.close(copy)


def serve(link: int, memory: int, parent: int) -> None:
    """Answers on a socket, by two descriptors; nothing if ``parent`` has ended: it could not end us any more."""
    drop_rights()
    if os.getppid() == parent:
        Server(socket.socket(fileno=link), memory).run()


def main() -> None:
    # Descriptors that whoever started the command has left open: an abandoned process would keep them, a lock perhaps.
    os.closerange(_OWN, 1 << 20)
    serve(*map(int, sys.argv[1:4]))
