"""The compiler, headers and SystemTap of a kernel's own suite, as a root file system: for kernels whose modules this
system's compiler cannot make.

Its packages are unpacked, not installed: no script of theirs runs.
"""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from archive import fetch_with_needs
from image import once
from kernels import Kernel, cache_folder

_PACKAGES = (
    *("systemtap", "gcc", "make", "libc6-dev", "libc6-dbg", "libstdc++6"),
    *("python3", "python3-click", "python3-numpy", "python3-pyelftools"),
    *("base-files", "bash", "coreutils", "dash", "diffutils", "findutils", "grep", "gzip", "kmod", "mawk", "sed"),
)
_LINKS = {"usr/bin/awk": "mawk"}
"""Links that packages' scripts would make."""
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_LIBRARIES = ":".join(f"/usr/lib/x86_64-linux-gnu/{name}" for name in ("blas", "lapack"))
"""Paths of numpy's libraries, to which packages' scripts would make links."""
_COMMAND = "import sys; sys.argv[0] = {name!r}; from stallscope.tracers.entry import {function}; sys.exit({function}())"
_ENTER = """\
set -e
cd {userland}
for each in /proc /sys /dev; do mount --rbind $each .$each; done
mount -t tmpfs tmpfs tmp
mkdir -p .{checkout} tmp/package/stallscope
mount --bind {checkout} .{checkout}
for each in bpf converters stap tracers; do ln -s {checkout}/$each tmp/package/stallscope; done
exec env -i PATH={path} LD_LIBRARY_PATH={libraries} HOME=/root LC_ALL=C.UTF-8 PYTHONPATH=/tmp/package \\
	PYTHONDONTWRITEBYTECODE=1 chroot . "$@"
"""
"""Script for the shell. What it mounts is seen by its command alone."""
_CHECKOUT = Path(__file__).resolve().parents[2]


@lru_cache
def root(kernel: Kernel) -> Path:
    """Folder where the suite of the kernel is unpacked. Minutes for the first time."""
    headers = kernel.package.replace("linux-image", "linux-headers")
    debs = fetch_with_needs(kernel.suite, (*_PACKAGES, headers), without="linux-image")
    key = hashlib.sha256(" ".join(sorted(deb.name for deb in debs)).encode()).hexdigest()[:16]
    folder = cache_folder() / "userlands" / f"{kernel.suite}-{key}"
    for old in folder.parent.glob(f"{kernel.suite}-{'[0-9a-f]' * 16}"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    return once(folder, lambda new: _unpack(debs, new))


def build_folder(userland: Path) -> Path:
    """The folder in there that a module for the suite's kernel is built with."""
    (folder,) = (each for each in userland.glob("usr/src/linux-headers-*") if not each.name.endswith("-common"))
    return folder


def _unpack(debs: Sequence[Path], folder: Path) -> None:
    first = [deb for deb in debs if deb.name.startswith("base-files_")]  # has the links lib, bin and sbin
    for deb in (*first, *(deb for deb in debs if deb not in first)):
        # As a stream for tar: `dpkg -x` replaces a link to a folder.
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as process:
            subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", folder], stdin=process.stdout, check=True)
    for name in ("proc", "sys", "dev", "tmp", "root"):
        (folder / name).mkdir(exist_ok=True)
    for link, target in _LINKS.items():
        if not (folder / link).is_symlink():
            (folder / link).symlink_to(target)


def command(userland: Path, stem: str, arguments: Sequence[str]) -> list[str]:
    """``trace-STEM`` of this checkout with these arguments, run in there by the suite's Python.

    The checkout is seen there at its own path.
    """
    places = {"userland": shlex.quote(str(userland)), "checkout": shlex.quote(str(_CHECKOUT))}
    script = _ENTER.format(**places, path=_PATH, libraries=_LIBRARIES)
    enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]
    return [*enter, "python3", "-c", _COMMAND.format(name=f"trace-{stem}", function=stem), *arguments]
