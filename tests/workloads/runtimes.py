"""Programs of other runtimes and C libraries, to see whose stacks are complete: built when they are asked for.

`BUILDS` has them by name. What a machine lacks a compiler for is left out, and told.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "runtimes"
_PATIENCE = 300
_SETTLED = 1.0
"""Seconds until a program has started all its threads."""


class MissingError(Exception):
    """Error that names the package that a build needs."""


@dataclass(frozen=True)
class Built:
    """A program. ``command`` runs it until it is killed."""

    name: str
    command: tuple[str, ...]

    @contextlib.contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """The process, at work; it is gone afterwards."""
        nothing = subprocess.DEVNULL
        child = subprocess.Popen(self.command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
        try:
            time.sleep(_SETTLED)
            assert child.poll() is None, f"{self.name} has ended"
            yield child
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def build(name: str, folder: Path) -> Built:
    """MissingError when there is no compiler for it."""
    return Built(name, tuple(map(str, BUILDS[name](folder))))


def put_aside(path: Path, strip: str) -> None:
    """Leaves a file without debug information, which is in another beside it: debuggers find it, a trace does not."""
    debug = path.with_name(path.name + ".debug")
    folder = path.parent
    _run("objcopy", "--only-keep-debug", path, debug, folder=folder)
    _run("strip", strip, path, folder=folder)
    _run("objcopy", f"--add-gnu-debuglink={debug.name}", path, folder=folder)


def _run(*command: str | Path, folder: Path, **environment: str) -> None:
    finished = subprocess.run(
        list(map(str, command)), cwd=folder, env={**os.environ, **environment}, capture_output=True, timeout=_PATIENCE
    )
    assert finished.returncode == 0, (command, finished.stderr.decode(errors="replace"))


def _needs(program: str, package: str) -> str:
    if not (found := shutil.which(program)):
        raise MissingError(f"there is no {program} (package {package})")
    return found


def _c(name: str, *options: str, compiler: str = "gcc", package: str = "gcc") -> Callable[[Path], list[str | Path]]:
    def build_c(folder: Path) -> list[str | Path]:
        target = folder / name
        command = [_needs(compiler, package), "-O2", *options, "-o", target, SOURCES / "waits.c", "-pthread"]
        _run(*command, folder=folder)
        return [target]

    return build_c


def _m32(name: str, *options: str) -> Callable[[Path], list[str | Path]]:
    def build_m32(folder: Path) -> list[str | Path]:
        if not Path("/usr/include/gnu/stubs-32.h").exists() and not Path("/usr/lib32").exists():
            raise MissingError("there is no 32-bit C library (package gcc-multilib)")
        return _c(name, "-m32", *options)(folder)

    return build_m32


def _go(name: str, *, cgo: bool, stripped: bool = False) -> Callable[[Path], list[str | Path]]:
    def build_go(folder: Path) -> list[str | Path]:
        command = [_needs("go", "golang-go"), "build", "-o", name, SOURCES / "waits.go"]
        _run(*command, folder=folder, HOME=str(folder), GOFLAGS="-p=1", CGO_ENABLED=str(int(cgo)))
        if stripped:
            put_aside(folder / name, "--strip-all")
        return [folder / name]

    return build_go


def _java(*options: str) -> Callable[[Path], list[str | Path]]:
    def build_java(folder: Path) -> list[str | Path]:
        _run(_needs("javac", "default-jdk-headless"), "-d", folder, SOURCES / "Waits.java", folder=folder)
        return [_needs("java", "default-jdk-headless"), *options, "-cp", folder, "Waits"]

    return build_java


def _node(*options: str) -> Callable[[Path], list[str | Path]]:
    return lambda folder: [_needs("node", "nodejs"), *options, SOURCES / "waits.js"]


BUILDS: dict[str, Callable[[Path], list[str | Path]]] = {
    "glibc": _c("glibc"),
    "glibc, static": _c("glibc-static", "-static"),
    "musl": _c("musl", compiler="musl-gcc", package="musl-tools"),
    "musl, static": _c("musl-static", "-static", compiler="musl-gcc", package="musl-tools"),
    "Go": _go("go", cgo=False),
    "Go with cgo, stripped": _go("go-stripped", cgo=True, stripped=True),
    "Java": _java(),
    "Java, interpreted": _java("-Xint"),
    "Java, frame pointers kept": _java("-XX:+PreserveFramePointer"),
    "node": _node(),
    "glibc, 32 bits": _m32("glibc-32"),
    "glibc, static, 32 bits, frame pointers kept": _m32("glibc-32-static", "-static", "-fno-omit-frame-pointer"),
}
"""Builders by name: each builds the program in a folder, and returns the command that runs it."""
