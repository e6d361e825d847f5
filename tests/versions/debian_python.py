"""An interpreter of another Debian suite, unpacked into a folder of its own, with the C library that it needs."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import archive

PACKAGES = (
    *("python3.14", "python3.14-minimal", "libpython3.14-minimal", "libpython3.14-stdlib"),
    *("libc6", "libgcc-s1", "libexpat1", "zlib1g", "libbz2-1.0", "libffi8", "liblzma5", "libssl3t64", "libzstd1"),
)
"""Packages with what the tests' programs import, too. Nothing of it is installed."""
LIBRARIES = "usr/lib/x86_64-linux-gnu"
SUITE = "sid"


def unpacked(folder: Path) -> str:
    """Fetches Debian's Python 3.14 into the folder, anew each time.

    Returns the command that runs it, by its own loader. Raises `archive.ArchiveError`, with apt's words.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in archive.fetch_named(SUITE, PACKAGES):
        subprocess.run(["dpkg-deb", "-x", file, folder], check=True)
    return command(folder)


def command(folder: Path) -> str:
    """The interpreter's command, as `$STALLSCOPE_PYTHONS` takes it."""
    libraries = folder / LIBRARIES
    loader = libraries / "ld-linux-x86-64.so.2"
    return shlex.join([str(loader), "--library-path", str(libraries), str(folder / "usr/bin/python3.14")])
