"""New files in folders that other users may control, written by a process that may be root.

The folder is opened once and all operations are relative to it. The content is written to a temporary file with a
random name that is renamed only when it is complete, so no partial file is ever visible or left behind.

Who owns the folder can give that name to another file: so the file gets its final name by its descriptor, where none is
replaced, and in the end it is looked whether what has the final name is the file that was written.

Named pipes and /dev/null keep nothing: they are written to as they are.

What root writes for the user behind sudo is created, named and replaced with that user's rights: the kernel decides
whether he could do it himself, and the file is his from the first byte, without a chown. Where he could not, it is
refused; only if he has a root shell, the file is written by root, and is root's.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from .errors import StallscopeError
from .rights import Owner, has_root_shell, sudo_owner, with_rights_of
from .text import printable

_T = TypeVar("_T")
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS = 40
"""Maximum number of symbolic links on one path, as in the kernel (MAXSYMLINKS)."""
PRIVATE = 0o600
"""Mode of what is written, unless another one is asked for: a capture tells what other users run."""
_NULL = 1, 3
"""Major and minor number of /dev/null (Documentation/admin-guide/devices.txt in Linux)."""
_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe that another user made"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_FULL = {
    errno.ENOSPC: "no space is left on its file system",
    errno.EDQUOT: "the owner's disk quota is used up",
    errno.EFBIG: "the file size limit is reached (ulimit -f, or the file system's)",
}


@contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """A descriptor of the folder ``path``, for use as dir_fd.

    As root, follows a symbolic link on the path only if root or the user behind sudo made it.
    Raises StallscopeError.
    """
    try:
        folder = _walk(path) if os.geteuid() == 0 else os.open(path, _FOLDER & ~os.O_NOFOLLOW)
    except OSError as error:
        raise StallscopeError(
            f"the folder {printable(str(path))} cannot be used: {error.strerror}",
            "create it, or choose another one",
        ) from error
    try:
        yield folder
    finally:
        os.close(folder)


def _walk(path: Path) -> int:
    """Opens ``path`` component by component."""
    owner = sudo_owner()
    trusted = {0, owner.uid} if owner else {0}
    names = deque(path.parts or (".",))
    folder = os.open("/" if path.is_absolute() else ".", _FOLDER)
    links = 0
    try:
        while names:
            name = names.popleft()
            try:
                below = os.open(name, _FOLDER, dir_fd=folder)
            except NotADirectoryError:
                target = _trusted_link(name, folder, trusted)
                links += 1
                if links > _MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
                names.extendleft(reversed(Path(target).parts))
                continue
            os.close(folder)
            folder = below
    except BaseException:
        os.close(folder)
        raise
    return folder


def _trusted_link(name: str, folder: int, trusted: set[int]) -> str:
    """The target of the symbolic link ``name``, if one of ``trusted`` made it."""
    link = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        status = os.fstat(link)
        if not stat.S_ISLNK(status.st_mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if status.st_uid not in trusted:
            raise OSError(errno.ELOOP, f"{printable(name)} is a symbolic link that user {status.st_uid} made")
        return os.readlink("", dir_fd=link)
    finally:
        os.close(link)


def make_folder(path: Path, *, owner: Owner | None = None) -> None:
    """Makes the folder ``path``, readable by its owner only, unless it is there. With ``owner`` it is done with that
    user's rights, as in `create`. Raises StallscopeError."""
    with open_folder(path.parent) as parent:
        make = partial(os.mkdir, path.name, 0o700, dir_fd=parent)
        try:
            if owner:
                with_rights_of(owner, make)
            else:
                make()
        except FileExistsError:
            pass
        except OSError as error:
            if owner is None or not _is_denied(error):
                raise _failure(path, error) from error
            check_root_shell(path, owner)
            make()
    with open_folder(path):  # what is there is a folder
        pass


def is_stream(path: Path, folder: int) -> bool:
    """Whether ``path``, whose folder is open, is /dev/null, or a named pipe of somebody trusted: root, this user,
    the user behind sudo. What is written to them replaces nothing."""
    try:
        status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return _is_stream(status)


def _is_stream(status: os.stat_result) -> bool:
    owner = sudo_owner()
    trusted = {0, os.geteuid(), owner.uid if owner else 0}
    if stat.S_ISFIFO(status.st_mode):
        return status.st_uid in trusted
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == os.makedev(*_NULL)


def check_target(path: Path, folder: int, force: bool) -> None:
    """Raises StallscopeError if `create` would refuse to write ``path``, whose folder is open."""
    shown = printable(str(path))
    if not path.name or path.name == "..":
        raise StallscopeError(f"{shown or 'an empty path'} is not the name of a file", "add a file name", exit_code=2)
    try:
        status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _failure(path, error) from error
    mode = status.st_mode
    if _is_stream(status):
        return
    if not stat.S_ISREG(mode):
        what = next((name for is_it, name in _KINDS if is_it(mode)), "not a regular file")
        raise StallscopeError(f"{shown} is {what} and will not be written to", "choose another name")
    if not force:
        raise StallscopeError(f"{shown} exists", "choose another name, or overwrite it with --force")


def check_writable(path: Path, folder: int) -> None:
    """Raises StallscopeError if no file can be created in the folder of ``path``, or not by the user behind sudo."""
    if not os.access(".", os.W_OK | os.X_OK, dir_fd=folder, effective_ids=True):
        raise StallscopeError(
            f"no file can be created in {printable(str(path.parent))}: it is read-only for this user",
            "choose another folder",
        )
    if (owner := sudo_owner()) is None:
        return
    try:
        with_rights_of(owner, partial(_try, folder))
    except OSError as error:
        if not _is_denied(error):
            raise _failure(path, error) from error
        check_root_shell(path, owner)


