"""Mount namespaces come and go, each with a file system of its own and a process: churn.py FOLDER PROGRAM.
Says "ready PID"."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

_SECONDS, _TIMES = 120, 60


def main(folder: str, program: str) -> None:
    signal.alarm(_SECONDS)
    print(f"ready {os.getpid()}", flush=True)
    script = 'mount -t tmpfs none "$1" && exec "$2" 0.05'
    for _ in range(_TIMES):
        command = ["unshare", "-Urm", "sh", "-c", script, "sh", folder, shutil.which(program) or program]
        subprocess.run(command, check=True)
    while True:
        time.sleep(0.02)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
