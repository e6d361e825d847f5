"""Many short processes, each with a JIT map of 60 MB: perf_maps.py FOLDER, where FOLDER is mounted at /tmp. Says
"ready PID"."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

_SECONDS, _PROCESSES, _BYTES = 120, 300, 60 << 20


def main(folder: Path) -> None:
    signal.alarm(_SECONDS)
    lines = b"".join(b"%x 10 function_%d\n" % (0x10000 + 8 * i, i) for i in range(50_000))
    big = folder / "big"
    big.write_bytes(lines * (_BYTES // len(lines)))
    os.utime(big, (time.time() + 1000,) * 2)
    (folder / f"perf-{os.getpid()}.map").hardlink_to(big)
    print(f"ready {os.getpid()}", flush=True)
    for _ in range(_PROCESSES):
        child = os.fork()
        if not child:
            (folder / f"perf-{os.getpid()}.map").hardlink_to(big)
            time.sleep(0.02)
            os._exit(0)
        os.waitpid(child, 0)
    while True:
        time.sleep(0.02)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
