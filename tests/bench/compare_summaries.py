"""Whether two versions of the source tell the same of the same profiles: text and ``--json``, byte by byte.

A key that only one of them has is named, and not compared.

``python tests/bench/compare_summaries.py --checkout FOLDER [PROFILE.pb.gz …]`` compares this version with the one in
another checkout (or in $OTHER_CHECKOUT; without either nothing is compared), for the given profiles and for random ones
(``--count``, ``--seed``). Stacks are told with shared frames, as
readers and tracers make them, and with frames that are all objects of their own. Exits with 1 on a difference.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NAMES = {
    "/opt/app": ["main", "step", "load", "save", "fetch", "run<int>(int)", "[app+0x10]", "[app!fn_0x20]", "_start"],
    "/opt/libx.so": ["api_call", "x::Impl::go(int) const", "[libx.so+0x1]", "std::thread::_M_run()", "wait_for"],
    "/usr/bin/python3": ["_PyEval_EvalFrameDefault", "cfunction_call", "PyThread_acquire", "time_sleep", "main"],
    "/usr/lib/libc.so.6": ["read", "__GI___libc_read", "pthread_cond_wait@@GLIBC_2.3.2", "pthread_mutex_lock",
                           "pthread_cond_timedwait", "start_thread", "futex_wait", "fread", "[libc.so.6+0x7]"],
    "python": ["train", "load", "<module>"],
    "": ["[unmapped]", "[stack lost]", "[no stack]", "jitted"],
}  # fmt: skip
KERNEL = [
    ["entry_SYSCALL_64", "__x64_sys_futex", "futex_wait_queue"],
    ["entry_SYSCALL_64", "ksys_read", "vfs_read", "anon_pipe_read"],
    ["__x64_sys_epoll_wait", "ep_poll", "schedule_hrtimeout_range"],
    ["__x64_sys_ioctl", "__mutex_lock.constprop.0"],
    ["asm_exc_page_fault", "folio_wait_bit_common", "io_schedule"],
    ["__x64_sys_clock_nanosleep", "do_nanosleep"],
    ["kthread", "worker_thread"],
    [],
]
STATES = [
    "interruptible",
    "interruptible",
    "uninterruptible",
    "runnable-woken",
    "runnable-preempted",
    "stopped",
    "idle",
]


def random_profile(chance: random.Random) -> Any:
    """Few names and many threads, so that waits meet; or many waits of few threads."""
    from stallscope.converters.model import Profile, Sample, ThreadTimes, ValueType

    times = ValueType("off-cpu", "nanoseconds"), ValueType("count", "count")
    extremes = ValueType("min", "nanoseconds", "min"), ValueType("max", "nanoseconds", "max")
    profile = Profile(
        [*times, *extremes], duration_ns=10**10, host="h", title="t", lost={"stacks": chance.randint(0, 2)}
    )
    stacks = [random_stack(chance) for _ in range(chance.choice((1, 5, 40, 400)))]
    for i in range(chance.choice((1, 2, 9, 40))):
        pid = chance.choice((10, 10, 20, 30 + i))
        tid = chance.choice((pid, 100 + i))
        process, thread = f"proc{chance.choice(('', '-1', '-2'))}", f"pool-{i}" if chance.random() < 0.5 else "worker"
        blocked: dict[str, int] = {}
        for _ in range(chance.randint(0, 30)):
            state, time = chance.choice(STATES), int(10 ** chance.uniform(2, 9))
            is_open = (("open", "yes"),) if chance.random() < 0.1 else ()
            who = (("pid", pid), ("process", process), ("state", state), ("thread", thread), ("tid", tid))
            values = (time, chance.randint(1, 5000), chance.randint(0, time), time)
            profile.samples.append(Sample(chance.choice(stacks), values, (*is_open, *who)))
            blocked[state] = blocked.get(state, 0) + time
        if chance.random() < 0.8:
            on_cpu = chance.choice((0, int(10 ** chance.uniform(3, 9))))
            runnable = sum(time for state, time in blocked.items() if state.startswith("runnable"))
            asleep = {state: time for state, time in blocked.items() if not state.startswith("runnable")}
            wall = on_cpu + runnable + sum(asleep.values())
            profile.threads.append(ThreadTimes(pid, process, tid, thread, wall, on_cpu, runnable, asleep, 9))
    return profile


def random_stack(chance: random.Random) -> Any:
    from stallscope.converters.model import Frame, Module

    frames = []
    for _ in range(chance.randint(0, 12)):
        path = chance.choice(list(NAMES))
        module = Module(path) if path.startswith("/") else None
        kind = "python" if path == "python" else "native" if module else "other"
        frames.append(Frame(chance.choice(NAMES[path]), kind, module, chance.randint(0, 3)))
    below = [Frame(name, "kernel", Module("[kernel.kallsyms]")) for name in chance.choice(KERNEL)]
    if below and chance.random() < 0.9:
        below += [Frame("schedule", "kernel"), Frame("__schedule", "kernel")]
    return (*frames, *below)


def tell(paths: list[str]) -> None:
    """Prints digests of each profile's summary: of its text for three widths, and of each key of its JSON."""
    from stallscope.converters.pprof.decoder import load
    from stallscope.converters.summary.render import render
    from stallscope.converters.summary.summarize import summarize

    for path in paths:
        for shared in (True, False):
            with open(path, "rb") as file:
                profile = load(file)
            if not shared:
                for i, sample in enumerate(profile.samples):
                    stack = tuple(type(frame)(*frame) for frame in sample.stack)
                    profile.samples[i] = sample._replace(stack=stack)
            summary = summarize(profile)
            text = io.StringIO()
            for width in (60, 80, 200):
                render(summary, text, width=width)
            told = {"text": text.getvalue()} | {key: json.dumps(value) for key, value in summary.to_json().items()}
            print(json.dumps([path, shared, {key: digest(value) for key, value in told.items()}]))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def told_by(checkout: Path, paths: list[str], folder: Path) -> list[Any]:
    link = folder / f"version{len(list(folder.glob('version*')))}"
    link.mkdir()
    (link / "stallscope").symlink_to(checkout)
    environment = {**os.environ, "PYTHONPATH": str(link)}
    command = [sys.executable, __file__, "--tell", *paths]
    lines = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.splitlines()
    return list(map(json.loads, lines))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tell", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkout", default=os.environ.get("OTHER_CHECKOUT", ""))
    parser.add_argument("paths", nargs="*", metavar="PROFILE")
    given = parser.parse_args()
    if given.tell:
        tell(given.paths)
        return 0
    if not given.checkout:
        print("no --checkout: nothing is compared")
        return 0
    from stallscope.converters.pprof.encoder import save

    with tempfile.TemporaryDirectory() as name:
        folder, profiles = Path(name), [str(Path(path).resolve()) for path in given.paths]
        for i in range(given.count):
            profiles.append(str(folder / f"{i}.pb.gz"))
            with open(profiles[-1], "wb") as file:
                save(random_profile(random.Random(f"{given.seed}-{i}")), file)
        ours, theirs = (told_by(Path(each).resolve(), profiles, folder) for each in (ROOT, given.checkout))
    different = []
    for (path, shared, one), (_, _, other) in zip(ours, theirs, strict=True):
        different += [(path, shared, key) for key in one.keys() & other.keys() if one[key] != other[key]]
    print(f"{len(ours)} summaries compared, {len(different)} differences {different[:5]}")
    alone = sorted(ours[0][2].keys() ^ theirs[0][2].keys())
    print(f"keys of one version only, not compared: {', '.join(alone) or 'none'}")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
