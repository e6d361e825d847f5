"""Ranks of PyTorch with gloo on this machine, of which rank 1 comes late, for the reason that is given: RANKS CAUSE.

loader: it waits for batches of a slow process. disk: it makes each step's log durable. gc: it collects garbage in each
step. gil: another thread of it computes in Python. quota: its control group may use a tenth of a core. neighbour: some
that come before it compute on its core. link, rate: it comes as the others do, but half of the ranks are behind a link
that takes its time for each packet, or for each byte.
"""

import contextlib
import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed

sys.path.append(str(Path(__file__).resolve().parents[2] / "workloads"))
from slow_link import DEVICE as LINK
from slow_link import SlowLink

LATE = 1
DEVICE = 0.005
"""Seconds of a step for which a rank waits for its device."""
BATCH = 4096
LOADER = f"import os,time\nwhile 1: time.sleep(0.06); os.write(1, bytes({BATCH}))"
BURN = "import hashlib\nwhile 1: hashlib.sha256(bytes(1<<20))"
NEIGHBOURS = 3
QUOTA, PERIOD = 10_000, 100_000
WORK = 2000
WRITES, RECORD = 0.02, 4096
"""Seconds for which records are written in a step, as on a slow disk, and their bytes."""
NICE = -10
"""More for the neighbours: a core is divided evenly otherwise, and a rank that needs little of it gets that."""
KEPT = 100_000
"""Objects that the collector looks at, beside as many lists."""
DELAY, RATE = 0.01, 4e6
"""Seconds for a packet over the link, and bytes a second."""
FEW, MANY = 1000, 100_000
"""Weights; over the link that takes its time for each byte, there are more."""
Doing = Callable[[], object]
children: list[subprocess.Popen[bytes]] = []


def hierarchy() -> tuple[Path, int]:
    """Folder in which groups with quotas can be made, and the version."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            return Path(mount), 1
        if kind == "cgroup2" and "cpu" in Path(mount, "cgroup.subtree_control").read_text().split():
            return Path(mount), 2
    print("cannot run here: no control group controls the cores", flush=True)
    sys.exit()


def limit(pid: int) -> Path:
    top, version = hierarchy()
    group = top / f"stallscope-diagnosis-{os.getpid()}"
    group.mkdir()
    if version == 2:
        (group / "cpu.max").write_text(f"{QUOTA} {PERIOD}")
    else:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD))
        (group / "cpu.cfs_quota_us").write_text(str(QUOTA))
    (group / "cgroup.procs").write_text(str(pid))
    return group


def compute(rounds: int = WORK) -> int:
    """Python code that holds the interpreter's lock."""
    total = 0
    for number in range(rounds):
        total += number * number % 7
    return total


def for_ever() -> None:
    while True:
        compute()


def load_batch(loader: subprocess.Popen[bytes]) -> bytes:
    assert loader.stdout
    return os.read(loader.stdout.fileno(), BATCH)


def write_log(log: int) -> None:
    until = time.monotonic() + WRITES
    while time.monotonic() < until:
        os.pwrite(log, bytes(RECORD), 0)
        os.fsync(log)


def prepare(cause: str, folder: Path) -> Doing:
    """Returns the function that the late rank calls in each step, beside what all do."""
    if cause == "loader":
        children.append(subprocess.Popen([sys.executable, "-c", LOADER], stdout=subprocess.PIPE))
        return lambda: load_batch(children[0])
    if cause == "disk":
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
        return lambda: write_log(log)
    if cause == "gc":
        gc.freeze()  # the many objects of PyTorch
        kept = [{i: [i]} for i in range(KEPT)]
        return lambda: gc.collect() + len(kept)
    if cause == "gil":
        threading.Thread(target=for_ever, daemon=True, name="statistics").start()
    return lambda: None


def train(number: int, size: int, cause: str, folder: Path) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=number, world_size=size)
    weights = torch.ones(MANY if cause == "rate" else FEW)
    prepared = prepare(cause if number == LATE else "", folder)
    while True:
        prepared()
        compute()
        time.sleep(DEVICE)
        torch.distributed.all_reduce(weights)
        weights /= size
        if not number:
            (folder / "going").touch()


def link_for(cause: str) -> contextlib.AbstractContextManager[SlowLink | None]:
    """The link between the ranks; None: they need none."""
    if cause == "link":
        return SlowLink(DELAY)
    return SlowLink(rate=RATE) if cause == "rate" else contextlib.nullcontext()


def main(size: int, cause: str) -> None:
    groups: list[Path] = []
    with tempfile.TemporaryDirectory() as text, link_for(cause) as link:
        folder = Path(text)
        ranks = []
        for number in range(size):
            command = [sys.executable, __file__, str(size), cause, str(number), text]
            if link:
                variables = {**os.environ, "GLOO_SOCKET_IFNAME": LINK}
                ranks.append(link.start(2 * number // size, command, stdin=subprocess.DEVNULL, env=variables))
            else:
                ranks.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True))
        try:
            while not (folder / "going").exists():
                time.sleep(0.1)
            if cause == "quota":
                groups.append(limit(ranks[LATE].pid))
            if cause == "neighbour":
                (core,) = sorted(os.sched_getaffinity(0))[-1:]
                os.sched_setaffinity(ranks[LATE].pid, [core])
                for _ in range(NEIGHBOURS):
                    children.append(subprocess.Popen(["nice", "-n", str(NICE), sys.executable, "-c", BURN]))
                    os.sched_setaffinity(children[-1].pid, [core])
            time.sleep(0.5)
            print(*(rank.pid for rank in ranks), flush=True)
            sys.stdin.read()
        finally:
            for process in (*ranks, *children):
                process.kill()
                process.wait()
    for group in groups:
        group.rmdir()


if __name__ == "__main__":
    if len(sys.argv) > 3:
        train(int(sys.argv[3]), int(sys.argv[1]), sys.argv[2], Path(sys.argv[4]))
    else:
        main(int(sys.argv[1]), sys.argv[2])
