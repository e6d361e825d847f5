"""Starts other programs: all of them, and for all of this project. `start` is the only place that does.

A helper never comes from, or looks into, a folder that the caller is in or names: its path is absolute and from
`FOLDERS`, its working folder is the root folder, its environment is made here, and it has no descriptors but those that
it is given. It is in a session of its own, so that Ctrl-C reaches us alone. What reads untrusted bytes gets the rights
of `NOBODY`, and limits.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from .confining import NOBODY, OURS, SETPCAP, SYS_ADMIN, Rights, can_become, capabilities
from .trusted import weak_part

if TYPE_CHECKING:
    import subprocess
    import tempfile

__all__ = [
    "FOLDERS",
    "NOBODY",
    "OURS",
    "PIPE",
    "Done",
    "Limits",
    "Rights",
    "find_program",
    "for_nobody",
    "kill",
    "private_folder",
    "python_module",
    "run",
    "start",
    "wait",
]

FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
"""Folders in which programs are looked for, whatever PATH is."""
INHERITED: tuple[str, ...] = ()
"""Beginnings of the names of environment variables that helpers inherit."""
MOST_COPIED = 256 << 20
"""Bytes of a file that is copied because ordinary users may not read it."""
_RUN_MODULE = (
    "import sys; sys.path += {folders!r}; import runpy; runpy.run_module({module!r}, run_name='__main__', "
    "alter_sys=True)"
)
PIPE = -1
"""A new pipe, as in `subprocess`."""
_Stream = int | IO[bytes] | None


class Limits(NamedTuple):
    """Limits of a helper; None: those that we have. It never leaves a core file."""

    memory: int | None = None
    """Bytes of address space."""
    seconds: int | None = None
    """Seconds of CPU time."""
    written: int | None = None
    """Bytes of each file that it writes to, of standard output too if that is a file."""
    files: int | None = None
    """Number of descriptors that it may have open."""


class Done(NamedTuple):
    """Result of `run`. ``status``: -N where signal N ended it. ``is_late``: it was ended since it took too long."""

    status: int
    output: bytes
    errors: bytes
    is_late: bool


def find_program(name: str) -> str | None:
    """The absolute path of a program in `FOLDERS`. As root, one that others control is none."""
    for folder in FOLDERS:
        path = os.path.join(folder, name)
        try:
            if os.access(path, os.X_OK) and stat.S_ISREG(os.stat(path).st_mode) and not _is_weak(path):
                return path
        except OSError:
            continue
    return None


def _is_weak(path: str) -> bool:
    return os.geteuid() == 0 and bool(weak_part(path))


def python_module(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of this project in an interpreter of its own.

    It is isolated (``-I``): neither the working folder nor PYTHON* count. What this process imports from elsewhere than
    an installation, it imports too; as root, only from folders that others do not control. OSError if the interpreter
    is not known, as in a program that Python is embedded in.
    """
    if not os.path.isabs(sys.executable or ""):
        raise FileNotFoundError(2, "the path of Python's interpreter is not known")
    homes = [os.path.join(home, "") for home in {sys.prefix, sys.base_prefix}]
    others = [path for path in sys.path if os.path.isabs(path) and not any(path.startswith(home) for home in homes)]
    folders = [path for path in others if os.path.isdir(path) and not _is_weak(path)]
    if folders:
        return [sys.executable, "-I", "-c", _RUN_MODULE.format(folders=folders, module=module), *arguments]
    return [sys.executable, "-I", "-m", module, *arguments]


