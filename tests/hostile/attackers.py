"""Another user of the host, without any privilege, and what he does to whoever looks at his processes."""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from default_signals import in_child

HERE = Path(__file__).resolve().parent / "attacks"
PYTHON = "/usr/bin/python3"
FIRST_UID = 54_321
PATIENCE = 20.0
"""Seconds until an attack has begun, or a process is gone."""
_DEVICES = {"fuse": os.makedev(10, 229), "userfaultfd": os.makedev(10, 257)}
"""include/linux/miscdevice.h"""
_PROGRAMS = ("fuse_server", "stuck", "many_files", "many_maps", "threads", "made_code")
_FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread")
_FRAMES = ("-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
_LONG = "x" * 60_000


def free_uid(skip: int = 0) -> int:
    """Uid of nobody: whoever has it here is a process of these tests."""
    taken = {user.pw_uid for user in pwd.getpwall()}
    return [number for number in range(FIRST_UID, FIRST_UID + 1000) if number not in taken][skip]


def compile_all(folder: Path) -> None:
    """The programs, those in C compiled, and a library: where a user can reach them."""
    for path in HERE.glob("*.py"):
        shutil.copy(path, folder)
    for name in _PROGRAMS:
        subprocess.run(["gcc", *_FLAGS, *_FRAMES, "-o", folder / name, HERE / f"{name}.c", "-ldl"], check=True)
    library = folder / "libwait.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, HERE / "wait_in_library.c"], check=True)
    for name, number in _DEVICES.items():  # as udev makes them on hosts where users have them
        os.mknod(folder / name, 0o666 | stat.S_IFCHR, number)
        (folder / name).chmod(0o666)


def of_user(uid: int) -> list[int]:
    """The processes of a user. Nothing is read that a process can hold up."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{name}/status").read_text("utf-8", "replace").splitlines()
            if any(line.startswith("Uid:") and line.split()[1] == str(uid) for line in lines):
                found.append(int(name))
    return found


class Attacker:
    """The user. A context manager: on the way out all of his processes are gone, and with them what hangs on them."""

    def __init__(self, programs: Path, folder: Path) -> None:
        """``programs``: what `compile_all` made. ``folder`` becomes his own."""
        self.programs = programs
        self.home = folder
        self.uid = free_uid()
        self.mount = folder / "mounted"
        self.mount.mkdir()
        for path in (folder, self.mount):
            os.chown(path, self.uid, self.uid)
        self._started: list[subprocess.Popen[bytes]] = []

    def run(self, *command: object, as_root: bool = False, environment: dict[str, str] | None = None) -> int:
        """Starts a program and returns the process that says that it is ready."""
        prefix = [] if as_root else ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--"]
        process = subprocess.Popen(
            [*prefix, *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd=self.home,
            env={"PATH": "/usr/bin:/bin:/usr/sbin", "HOME": str(self.home), **(environment or {})},
            start_new_session=True,
            preexec_fn=in_child,  # noqa: PLW1509  # it only sets signals
        )
        self._started.append(process)
        assert process.stdout
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
        line = process.stdout.readline().split() if ready else []
        assert line[:1] == [b"ready"], (command, process.poll())
        return int(line[1])

    def python(self, program: str, *arguments: object) -> int:
        """One of the programs in attacks/."""
        return self.run(PYTHON, self.programs / f"{program}.py", *arguments)

    def stuck(self, how: str, where: str) -> int:
        """A process that waits for a server which never answers: the kernel's for page faults, or one of files."""
        stuck = (self.programs / "stuck", how)
        long = {"LONG": _LONG}
        if where == "userfaultfd":
            return self.run(*stuck, self.programs / where, environment=long)
        paths = {"root": self.mount, "tmp": self.mount, "code": self.mount / "libwait.so"}
        flags = ("-r", self.uid) if where == "fuse of root" else ()
        server = (self.programs / "fuse_server", *flags, self.programs / "fuse", self.mount)
        command = (*server, self.programs / "libwait.so", "--", *stuck, paths.get(how, self.mount / "cold"))
        user = {"ATTACKER": str(self.uid)} if flags else {}
        return self.run(*command, as_root=bool(flags), environment={**user, **long})

    def __enter__(self) -> Attacker:
        return self

    def __exit__(self, *_: object) -> None:
        deadline = time.monotonic() + PATIENCE
        while left := [pid for pid in of_user(self.uid) if not is_zombie(pid)]:
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            assert time.monotonic() < deadline, f"processes of the attacker do not end: {left}"
            time.sleep(0.02)
        for process in self._started:
            process.kill()
            process.wait(PATIENCE)
            assert process.stdout
            process.stdout.close()


def is_zombie(pid: int) -> bool:
    """Whether it has ended, and only its parent has not been told."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


@contextlib.contextmanager
def _long_path(folder: Path) -> Iterator[Path]:
    """A file below folders with long names: as long as a path may be, 4 KB."""
    here = os.open("/", os.O_RDONLY)
    try:
        os.chdir(folder)
        path = folder
        while len(str(path)) < 3700:
            name = "d" * 250
            os.mkdir(name)
            os.chdir(name)
            path /= name
        yield path / "program"
    finally:
        os.fchdir(here)
        os.close(here)


def _many_mappings(attacker: Attacker) -> int:
    working = Path.cwd()
    try:
        with _long_path(attacker.home) as path:
            path.write_bytes((attacker.programs / "stuck").read_bytes())
    finally:
        os.chdir(working)
    return attacker.run(attacker.programs / "many_maps", path, 65_530)


def _perf_maps(attacker: Attacker) -> int:
    script = 'exec 3<"$3" && mount --bind "$1" /tmp && exec "$2" /dev/fd/3 /tmp'
    program = (PYTHON, attacker.programs / "perf_maps.py")
    return attacker.run("unshare", "-Urm", "sh", "-c", script, "sh", attacker.mount, *program)


def _stuck(how: str, where: str) -> Callable[[Attacker], int]:
    return lambda attacker: attacker.stuck(how, where)


def _python(program: str, *arguments: object) -> Callable[[Attacker], int]:
    return lambda attacker: attacker.python(program, *arguments)


def _at_home(program: str, *arguments: object) -> Callable[[Attacker], int]:
    return lambda attacker: attacker.python(program, *arguments, attacker.home)


# What a user has mounted in a user namespace of his own fails at once where root reads it, whose id that one does not
# have. What a setuid program (fusermount3) or root has mounted for him does not.
FUSE, OF_ROOT, FAULTS = "fuse", "fuse of root", "userfaultfd"
ATTACKS: dict[str, Callable[[Attacker], int]] = {
    **{f"{how} on {where}": _stuck(how, where) for how in ("stack", "args", "lock") for where in (OF_ROOT, FAULTS)},
    "lock on fuse": _stuck("lock", FUSE),
    **{f"{how} on {where}": _stuck(how, where) for how in ("root", "tmp", "code") for where in (FUSE, OF_ROOT)},
    **{f"python {kind}": _python("interpreter", kind) for kind in ("circle", "huge_name", "wild_code")},
    **{
        f"file {kind}": _at_home("bombs", kind)
        for kind in ("long_names", "many_sections", "overlapping_tables", "sparse")
    },
    "files replaced": _at_home("files"),
    "names": _at_home("names"),
    "many mappings": _many_mappings,
    "perf maps": _perf_maps,
    "mount namespaces": lambda attacker: attacker.python("churn", attacker.mount, "sleep"),
    **{f"{how} on fuse": _stuck(how, FUSE) for how in ("hold", "fork")},
    "many threads": lambda attacker: attacker.run(attacker.programs / "threads", 2000, 1500),
    "many files": lambda attacker: attacker.run(
        *(attacker.programs / name for name in ("many_files", "libwait.so")), attacker.home, 20_000
    ),
}
"""Attacks by name: each begins, and returns the process that is to be traced."""