def _try(folder: int) -> None:
    """Creates a file and removes it. OSError. access(2) does not tell it on every file system and C library."""
    aside = _new_name()
    os.close(_open_new(aside, folder))
    os.unlink(aside, dir_fd=folder)


def _is_denied(error: OSError) -> bool:
    return error.errno in (errno.EACCES, errno.EPERM)


def check_root_shell(path: Path, owner: Owner) -> None:
    """Raises StallscopeError unless the user is root anyway, where his own rights do not suffice."""
    if not has_root_shell():
        raise StallscopeError(
            f"{printable(str(path))} cannot be written: user {owner.uid}, who called sudo, may not do that",
            "choose a folder of that user; in a shell of root's (sudo -i) every folder can be used",
        )


@contextmanager
def create(path: Path, *, force: bool = False, owner: Owner | None = None, mode: int = PRIVATE) -> Iterator[BinaryIO]:
    """A file to write the content of ``path``; it gets that name when the block ends without an exception.

    It has ``mode`` whatever the umask and the mode of a file that it replaces are; until it is complete it is readable
    by its owner only. With ``owner`` all is done with that user's rights, and the file is his. An existing file is
    replaced with ``force``, else it is an error; anything that is not a regular file is left alone, except what
    `is_stream`. Raises StallscopeError.
    """
    with open_folder(path.parent) as folder:
        check_target(path, folder, force)
        if is_stream(path, folder):
            with _open_stream(path, folder) as file:
                yield file
            return
        aside = _Aside(path, folder, owner)
        try:
            with os.fdopen(aside.opened(), "wb") as file:
                yield file
                file.flush()
                os.fchmod(file.fileno(), mode)
                aside.hold(file.fileno())
            aside.publish(force)
            aside.check()
        except OSError as error:
            raise _failure(path, error) from error
        finally:
            aside.remove()


class _Aside:
    """The file with a random name. OSError, StallscopeError."""

    def __init__(self, path: Path, folder: int, owner: Owner | None) -> None:
        self._path, self._folder, self._owner = path, folder, owner
        self._name = _new_name()
        self._held = -1

    def opened(self) -> int:
        """Creates the file and returns its descriptor."""
        try:
            return self._call(partial(_open_new, self._name, self._folder))
        except OSError as error:
            if self._owner is None or not _is_denied(error):
                raise
            check_root_shell(self._path, self._owner)
            self._owner = None
        return _open_new(self._name, self._folder)

    def _call(self, function: Callable[[], _T]) -> _T:
        return with_rights_of(self._owner, function) if self._owner else function()

    def hold(self, descriptor: int) -> None:
        """Keeps the file open, whatever becomes of its name."""
        self._held = os.dup(descriptor)

    def publish(self, force: bool) -> None:
        """Gives it the name that it is to have."""
        function = partial(_replace) if force else partial(_publish, self._held)
        try:
            self._call(partial(function, self._name, self._path, self._folder))
        except FileNotFoundError:  # it has no name any more
            raise _replaced(self._path) from None

    def check(self) -> None:
        """StallscopeError if another file has the name."""
        try:
            found = os.stat(self._path.name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            found = None
        if found is None or not os.path.samestat(found, os.fstat(self._held)):
            raise _replaced(self._path)

    def remove(self) -> None:
        """Removes it if it is there and was not published."""
        if self._held >= 0:
            os.close(self._held)
        with suppress(OSError):
            self._call(partial(os.unlink, self._name, dir_fd=self._folder))


def _new_name() -> str:
    return f".stallscope-{os.urandom(8).hex()}"


def _open_new(name: str, folder: int) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, PRIVATE, dir_fd=folder)


@contextmanager
def _open_stream(path: Path, folder: int) -> Iterator[BinaryIO]:
    try:
        descriptor = os.open(path.name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(descriptor, "wb") as file:
            if not _is_stream(os.fstat(descriptor)):
                raise StallscopeError(f"{printable(str(path))} was replaced meanwhile", "choose another name")
            yield file
    except OSError as error:
        raise _failure(path, error) from error


def _replace(aside: str, path: Path, folder: int) -> None:
    check_target(path, folder, force=True)
    os.replace(aside, path.name, src_dir_fd=folder, dst_dir_fd=folder)


def _publish(held: int, aside: str, path: Path, folder: int) -> None:
    """Gives the file its name, atomically, unless the name is taken."""
    try:
        _link(held, aside, path, folder)
    except FileExistsError:
        check_target(path, folder, force=False)
        raise
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        _publish_without_links(aside, path, folder)


def _link(held: int, aside: str, path: Path, folder: int) -> None:
    """Links the file by its descriptor, see linkat(2); where there is no /proc, by the name that it has now."""
    own = f"/proc/self/fd/{held}"
    if os.path.exists(own):
        os.link(own, path.name, dst_dir_fd=folder, follow_symlinks=True)
    else:
        os.link(aside, path.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)


def _publish_without_links(aside: str, path: Path, folder: int) -> None:
    """Publishes a file on file systems such as FAT: creates an empty file with the name first, then replaces it."""
    os.close(os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder))
    try:
        os.replace(aside, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(path.name, dir_fd=folder)
        raise


def _replaced(path: Path) -> StallscopeError:
    return StallscopeError(
        f"{printable(str(path))} was replaced by somebody else while it was written",
        "choose a folder that nobody else can write to",
    )


def _failure(path: Path, error: OSError) -> StallscopeError:
    shown = printable(str(path))
    if error.errno in _FULL:
        cause = f"{shown} was not written: {_FULL[error.errno]}"
        return StallscopeError(cause, "free some space, or choose a folder on another file system")
    return StallscopeError(f"{shown} cannot be written: {error.strerror or error}", "choose another folder or name")
