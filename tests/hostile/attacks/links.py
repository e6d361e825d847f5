"""Puts links to another file where somebody is about to write, and takes them away again: links.py PATH VICTIM. Says
"ready PID"."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path


def main(path: Path, victim: Path) -> None:
    signal.alarm(120)
    link = path.with_name("link")
    link.symlink_to(victim)
    print(f"ready {os.getpid()}", flush=True)
    while True:
        with contextlib.suppress(OSError):
            link.rename(path)
            path.unlink()
        with contextlib.suppress(OSError):
            link.symlink_to(victim)
        for other in path.parent.glob(".stallscope-*"):  # names under which it may be written first
            with contextlib.suppress(OSError):
                other.unlink()
                other.symlink_to(victim)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
