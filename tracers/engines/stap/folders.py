"""Folders: the kernel's, which modules are built with, and our own, in which they are kept."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from ....converters.base.errors import StallscopeError
from ....converters.base.text import printable
from ....converters.base.trusted import weak_part
from ...unwind.cache import default_folder
from ..protocol import EngineUnavailable

_HEADERS = (
    "install them: apt-get install linux-headers-{release} (Debian, Ubuntu), dnf install kernel-devel-{release} "
    "(Fedora, RHEL); or {otherwise}"
)
_ELSEWHERE = "compile where they are (--stap-compile-only), and give the result here (--stap-module)"
_OTHERS = "name those of the kernel that the module is for: --stap-build DIR"
_SMALLEST_MAP = 4096
"""Bytes; a stub has less."""
_LINKED = 0xFFFFFFFF81000000
"""Begin of the kernel's text in x86's System.map. What counts is that it is always the same."""
_MOST_KEPT = 4
"""Folders with symbols: of the kernels that were used last."""
_TRACEPOINTS = (
    *("include/trace/events/sched.h", "include/trace/events/irq.h", "include/trace/events/syscalls.h"),
    "arch/*/include/asm/trace/irq_vectors.h",
)
"""Headers of the scripts' tracepoints. SystemTap compiles all that it finds, which takes minutes for a kernel's 200."""
_TRACE = ("trace", "ras")
"""Folders in which it looks for them."""
_INCLUDED = re.compile(r"^include (/\S+)/Makefile$", re.MULTILINE)


def find_headers(build: Path | None = None, *, only_compiles: bool = False) -> Path:
    """The kernel's build folder. EngineUnavailable if it is not there.

    ``only_compiles``: by --stap-compile-only; without ``build``, for the running kernel.
    """
    release = os.uname().release
    folder = build or Path("/lib/modules") / release / "build"
    if not (folder / "Makefile").exists():
        if build:
            raise StallscopeError(
                f"{build} is no build folder of a kernel: it has no Makefile", "give --stap-build DIR"
            )
        remedy = _HEADERS.format(release=release, otherwise=_OTHERS if only_compiles else _ELSEWHERE)
        raise EngineUnavailable(f"there are no headers of this kernel in {folder}", remedy)
    return folder


def with_tracepoints(build: Path) -> Path:
    """A build folder with a link named source to the kernel's own headers, as far as the scripts need them.

    Debian has these in another folder, which the Makefile includes and SystemTap does not find. A folder that has all
    headers is returned as it is.
    """
    source = _source(build)
    if source is None:
        return build
    links = {entry.name: entry.resolve() for entry in build.iterdir() if entry.name != "source"}
    links |= {f"source/include/{each.name}": each for each in (source / "include").iterdir() if each.name not in _TRACE}
    for pattern in _TRACEPOINTS:
        links |= {f"source/{header.relative_to(source)}": header for header in source.glob(pattern)}
    known = [each.stat() for each in (build / "Makefile", build / "Module.symvers") if each.exists()]
    parts = [str(build.resolve()), str(source), *(f"{each.st_size} {each.st_mtime_ns}" for each in known)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    folder = own_folder() / f"headers-{key}"
    _link(links, folder, folder)
    return folder


def _link(links: Mapping[str, Path], folder: Path, name: Path) -> None:
    """Fills ``folder``, which will have the name ``name``, with links; what is there already stays.

    Two files are copied: a Makefile may name its own folder, from where kernels since 6.13 have to be built; and what
    writes to Module.symvers does not change the kernel's own.
    """
    for link, target in links.items():
        place = folder / link
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if place.is_symlink() or place.exists():
            continue
        if link == "Makefile":
            place.write_text(target.read_text().replace(f"={target.parent}\n", f"={name}\n"))
        elif link == "Module.symvers":
            shutil.copy2(target, place)
        else:
            with contextlib.suppress(FileExistsError):
                place.symlink_to(target)


def _source(build: Path) -> Path | None:
    """The folder of the kernel's own headers, if that is another one."""
    included = _INCLUDED.search((build / "Makefile").read_text(errors="replace"))
    folders = [build / "source", *([Path(included[1])] if included else [])]
    return next((each.resolve() for each in folders if (each / _TRACEPOINTS[0]).exists()), None)


