"""Users who can make a reader wait: the one who controls a process, or what is at a path. See `child`.

Each user has a share of what may be given up (`client`), so it counts who is behind: a process in a user namespace is
that of the one who made the namespace, whichever of his subordinate ids it has.
"""

from __future__ import annotations

import fcntl
import os
import stat

from .lookups import PATH_FLAGS, head_of
from .mounts import Mounts

UNKNOWN, NOT_ASKED = -1, -2
"""Instead of a uid: of a process that is gone, for example; it was not looked up."""
_NS_GET_USERNS, _NS_GET_PARENT, _NS_GET_OWNER_UID = 0xB701, 0xB702, 0xB704
"""ioctl_ns(2)."""
_MOST_NAMESPACES = 33
"""Depth to which they can be nested."""
_MOST_STEPS = 400
"""Number of steps along a path, links included."""
_OPEN = os.O_RDONLY | os.O_CLOEXEC


def user_of(pid: int) -> int:
    """The user of a process by the real uid, which a setuid program keeps, or the one who made its user namespace.
    Nothing is asked that waits for the process."""
    for line in (head_of(f"/proc/{pid}/status", 4096) or b"").split(b"\n"):
        if line.startswith(b"Uid:"):
            try:
                return _made_by(os.open(f"/proc/{pid}/ns/user", _OPEN)) or int(line.split()[1])
            except OSError:
                return int(line.split()[1])
    return UNKNOWN


def _made_by(space: int) -> int:
    """The outermost user but 0 who made a user namespace that is not ours, or one around it; 0: none. Takes the
    descriptor over."""
    found = 0
    try:
        ours = os.stat("/proc/self/ns/user")
        for _ in range(_MOST_NAMESPACES):
            if os.path.samestat(os.fstat(space), ours):
                break
            uid = bytearray(4)
            fcntl.ioctl(space, _NS_GET_OWNER_UID, uid)
            found = int.from_bytes(uid, "little") or found
            around = fcntl.ioctl(space, _NS_GET_PARENT)
            os.close(space)
            space = around
    except OSError:
        pass  # EPERM: what is around is not below our namespace
    finally:
        os.close(space)
    return found


def user_of_mount(fd: int, pid: int, mounts: Mounts) -> int:
    """The user on whose file system an open file is; 0: the administrator's. ``pid``: a process that has it mounted.
    The file system is not asked."""
    user = mounts.user_id(fd)
    if user is not None:
        return user
    if not pid:
        return UNKNOWN
    space = -1
    try:
        space = os.open(f"/proc/{pid}/ns/mnt", _OPEN)
        return _made_by(fcntl.ioctl(space, _NS_GET_USERNS)) or UNKNOWN
    except OSError:
        return UNKNOWN
    finally:
        if space >= 0:
            os.close(space)


def user_of_path(path: bytes, root: int | None, pid: int, mounts: Mounts) -> int:
    """The user who decides where a path in a root leads: the first but 0 on the way who owns a folder, a link or the
    file system. 0 if nobody but the administrator does. UNKNOWN if nothing is there, and others can put it there."""
    way = _Way(path, os.open("/", PATH_FLAGS) if root is None else os.dup(root))
    try:
        for _ in range(_MOST_STEPS):
            if user := user_of_mount(way.here[-1], pid, mounts):
                return user
            status = os.fstat(way.here[-1])
            if status.st_uid:
                return status.st_uid
            try:
                if not way.goes_on(is_link=stat.S_ISLNK(status.st_mode)):
                    return 0
            except OSError:
                return UNKNOWN if status.st_mode & 0o022 else 0
        return UNKNOWN
    finally:
        for fd in way.here:
            os.close(fd)


class _Way:
    """A path, step by step, inside a root, whose descriptor it takes over."""

    def __init__(self, path: bytes, root: int) -> None:
        self.here = [root]
        """The folders on the way, and where it is now."""
        self._left = path.split(b"/")[::-1]

    def goes_on(self, *, is_link: bool) -> bool:
        """The next step; False if there is none. ``is_link``: where it is now is a link. OSError: nothing is there."""
        if is_link:
            target = os.readlink(b"", dir_fd=self.here[-1])
            self._left += target.split(b"/")[::-1]
            first = 1 if target.startswith(b"/") else len(self.here) - 1
            for fd in self.here[first:]:
                os.close(fd)
            del self.here[first:]
        while self._left and self._left[-1] in (b"", b".", b".."):
            if self._left.pop() == b".." and len(self.here) > 1:
                os.close(self.here.pop())
        if not self._left:
            return False
        self.here.append(os.open(self._left.pop(), PATH_FLAGS | os.O_NOFOLLOW, dir_fd=self.here[-1]))
        return True
