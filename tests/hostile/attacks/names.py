"""Names that are meant for a terminal, a shell, or another program's options: names.py FOLDER. Says "ready PID"."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
import threading
from pathlib import Path

import bombs

_SECONDS = 120
_THREADS = (
    b"\x1b[2J\x1b]0;owned\x07",
    b"a\nroot 999999",
    b"\xe2\x80\xaeevil",
    b"\xff\xfe\x00",
    b"<script>x",
    b"$(id)`id`;|&",
)
_FILES = ("@file", "-o\n--help", "\x1b]0;owned\x07.so", "\u202eos.evil", "a (deleted)", "libtorch.so;id", "x" * 250)
_PR_SET_NAME = 15


def _named(name: bytes) -> None:
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NAME, name, 0, 0, 0)
    while True:
        libc.usleep(20_000)


def main(folder: Path) -> None:
    signal.alarm(_SECONDS)
    kept = []
    for name in _FILES:
        path = folder / name
        bombs.write(path, bombs.elf({}, []))
        with path.open("rb") as file:
            kept.append(mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
    for name in _THREADS:
        threading.Thread(target=_named, args=(name,), daemon=True).start()
    bombs.run_code_of(folder / _FILES[0])


if __name__ == "__main__":
    if len(sys.argv) == 2:  # 1.5 MB of arguments, in texts as long as the kernel takes them
        long = ["\x1b[31m\n" + "A" * 100_000] * 15
        os.execv("/usr/bin/python3", ["/usr/bin/python3", __file__, sys.argv[1], *long])
    main(Path(sys.argv[1]))