def with_symbols(build: Path, *, is_other: bool) -> Path:
    """A build folder that has a System.map, without which SystemTap does not know whether the kernel can tell of a
    function's return. EngineUnavailable if the kernel's symbols are not known.

    Distributions' own are stubs. ``is_other``: the folder is not of the running kernel, whose symbols are known.
    """
    if _is_real(build / "System.map"):
        return build
    release = release_of(build)
    if _is_real(Path(f"/boot/System.map-{release}")):
        return build
    names = b"" if is_other else _running_symbols()
    if not names:
        raise EngineUnavailable(
            f"the symbols of kernel {release} are not known, without which SystemTap times no functions",
            f"put System.map, from `sudo cat /proc/kallsyms` of that kernel, into {build}, or as "
            f"/boot/System.map-{release}",
        )
    key = hashlib.sha256(str(build.resolve()).encode() + names).hexdigest()[:16]
    folder = own_folder() / f"build-{key}"
    if not folder.exists():
        aside = folder.with_name(f"{folder.name}.{os.getpid()}")
        aside.mkdir(mode=0o700)
        _link({entry.name: entry.resolve() for entry in build.iterdir()}, aside, folder)
        (aside / "System.map").unlink(missing_ok=True)
        (aside / "System.map").write_bytes(names)
        take_place(aside, folder)
    os.utime(folder)
    for old in sorted(folder.parent.glob("build-*"), key=lambda each: each.lstat().st_mtime)[:-_MOST_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def take_place(made: Path, of: Path) -> Path:
    """Renames a folder, unless another trace has made the same one meanwhile. Returns where it is."""
    try:
        made.rename(of)
    except OSError:
        shutil.rmtree(made)
        if not of.exists():
            raise
    return of


def _is_real(file: Path) -> bool:
    try:
        with file.open("rb") as text:
            return len(text.read(_SMALLEST_MAP)) == _SMALLEST_MAP
    except OSError:
        return False


def release_of(build: Path | None) -> str:
    """Release of the kernel that the build folder is for; None: the running kernel."""
    if build is None:
        return os.uname().release
    try:
        match = re.search(r'UTS_RELEASE "([^"]+)"', (build / "include/generated/utsrelease.h").read_text())
    except OSError:
        match = None
    return match[1] if match else os.uname().release


def _running_symbols() -> bytes:
    """Symbols of the kernel itself, as in System.map; b"" if their addresses are hidden."""
    try:
        lines = Path("/proc/kallsyms").read_bytes().splitlines(keepends=True)
    except OSError:
        return b""
    return _as_linked([line for line in lines if b"[" not in line])


def _as_linked(lines: Sequence[bytes]) -> bytes:
    """Lines of the kernel's symbols with addresses that a boot does not change: the kernel moves all of itself by the
    same distance. b"" if the addresses are hidden."""
    begin = next((int(line[:16], 16) for line in lines if line.endswith(b" _text\n")), 0)
    if not begin:
        return b""
    pairs = ((int(line[:16], 16), line[16:]) for line in lines)
    return b"".join(
        b"%016x" % (_LINKED + address - begin if address >= begin else address) + rest for address, rest in pairs
    )


def own_folder() -> Path:
    """A folder that only this user can write to: what is in it is loaded into the kernel."""
    folder = Path(default_folder()) / "stap"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        weak = weak_part(str(folder))
    except OSError as error:
        raise EngineUnavailable(f"no folder for modules: {printable(str(error))}", "set STALLSCOPE_CACHE") from None
    if found.st_uid != os.geteuid() or folder.is_symlink():
        weak = str(folder)
    if weak:
        raise EngineUnavailable(
            f"{printable(weak)} belongs to others, or others may write to it: modules are not taken from "
            f"{printable(str(folder))}",
            "set STALLSCOPE_CACHE to a folder of your own",
        )
    return folder
