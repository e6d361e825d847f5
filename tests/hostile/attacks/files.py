"""A mapped file is truncated, written anew, renamed, and replaced by what is no file: files.py FOLDER. The code that
runs is that of another file beside it. Says "ready PID"."""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_SECONDS = 120


def replaced(path: Path, content: bytes, round_: int) -> None:
    """Puts something else where the file was."""
    with contextlib.suppress(OSError):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    kind = round_ % 5
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.symlink_to("/etc/shadow")
    elif kind == 2:
        path.mkdir()
    elif kind == 3:
        with path.open("wb") as file:
            file.truncate(8 << 40)
    else:
        path.write_bytes(content)


def main(folder: Path) -> None:
    signal.alarm(_SECONDS)
    content = Path("/usr/bin/python3").read_bytes()
    truncated, other = folder / "truncated.so", folder / "other.so"
    truncated.write_bytes(content)
    other.write_bytes(content)
    kept = []
    for path in (truncated, other):
        with path.open("rb") as file:
            kept.append(mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
    print(f"ready {os.getpid()}", flush=True)
    for round_ in itertools.count():
        with truncated.open("r+b") as file:
            file.truncate(64 if round_ % 2 else 0)
            time.sleep(0.01)
            file.write(content if round_ % 4 < 3 else content[:4096] + os.urandom(1 << 20))
        replaced(other, content, round_)
        with path_mapped(truncated) as memory:
            kept[1:] = [memory]
        time.sleep(0.01)


@contextlib.contextmanager
def path_mapped(path: Path) -> Iterator[mmap.mmap]:
    """The file, mapped anew, so that somebody looks at it."""
    with path.open("rb") as file:
        yield mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
