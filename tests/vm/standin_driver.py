"""The stand-in for NVIDIA's driver (nvidia/), compiled for a kernel of the lane."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from headers import HeadersError, build_folder
from kernels import Kernel

_ROOT = Path(__file__).resolve().parents[2]
_SOURCES = ("tests/vm/nvidia/nvidia.c", "tests/vm/nvidia/Kbuild", "tests/workloads/rm_ioctls.h")
PROGRAM = ("nvidia/topk_ranks", "nvidia/libcudart.so.12", "nvidia/libcuda.so.1")
"""Programs and libraries that call it: in build/workloads."""


def module_file(kernel: str) -> Path:
    return _ROOT / "build" / "vm" / f"nvidia-{kernel}" / "nvidia.ko"


def build(kernel: Kernel) -> None:
    """Seconds. HeadersError: the kernel has no headers, or the module does not compile for it."""
    file = module_file(kernel.name)
    shutil.rmtree(file.parent, ignore_errors=True)
    file.parent.mkdir(parents=True)
    for source in _SOURCES:
        shutil.copy(_ROOT / source, file.parent)
    make = ["make", "-s", "-C", str(build_folder(kernel)), f"M={file.parent}", "modules"]
    done = subprocess.run(make, capture_output=True, text=True)
    if done.returncode:
        raise HeadersError(f"the stand-in for NVIDIA's driver does not compile for {kernel.name}: {done.stderr[-500:]}")
