"""Scripts to a kernel module: finds stap and the kernel's headers, compiles, keeps what was compiled."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import re
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....converters.base import helpers
from ....converters.base.errors import StallscopeError
from ....converters.base.text import printable
from ...base.parent import end_with_parent
from ..protocol import EngineUnavailable
from . import runtime
from .folders import find_headers, own_folder, with_symbols, with_tracepoints
from .runtime import SCRIPTS

NAME = "stallscope_"
"""Begin of the module's name; the letters of its scripts follow."""
_LETTERS = {"offcpu": "f", "oncpu": "n", "ioctl": "i", "wakeup": "w", "cuda": "c"}
MOST_FRAMES = 128
"""Most frames of a stack; SystemTap's own limit is 20. So many addresses are less than a string's 4,096 characters."""
_FLAGS = (
    *("-DMAXSTRINGLEN=4096", "-DMAXACTION=1000000", "-DSTP_NO_OVERLOAD", "-DSTP_NO_BUILDID_CHECK"),
    *("-DINTERRUPTIBLE=0", "-DMAXTRYLOCK=20000", "-DMAXSKIPPED=2147483647", f"-DMAXBACKTRACE={MOST_FRAMES}"),
)
"""INTERRUPTIBLE: an interrupt that a probe lets in would miss its own probes, such as that of a wake-up. MAXTRYLOCK: a
probe waits for a lock 200 ms at most; by default 1 ms, for which a virtual machine's core can be stopped. MAXSKIPPED:
by default a script ends when 100 events were skipped; the summary tells their number. MAXACTION: at the end, what is
said of some ten thousand waiting threads takes some hundred thousand statements."""
_QUERIES = "KCFLAGS=$(if $(findstring tracequery,$(M)),-w)"
"""Argument for make. SystemTap compiles each header that has tracepoints, in a folder of this name, and takes a warning
for an error. Before 5.2 it defines COUNT_ARGS(), as kernels since 6.10 do in other words: no tracepoint is found."""
MOST_FILES = 64
"""Files whose symbols and unwind tables become part of the module."""
_MOST_KEPT = 16
"""Modules in the cache."""
_PATIENCE = 1800.0
"""Seconds for stap: the first time, it looks at all of the kernel's tracepoints."""
_INSTALL = "install it: apt-get install systemtap (Debian, Ubuntu), dnf install systemtap (Fedora, RHEL)"
_PROBE = re.compile(r"probe process\(@1\)\.function\(@2\)\.(\w+) \{")
_PLAIN = re.compile(r"[\w./+@:=,~-]+")


@dataclass(frozen=True)
class Source:
    """Source that is compiled."""

    scripts: tuple[str, ...]
    """Names of scripts in `SCRIPTS`, which become one."""
    arguments: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Files whose functions stacks can show."""
    build: Path | None = None
    """The kernel's build folder; None: that of the running kernel."""
    functions: tuple[tuple[str, str], ...] = ()
    """(Path, name) of those whose calls are timed: they take the place of a script's arguments."""

    def text(self) -> str:
        """The script. Names are of letters that need no quotes; StallscopeError for such a path."""
        text = "\n".join((SCRIPTS / f"{name}.stp").read_text() for name in self.scripts)
        if self.functions:
            return _PROBE.sub(lambda match: f"probe {self._points(match[1])} {{", text)
        return text

    def _points(self, kind: str) -> str:
        if path := next((path for path, _ in self.functions if not _PLAIN.fullmatch(path)), ""):
            raise StallscopeError(
                f"SystemTap cannot take functions of {printable(path)}", "use a path of plain letters and digits"
            )
        return ",\n\t".join(f'process("{path}").function("{name}").{kind}' for path, name in self.functions)


@dataclass(frozen=True)
class Compiler:
    """A stap that works."""

    path: str
    version: str


def find_stap() -> Compiler:
    """EngineUnavailable if there is none."""
    path = helpers.find_program("stap")
    if path is None:
        raise EngineUnavailable("there is no SystemTap: no stap", _INSTALL)
    try:
        said = helpers.run([path, "--version"], seconds=20)
    except OSError as error:
        raise EngineUnavailable(f"stap does not run: {printable(str(error))}", _INSTALL) from None
    match = re.search(r"version (\d+\.\d+)", (said.output + said.errors).decode(errors="replace"))
    if said.status or not match:
        raise EngineUnavailable(f"stap does not run: status {said.status}", _INSTALL)
    return Compiler(path, match[1])


def compile_module(source: Source, show: Callable[[str], None] = lambda _: None) -> Path:
    """The module's file, which is kept: equal sources are compiled once.

    ``show`` is told, again and again, what is being done. EngineUnavailable with what is missing, or what stap says.
    """
    stap, build = find_stap(), with_tracepoints(find_headers(source.build))
    if source.functions:
        build = with_symbols(build, is_other=source.build is not None)
    kept = own_folder() / f"{_key(source, stap, build)}.ko"
    if kept.exists():
        with contextlib.suppress(OSError):
            os.utime(kept)
        return kept
    with helpers.private_folder("stallscope-stap-") as work:
        made = _compile(source, stap, build, Path(work), show)
        shutil.copyfile(made, aside := kept.with_suffix(f".{os.getpid()}"))
        aside.rename(kept)
    for old in sorted(kept.parent.glob("*.ko"), key=lambda file: file.stat().st_mtime)[:-_MOST_KEPT]:
        old.unlink(missing_ok=True)
    return kept


