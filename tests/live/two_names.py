"""A program with a library, and decoys: the same code under other names, for where another file must not be taken."""

from __future__ import annotations

import os
import select
import subprocess
from pathlib import Path
from typing import NamedTuple

PATIENCE = 60

_LIBRARY = r"""
#include <unistd.h>
static __attribute__((noinline)) void hidden_part(void) { usleep(10000); __asm__ volatile(""); }
static inline __attribute__((always_inline)) void inlined_part(void) { hidden_part(); __asm__ volatile(""); }
__attribute__((noinline)) void in_library(void) { inlined_part(); __asm__ volatile(""); }
"""
_PROGRAM = r"""
#include <stdio.h>
void in_library(void);
static __attribute__((noinline)) void in_program(void) {
    in_library();
    __asm__ volatile("");
    in_library();
    __asm__ volatile("");
}
int main(void) {
    puts("ready");
    fflush(stdout);
    for (;;)
        in_program();
}
"""
FUNCTIONS = ("main", "in_program", "in_library", "hidden_part")
"""Functions on the program's stack, from the outermost on."""
_DECOYS = {"in_program": "wrong_program", "in_library": "wrong_library", "hidden_part": "wrong_hidden"}
_FLAGS = ("-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-fPIC")


class Built(NamedTuple):
    """A program and its library, which it looks for beside itself."""

    app: Path
    library: Path


def build(folder: Path, *, decoy: bool = False) -> Built:
    """``folder`` is made."""
    folder.mkdir()
    library, program = _LIBRARY, _PROGRAM
    for name, wrong in _DECOYS.items() if decoy else ():
        library, program = library.replace(name, wrong), program.replace(name, wrong)
    (folder / "part.c").write_text(library)
    (folder / "app.c").write_text(program)
    made = Built(folder / "app", folder / "libpart.so")
    shared = ("-shared", "-Wl,-soname,libpart.so")
    subprocess.run(["gcc", *_FLAGS, *shared, "-o", made.library, folder / "part.c"], check=True)
    search = "-Wl,-rpath,$ORIGIN"
    subprocess.run(["gcc", *_FLAGS, search, "-o", made.app, folder / "app.c", made.library], check=True)
    return made


def line_of(text: str, *, library: bool) -> int:
    """Number of the line in its source that has ``text``."""
    source = _LIBRARY if library else _PROGRAM
    (found,) = [i for i, line in enumerate(source.splitlines(), 1) if text in line]
    return found


class Running:
    """A command that begins the program, perhaps after others. A context manager."""

    def __init__(self, *command: str | Path) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd="/")
        assert self._process.stdout
        readable, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        line = self._process.stdout.readline() if readable else b""
        if line != b"ready\n":
            self.kill()
            raise AssertionError(f"{command[0]} said {line!r}")
        self.pid = _last_child(self._process.pid)

    @property
    def pid_inside(self) -> int:
        """Pid as the program sees it."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("NSpid:")).split()[-1])

    def kill(self) -> None:
        """Kills the program; its namespaces go with it."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def _last_child(pid: int) -> int:
    while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        (pid,) = map(int, children)
    return pid


_ENTER = """
set -e
kind=$1 place=$2 files=$3
case $kind in
tmpfs) mount -t tmpfs tmpfs "$place" ;;
overlay)
    layers=$(mktemp -d)
    mount -t tmpfs tmpfs "$layers"
    mkdir "$layers/upper" "$layers/work"
    mount -t overlay -o "lowerdir=$place,upperdir=$layers/upper,workdir=$layers/work" overlay "$place"
    ;;
esac
cp "$files/app" "$files/libpart.so" "$place/"
exec "$place/app"
"""


def run_contained(kind: str, place: Path, files: Path) -> Running:
    """The program in new mount and pid namespaces, where it and its library are at ``place``, on a ``kind`` file
    system of their own; what is there outside stays as it is."""
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
    return Running(*unshare, "sh", "-c", _ENTER, "sh", kind, place, files)


def inside(running: Running, path: Path) -> Path:
    """A path of the container's as one of the host's."""
    return Path(f"/proc/{running.pid}/root{os.fspath(path)}")
