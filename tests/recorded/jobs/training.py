"""Jobs of training: PyTorch, gloo, NumPy, and the limits of control groups."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from job import Job, Truth
from stage import PYTHON, Stage

PYTHON_HERE = {PYTHON: "python3"}
TORCH = {"torch": "python3-torch"}
NUMPY = {"numpy": "python3-numpy"}


def ranks(size: int, how: str, traced: int) -> Callable[[Stage], Sequence[int]]:
    """Ranks of which the last one is late; the first ones are traced."""

    def start(stage: Stage) -> Sequence[int]:
        script = stage.program("ranks.py")
        started = []
        for rank in range(size):
            environment = {"RANK": str(rank), "GLOO_SOCKET_IFNAME": "lo"}
            started.append(stage.start(PYTHON, script, rank, size, how, environment=environment))
        stage.until(lambda: "ready" in (stage.folder / "log-0").read_text(), "the ranks are ready")
        return [process.pid for process in started[:traced]]

    return start


def saving_ranks(stage: Stage) -> Sequence[int]:
    script, size = stage.program("pretrain.py"), 3
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29577", "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1"}
    started = [stage.start(PYTHON, script, 20, environment={**common, "RANK": str(rank)}) for rank in range(size)]
    stage.until(lambda: "ready" in (stage.folder / "log-0").read_text(), "the ranks are ready")
    return [process.pid for process in started]


def loader(stage: Stage) -> Sequence[int]:
    return stage.tree(stage.python("loader.py"), least=2)


def products(processes: int, threads: int, traced: int) -> Callable[[Stage], Sequence[int]]:
    def start(stage: Stage) -> Sequence[int]:
        environment = {"OPENBLAS_NUM_THREADS": str(threads)}
        return [stage.python("many_products.py", environment=environment) for _ in range(processes)][:traced]

    return start


def in_little_memory(script: str, limit: int, size: int) -> Callable[[Stage], Sequence[int]]:
    def start(stage: Stage) -> Sequence[int]:
        with (stage.folder / "features.bin").open("wb") as file:
            for _ in range(size >> 20):
                file.write(bytes(1 << 20))
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # who reads it pays for its memory
        groups = [stage.group("memory", limit_in_bytes=limit), stage.slow_disk(2000, access="read")]
        command = [PYTHON, stage.program(script)]
        return [stage.start(*command, groups=groups, ready="ready", environment={"OPENBLAS_NUM_THREADS": "1"}).pid]

    return start


def on_slow_disk(script: str) -> Callable[[Stage], Sequence[int]]:
    return lambda stage: [stage.python(script, groups=[stage.slow_disk()])]


def alone(script: str) -> Callable[[Stage], Sequence[int]]:
    return lambda stage: [stage.python(script)]


JOBS = (
    Job(
        "gloo_spinning_straggler",
        Truth(
            ("collective", "peer", "polling", "thread"),
            ("2 main threads|ranks.py",),
            ("all_reduce|Work::wait|gloo", "load_shard|rank 2"),
            "two ranks wait in all_reduce for the third one, which calls sched_yield until it has its data",
        ),
        ranks(3, "yield", 3),
        PYTHON_HERE,
        TORCH,
        commands=("offcpu", "wall"),
    ),
    Job(
        "gloo_sleeping_straggler",
        Truth(
            ("collective", "peer", "thread"),
            ("2 main threads|ranks.py",),
            ("all_reduce|Work::wait|gloo", "load_shard|rank 2"),
            "two ranks wait in all_reduce for the third one, which sleeps",
        ),
        ranks(3, "sleep", 3),
        PYTHON_HERE,
        TORCH,
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "gloo_untraced_straggler",
        Truth(
            ("collective", "network"),
            ("2 main threads|ranks.py",),
            ("all_reduce|Work::wait|gloo", "not traced|other ranks"),
            "two ranks wait in all_reduce for a third one, which is not traced",
        ),
        ranks(3, "sleep", 2),
        PYTHON_HERE,
        TORCH,
    ),
    Job(
        "ddp_saves",
        Truth(
            ("collective",),
            ("2 main threads", "pretrain.py", "ranks 1, 2"),
            ("train_step", "backward", "rank 0", "save_checkpoint"),
            "two ranks wait at the end of the backward pass for rank 0, which saves a checkpoint each fifth step",
        ),
        saving_ranks,
        PYTHON_HERE,
        TORCH,
        commands=("wall",),
    ),
    Job(
        "torch_loader",
        Truth(
            ("slow-loader", "peer"),
            ("main thread", "loader.py"),
            ("_next_data|_try_get_data|next", "decode_image|DataLoader"),
            "a training loop waits for its DataLoader, whose one worker decodes slowly",
        ),
        loader,
        PYTHON_HERE,
        TORCH,
        commands=("offcpu", "wall"),
    ),
    Job(
        "torch_threads",
        Truth(
            ("cores",),
            ("torch_threads.py",),
            ("8 .*threads|threads .*cores|OMP|pool",),
            "eight threads of a pool compute on two cores",
        ),
        alone("torch_threads.py"),
        PYTHON_HERE,
        TORCH,
    ),
    Job(
        "torch_checkpoints",
        Truth(
            ("slow-step",),
            ("train_step",),
            ("5th|fifth", "save_checkpoint"),
            "each fifth step brings a checkpoint to the disk",
        ),
        on_slow_disk("checkpoints.py"),
        PYTHON_HERE,
        TORCH,
        commands=("wall",),
        options=("--vm-breakpoints", "--step", "checkpoints.py:train_step"),
    ),
    Job(
        "openblas_threads",
        Truth(
            ("cores",),
            ("many_products.py",),
            ("threads",),
            "two processes with eight threads of OpenBLAS each compute on two cores",
        ),
        products(2, 8, 2),
        PYTHON_HERE,
        NUMPY,
        commands=("offcpu", "wall"),
    ),
    Job(
        "sibling_ranks",
        Truth(
            ("cores",),
            ("many_products.py",),
            ("many_products.py.*many_products.py|sibling|3 others|same program|4 processes",),
            "four ranks of a job share two cores; one of them is traced",
        ),
        products(4, 1, 1),
        PYTHON_HERE,
        NUMPY,
        commands=("offcpu", "wall"),
    ),
    Job(
        "mapped_file",
        Truth(
            ("memory", "io"),
            ("mapped_features.py",),
            ("look_up_feature", "page fault|limit"),
            "a mapped file does not fit into the memory of a control group: pages are read again and again",
        ),
        in_little_memory("mapped_features.py", 90_000_000, 300_000_000),
        PYTHON_HERE,
        NUMPY,
    ),
    Job(
        "memory_limit",
        Truth(
            ("memory", "io"),
            ("touched_memory.py",),
            ("read_files|page fault|limit|reclaim",),
            "a control group has too little memory to keep a file, which is read from the disk again and again",
        ),
        in_little_memory("touched_memory.py", 90_000_000, 100_000_000),
        PYTHON_HERE,
        NUMPY,
        commands=("offcpu", "wall"),
    ),
)
