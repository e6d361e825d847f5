"""Jobs on a GPU of NVIDIA. They were recorded with an H100, PyTorch 2.11 and the driver 580.159."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from job import Job, Truth
from stage import PYTHON, Stage

GPU = {PYTHON: "python3", "nvidia-smi": "the driver of NVIDIA, and a GPU"}
TORCH = {"torch": "PyTorch with CUDA (PyPI)"}
_STARTS = 10
"""Seconds until such a program trains: CUDA and the first kernels take their time."""
_RUNS = 20
RECORDED_BY_HAND = ("gpu_ranks.py",)
"""Programs of several ranks on one GPU, which need an NCCL that allows it (docs/nccl.md): `capture_truths` has their
captures."""


def started(script: str, number: int = 1) -> Callable[[Stage], Sequence[int]]:
    def start(stage: Stage) -> Sequence[int]:
        program = stage.program(script)
        processes = [stage.start(PYTHON, program, _RUNS) for _ in range(number)]
        time.sleep(_STARTS)
        return [pid for process in processes for pid in stage.tree(process.pid, least=1)]

    return start


JOBS = (
    Job(
        "gpu_train",
        Truth(
            ("gpu",),
            ("main thread", "train.py"),
            ("log_loss", "waiting for the GPU"),
            "a training loop reads the loss of each step: it waits for the GPU, on a core",
        ),
        started("gpu_train.py"),
        GPU,
        TORCH,
        commands=("wall",),
    ),
    Job(
        "gpu_loader",
        Truth(
            ("slow-loader",),
            ("main thread", "loader.py"),
            ("data loader", "decode_image"),
            "a training loop waits for its DataLoader, whose workers decode slowly; another thread pins the memory",
        ),
        started("gpu_loader.py"),
        GPU,
        TORCH,
        commands=("wall",),
    ),
    Job(
        "gpu_malloc",
        Truth(
            ("driver", "lock"),
            ("4 main threads", "malloc.py"),
            ("clear_cache", "ioctl", "rwsem"),
            "four processes allocate and free memory of the GPU, and wait for each other in the driver",
        ),
        started("gpu_malloc.py", 4),
        GPU,
        TORCH,
        commands=("wall",),
    ),
    Job(
        "gpu_copies",
        Truth(
            ("cpu", "memory"),
            ("main thread", "copies.py"),
            ("save_activations", "page fault"),
            "each copy from the GPU goes to new memory that is not pinned: most of it is page faults",
        ),
        started("gpu_copies.py"),
        GPU,
        TORCH,
        commands=("wall",),
    ),
)