def start(  # noqa: PLR0913 - each is a property of the program
    command: Sequence[str],
    *,
    rights: Rights = OURS,
    limits: Limits = Limits(),  # noqa: B008 - it does not change
    fds: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
    folder: str = "/",
    stdin: _Stream = None,
    stdout: _Stream = None,
    stderr: _Stream = None,
    prepare: Callable[[], None] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a program: its absolute path, and its arguments. Streams that are not given are /dev/null.

    ``environment``: more variables. ``fds``: descriptors that it gets, with the same numbers. ``prepare`` is called in
    it, before it is executed: only where there are no threads. OSError if it cannot be started with these rights and
    limits; then it does not run.
    """
    import subprocess

    if not os.path.isabs(command[0]):
        raise FileNotFoundError(2, "not an absolute path", command[0])
    null = subprocess.DEVNULL
    process = subprocess.Popen(
        [*_prefix(rights, limits), *command],
        stdin=null if stdin is None else stdin,
        stdout=null if stdout is None else stdout,
        stderr=null if stderr is None else stderr,
        pass_fds=fds,
        env={**_environment(), **(environment or {})},
        cwd=folder,
        start_new_session=True,
        preexec_fn=prepare,  # noqa: PLW1509 - callers have no threads where they need it
    )
    try:
        if rights.are_ours:
            _limit(process.pid, limits)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process


def run(
    command: Sequence[str],
    *,
    seconds: float,
    most: int = 1 << 20,
    data: bytes = b"",
    limits: Limits = Limits(),  # noqa: B008 - it does not change
    **options: Any,
) -> Done:
    """Runs a program to its end, for at most ``seconds``. It gets ``data`` as standard input, and can write at most
    ``most`` bytes. ``options`` are those of `start`. OSError if it cannot be started."""
    source, output, errors = (os.memfd_create(name, os.MFD_CLOEXEC) for name in ("input", "output", "errors"))
    try:
        with open(source, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(source, 0, os.SEEK_SET)
        limits = limits._replace(written=most if limits.written is None else min(limits.written, most))
        process = start(command, limits=limits, stdin=source, stdout=output, stderr=errors, **options)
        is_late = True
        try:
            is_late = not wait(process, seconds)
        finally:
            if process.returncode is None:
                kill(process)
        return Done(process.returncode, os.pread(output, most, 0), os.pread(errors, most, 0), is_late)
    finally:
        for fd in (source, output, errors):
            os.close(fd)


def wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Waits for its end; False if it does not end in this time."""
    import select
    import subprocess

    with contextlib.suppress(OSError, AttributeError):  # an old kernel
        fd = os.pidfd_open(process.pid)
        try:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            poll.poll(max(seconds, 0) * 1000)
        finally:
            os.close(fd)
        seconds = 0
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def kill(process: subprocess.Popen[bytes], seconds: float | None = None) -> None:
    """Ends it, and all that it has started in its session. Waits for the end, at most so many seconds."""
    import signal

    if process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    if seconds is None:
        process.wait()
    else:
        wait(process, seconds)


def for_nobody(fd: int) -> int:
    """A descriptor of the same file's bytes that a helper with the rights of `NOBODY` may open again by its path in
    /proc/self/fd: ``fd`` itself, or a copy in memory that is the caller's to close. OSError if there is none: the file
    is larger than `MOST_COPIED`."""
    status = os.fstat(fd)
    if os.geteuid() != 0 or status.st_mode & stat.S_IROTH:
        return fd
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_COPIED:
        raise PermissionError(1, f"only its owner may read it, and it is larger than {MOST_COPIED >> 20} MB")
    copy = os.memfd_create("copy", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        done = 0
        while done < min(status.st_size, MOST_COPIED) and (part := os.pread(fd, 1 << 20, done)):
            done += os.write(copy, part)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(copy, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(copy)
        raise
    return copy


def private_folder(prefix: str) -> tempfile.TemporaryDirectory[str]:
    """A new folder that is removed at the end. As root, wherever TMPDIR points: not where others could replace it."""
    import tempfile

    return tempfile.TemporaryDirectory(prefix=prefix, dir="/tmp" if os.geteuid() == 0 else None)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if INHERITED and name.startswith(INHERITED)}
    return {**kept, "LC_ALL": "C", "PATH": ":".join(FOLDERS)}


def _prefix(rights: Rights, limits: Limits) -> list[str]:
    """The command that sets limits, takes rights away, and executes what follows. [] if no rights are taken: then the
    limits can be set from here."""
    if rights.are_ours:
        return []
    becomes = can_become(rights)
    setpriv, prlimit = _util_linux("setpriv"), _util_linux("prlimit")
    if not (setpriv and prlimit):
        if rights.keeps:
            raise FileNotFoundError(2, "there is no setpriv (package util-linux), without which no right can be kept")
        launcher = os.path.join(os.path.dirname(__file__), "confining.py")
        numbers = rights.uid, rights.gid, int(rights.has_network), *rights.groups
        given = ",".join(map(str, numbers)), *_limit_words(limits)
        return [sys.executable, "-I", "-S", launcher, *given, "--"]
    words = [prlimit, *_limit_words(limits), "--"]
    words += _own_namespaces() if becomes and not rights.has_network else ()
    kept = "-all" + "".join(f",+{name}" for name in rights.keeps) if becomes else "-all"
    words += [setpriv, "--no-new-privs", *_ends_with_us(setpriv), f"--inh-caps={kept}", f"--ambient-caps={kept}"]
    if capabilities() & 1 << SETPCAP:
        words += [f"--bounding-set={kept}"]
    if becomes:
        groups = f"--groups={','.join(map(str, rights.groups))}" if rights.groups else "--clear-groups"
        words += [f"--reuid={rights.uid}", f"--regid={rights.gid}", groups]
    return [*words, "--"]


@functools.cache
def _util_linux(name: str) -> str | None:
    """A program of util-linux: busybox has some of the same names that can do less."""
    path = find_program(name)
    return path if path and os.path.basename(os.path.realpath(path)) == name else None


@functools.cache
def _own_namespaces() -> tuple[str, ...]:
    """Words before a command that give it a network and an IPC namespace of its own, where the kernel lets us."""
    unshare, true = _util_linux("unshare"), find_program("true")
    if not (unshare and true and capabilities() & 1 << SYS_ADMIN):
        return ()
    words = unshare, "--net", "--ipc", "--"
    with contextlib.suppress(OSError):
        if run([*words, true], seconds=5).status == 0:
            return words
    return ()


@functools.cache
def _ends_with_us(setpriv: str) -> tuple[str, ...]:
    """Words that make setpriv end a program when the thread that started it has ended, even by SIGKILL, whatever it
    waits for. The kernel forgets that when a process changes its user, so it is asked for afterwards. setpriv has it
    since 2.33."""
    words, true = ("--pdeathsig=KILL",), find_program("true")
    with contextlib.suppress(OSError):
        if true and run([setpriv, *words, "--", true], seconds=5).status == 0:
            return words
    return ()


def _wanted(limits: Limits) -> dict[str, int]:
    """Limits by the names that prlimit(1) and the constants of `resource` have, without RLIMIT_."""
    given = {"core": 0, "as": limits.memory, "cpu": limits.seconds, "fsize": limits.written, "nofile": limits.files}
    return {name: most for name, most in given.items() if most is not None}


def _limit(pid: int, limits: Limits) -> None:
    """Limits a program with our rights: these count from its first milliseconds on."""
    import resource

    for name, limit in _wanted(limits).items():
        what = getattr(resource, f"RLIMIT_{name.upper()}")
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            most = _at_most(limit, resource.prlimit(pid, what)[1])
            resource.prlimit(pid, what, (most, most))


def _limit_words(limits: Limits) -> list[str]:
    """Options of prlimit(1)."""
    import resource

    hard = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1] for name in _wanted(limits)}
    return [f"--{name}={_at_most(most, hard[name])}" for name, most in _wanted(limits).items()]


def _at_most(limit: int, hard: int) -> int:
    return limit if hard < 0 else min(limit, hard)  # RLIM_INFINITY is -1
