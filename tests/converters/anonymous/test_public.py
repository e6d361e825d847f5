"""Public names are known by lists."""

from __future__ import annotations

import pytest
from stallscope.converters.anonymous import public


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "libc.so.6"),
        ("/home/zebra/venv/lib/libtorch_cuda.so (deleted)", "libtorch_cuda.so"),
        ("/opt/x/site-packages/nvidia/nccl/lib/libnccl.so.2", "libnccl.so.2"),
        (
            "/home/zebra/lib/python3.11/site-packages/numpy/core/_multiarray.cpython-311.so",
            "_multiarray.cpython-311.so",
        ),
        ("/usr/bin/python3.11", "python3.11"),
        ("[kernel.kallsyms]", "[kernel.kallsyms]"),
        ("/lib/modules/6.1.0/nvidia.ko", "nvidia.ko"),
        ("[vdso]", "[vdso]"),
        ("/usr/lib/libzebra.so", ""),
        ("/usr/lib/libc-zebra.so", ""),
        ("/opt/site-packages/zebra/x.so", ""),
        ("[zebra project/x]", ""),
        ("", ""),
    ],
)
def test_files(path: str, name: str) -> None:
    assert public.library(path) == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/usr/lib/python3.11/threading.py", "python3.11/threading.py"),
        ("/home/zebra/env/lib/python3.12/asyncio/base_events.py", "python3.12/asyncio/base_events.py"),
        ("/x/dist-packages/torch/nn/functional.py", "site-packages/torch/nn/functional.py"),
        ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
        ("<frozen zebra>", ""),
        ("/usr/lib/python3.11/zebra.py", ""),
        ("/x/site-packages/zebra/a.py", ""),
        ("train.py", ""),
    ],
)
def test_python_files(path: str, name: str) -> None:
    assert public.python_file(path) == name


def test_programs_packages_and_devices() -> None:
    assert public.is_program("python3.11")
    assert public.is_program("kworker/u8:2")
    assert not public.is_program("zebra")
    assert public.is_package("torch.distributed.run")
    assert not public.is_package("zebra.train")
    assert public.is_device("/dev/nvidia0")
    assert not public.is_device("/dev/mapper/zebra")
    assert public.what_of("Off-CPU time of zebra") == "Off-CPU time"
    assert public.what_of("zebra") == ""