def _key(source: Source, stap: Compiler, build: Path) -> str:
    """Everything that the module depends on."""
    parts = [source.text(), *(file.read_text() for file in sorted((SCRIPTS / "tapset").glob("*.stp")))]
    parts += [
        *source.arguments,
        *_FLAGS,
        repr(_LETTERS),
        stap.version,
        runtime.changes(),
        str(build.resolve()),
        os.uname().release if not source.build else "",
    ]
    for file in (*source.files, str(build / "Module.symvers"), str(build / "include/generated/utsrelease.h")):
        with contextlib.suppress(OSError):
            found = os.stat(file)
            parts.append(f"{file} {found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:32]


def _compile(source: Source, stap: Compiler, build: Path, work: Path, show: Callable[[str], None]) -> Path:
    script = work / "trace.stp"
    script.write_text(source.text())
    letters = "".join(_LETTERS[each] for each in source.scripts)
    name = f"{NAME}{letters}_{hashlib.sha256(script.read_bytes()).hexdigest()[:8]}"
    files = [word for file in source.files[:MOST_FILES] for word in ("-d", file)]
    words = [stap.path, "-I", str(SCRIPTS / "tapset"), "-r", str(build.resolve()), "-p4", "-m", name]
    words += ["-B", _QUERIES, *_FLAGS, *files]
    if mended := runtime.mended(build, stap.path, stap.version):
        words += ["-R", str(mended)]
    said = _run(words, [str(script), *source.arguments], work, show)
    made = work / f"{name}.ko"
    if not made.exists():
        raise refusal(said, stap, lambda: _trouble_of(build, work))
    return made


def scripts_of(name: str) -> set[str]:
    """Names of the scripts in a module of this name."""
    letters = name.removeprefix(NAME).partition("_")[0]
    return {script for script, letter in _LETTERS.items() if letter in letters}


def _trouble_of(build: Path, work: Path) -> str:
    """Text that is said when a module with nothing in it is compiled; empty if that can be done."""
    folder = work / "empty"
    folder.mkdir()
    (folder / "Makefile").write_text("obj-m := empty.o\n")
    (folder / "empty.c").write_text('#include <linux/module.h>\nMODULE_LICENSE("GPL");\n')
    make = helpers.find_program("make")
    if make is None:
        return "make: not found"
    try:
        done = helpers.run(
            [make, "-C", str(build.resolve()), f"M={folder}", "modules"], seconds=_PATIENCE, most=1 << 30
        )
    except OSError as error:
        return str(error)
    lines = [line.strip() for line in done.errors.decode(errors="replace").splitlines()]
    told = [line for line in lines if re.search(r"not found|\berror\b", line)]
    return (told or lines or ["make failed"])[0] if done.status else ""


def _run(words: Sequence[str], script: Sequence[str], work: Path, show: Callable[[str], None]) -> str:
    """Runs stap; returns what it says."""
    log = work / "log"
    with log.open("wb") as output:
        process = helpers.start(
            [*words, *script],
            folder=str(work),
            stdout=output,
            stderr=output,
            prepare=end_with_parent(signal.SIGTERM),
            # In its home it keeps what it has found out about the kernel, which takes minutes.
            environment={"HOME": pwd.getpwuid(os.geteuid()).pw_dir, "TMPDIR": str(work)},
        )
        began = time.monotonic()
        try:
            while process.poll() is None:
                seconds = time.monotonic() - began
                show(f"SystemTap compiles a module, which can take minutes the first time: {seconds:.0f} s")
                if seconds > _PATIENCE:
                    raise EngineUnavailable("stap came to no end", "run `stap -v -e 'probe oneshot {}'` to see where")
                time.sleep(0.1)
        finally:
            helpers.kill(process)
    return log.read_text(errors="replace")


def refusal(said: str, stap: Compiler, trouble: Callable[[], str] = str) -> EngineUnavailable:
    """Error for stap's words. ``trouble`` finds out what is wrong with the kernel's build folder."""
    lines = [line.strip() for line in said.splitlines()]
    told = [line for line in lines if re.search(r"\berror:|ERROR", line)]
    told = told or [line for line in lines if "error" in line]
    first = printable((told or lines or ["it said nothing"])[0])[:200]
    if "resolution failed in tracepoint builder" in said or re.search(r"identifier 'kernel'[^$]*no match", said):
        if why := printable(trouble())[:200]:
            return EngineUnavailable(
                f"no module can be compiled with this kernel's headers: {why}",
                "install the compiler of this kernel; or compile on a system that has it: --stap-compile-only",
            )
        return EngineUnavailable(
            "SystemTap finds no tracepoints in the kernel's headers",
            "install the complete headers; their folder needs a link named source where they are in two packages",
        )
    if "Pass 4: compilation failed" in said:
        return EngineUnavailable(
            f"SystemTap {stap.version} is too old for this kernel: its module does not compile ({first})",
            "install a newer SystemTap, or compile with one elsewhere: --stap-compile-only",
        )
    if "return probes not available" in said and "symbol table missing" in said:
        # Since 5.1 it looks there alone, and not in the build folder.
        return EngineUnavailable(
            f"SystemTap {stap.version} does not find the kernel's symbols, without which it times no functions",
            "copy them from /proc/kallsyms of that kernel, as root, to /boot/System.map-RELEASE (`uname -r` tells it)",
        )
    return EngineUnavailable(f"stap failed: {first}", "see `man error::pass2` and the other pages of stap's errors")
