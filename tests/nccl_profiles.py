"""A process whose main thread waits for the GPU, and in which a thread of NCCL is at work."""

from __future__ import annotations

from stallscope.converters.model import Module, Profile, Sample, Stack, ThreadTimes, ValueType
from summary_profiles import EXE, MS, SECOND, kernel, user

NCCL = Module("/usr/lib/libnccl.so.2")
CUDART = Module("/usr/local/cuda/lib64/libcudart.so.12")
PROGRESS = "ncclProxyProgress(void*)"
POLLS = user(NCCL, PROGRESS, "progressOps")
TEN = 10 * SECOND


def beside_a_wait(stack: Stack, share: float = 0.8) -> Profile:
    """The main thread waits for this share of 10 s; the other one runs all the time in ``stack``."""
    columns = [ValueType("wall", "nanoseconds"), ValueType("count", "count"), ValueType("min", "nanoseconds", "min")]
    columns += [ValueType("max", "nanoseconds", "max"), ValueType("samples", "count")]
    profile, time = Profile(columns, duration_ns=TEN), round(share * TEN)
    labels = ("pid", 7), ("process", "train"), ("state", "running"), ("thread", "NCCL Progress 0"), ("tid", 8)
    profile.samples = [Sample(stack, (TEN, 0, 0, 0, 1000), labels)]
    waits = ("pid", 7), ("process", "train"), ("state", "interruptible"), ("thread", "train"), ("tid", 7)
    blocked = (*user(EXE, "main", "step"), *user(CUDART, "cudaStreamSynchronize"), *kernel("futex_wait_queue"))
    profile.samples.append(Sample(blocked, (time, 800, time // 800, 10 * MS, 0), waits))
    profile.threads = [
        ThreadTimes(7, "train", 7, "train", TEN, TEN - time, 0, {"interruptible": time}),
        ThreadTimes(7, "train", 8, "NCCL Progress 0", TEN, TEN, 0, {}),
    ]
    return profile
