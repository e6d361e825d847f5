"""A process that computes with two threads in a control group that may use a fifth of a core."""

import os
import subprocess
import sys
import time
from pathlib import Path

BURN = (
    "import threading,hashlib\ndef f():\n while 1: hashlib.sha256(bytes(1<<20))\nthreading.Thread(target=f).start();f()"
)
QUOTA, PERIOD = 10_000, 50_000


def hierarchy() -> tuple[Path, int]:
    """Folder in which groups with quotas can be made, and the version."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            return Path(mount), 1
        if kind == "cgroup2" and "cpu" in Path(mount, "cgroup.subtree_control").read_text().split():
            return Path(mount), 2
    print("cannot run here: no control group controls the cores")
    sys.exit()


top, version = hierarchy()
group = top / f"stallscope-diagnosis-{os.getpid()}"
group.mkdir()
child = subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.DEVNULL)
try:
    if version == 2:
        (group / "cpu.max").write_text(f"{QUOTA} {PERIOD}")
    else:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD))
        (group / "cpu.cfs_quota_us").write_text(str(QUOTA))
    (group / "cgroup.procs").write_text(str(child.pid))
    time.sleep(0.1)
    print(child.pid, flush=True)
    sys.stdin.read()
finally:
    child.kill()
    child.wait()
    for _ in range(100):
        try:
            group.rmdir()
            break
        except OSError:
            time.sleep(0.02)
