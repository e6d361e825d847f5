"""Names that everybody knows: libraries, packages, programs, threads of runtimes. Lists, not folders: a file below
/usr/lib can have a private name, too."""

from __future__ import annotations

import re
import sys

from ..model.kinds import kind_of_module
from ..model.states import BLOCKED, ENDED, RUNNABLE_STATES, RUNNING, UNKNOWN

_LIBRARIES = re.compile(
    r"(?:ld-linux[\w-]*|ld-musl-\w+|lib(?:c|m|pthread|dl|rt|util|resolv|anl|nsl|stdc\+\+|gcc_s|gomp|gfortran|atomic|z|"
    r"lzma|bz2|zstd|ssl|crypto|ffi|expat|sqlite3|uuid|numa|ibverbs|rdmacm|mlx[45]|ucp|ucs|uct|ucm|fabric|mpi\w*|"
    r"open-rte|open-pal|python3[\w.]*|jvm|java|node|v8|cuda|cudart|cudadebugger|cublas\w*|cudnn\w*|cufft\w*|cusparse\w*|"
    r"cusolver\w*|curand|cupti|cufile|nccl|nvrtc\w*|nvidia-\w+|nvJitLink|nvToolsExt|nvjpeg|torch\w*|c10\w*|caffe2\w*|"
    r"shm|tensorflow\w*|mkl\w*|iomp5|omp|openblas\w*|blas|lapack|tbb\w*|jemalloc|tcmalloc\w*|absl\w*|protobuf\w*|"
    r"grpc\w*|arrow|parquet|pq|hiredis|amdhip64|rccl|rocblas|hsa-runtime64|systemd[\w-]*|elf|bpf|dw|unwind)"
    r"(?:-[0-9a-f.]+)?)\.so[0-9.]*"
)
_PROGRAMS = re.compile(
    r"python[0-9.]*|pypy[0-9.]*|bash|sh|dash|zsh|sleep|sshd|sudo|su|cat|tar|gzip|rsync|node|java|ruby|perl|julia|"
    r"systemd[\w-]*|dockerd|containerd[\w-]*|runc|kubelet|crond?|postgres|redis-server|nginx|mysqld|"
    r"nv-hostengine|dcgm|nvidia-\w+|trace-\w+|perf|torchrun|mpirun|orted|slurmd|slurmstepd|srun|"
    r"swapper(?:/\d+)?|kworker/[u\d:H]+|ksoftirqd/\d+|migration/\d+|rcu_\w+|kswapd\d+|kcompactd\d+|irq/\d+|jbd2|watchdogd"
)
_THREADS = re.compile(
    r"pt_(?:main_thread|autograd_\d+|data_worker|nccl_\w+)|cuda-?EvtHandlr|cuda\d+|QueueFeederThre|QueueManagerThr|"
    r"ThreadPoolExec(?:utor-\d+_\d+)?|Thread-\d+|MainThread|pool-\d+-thread-\d+|jemalloc_bg_thd|grpc\w*|"
    r"tokio-runtime-w|GC Thread#\d+|C[12] CompilerThre\w*|VM Thread|V8Worker|libuv-worker|iou-\w+-\d+"
)
_PACKAGES = frozenset({
    "torch", "torchvision", "torchaudio", "numpy", "scipy", "pandas", "sklearn", "PIL", "cv2", "tensorflow", "jax",
    "jaxlib", "flax", "transformers", "datasets", "accelerate", "deepspeed", "megatron", "apex", "triton", "xformers",
    "lightning", "pytorch_lightning", "ray", "dask", "mpi4py", "horovod", "nvidia", "cupy", "numba", "pyarrow", "h5py",
    "tqdm", "requests", "urllib3", "aiohttp", "asyncpg", "psycopg", "psycopg2", "redis", "grpc", "google", "yaml",
    "tokenizers", "safetensors", "huggingface_hub", "wandb", "tensorboard", "pip", "setuptools", "pytest", "click",
})  # fmt: skip
_PYTHON_FILE = re.compile(r"(?:.*/)?(python3\.\d+)/((\w+)(?:/\w+)*\.py)\Z", re.DOTALL)
_DIST = re.compile(r"(?:.*/)?(?:site|dist)-packages/((\w+)(?:/\w+)*\.py)\Z", re.DOTALL)
_KERNEL_FILE = re.compile(r"\[kernel\.kallsyms\]|vmlinux[\w.-]*|\[\w{1,56}\]|[\w-]{1,56}\.ko")
_DEVICE = re.compile(
    r"/dev/(?:nvidia[\w-]*|null|zero|full|u?random|net/tun|kfd|dri/\w+\d+|kvm|fuse|tty|ptmx|pts/\d+|infiniband/\w+\d+)"
)
FUNCTIONS = frozenset({
    "main", "_start", "<module>", "<lambda>", "<listcomp>", "<dictcomp>", "<genexpr>", "<setcomp>", "start_thread",
    "clone", "clone3", "__clone", "__clone3", "_init", "_fini",
})  # fmt: skip
"""Functions that many programs have."""
MARKS = frozenset({
    "--", "[stack lost]", "[no stack]", "[switch not reported]", "[not started yet]", "[not sampled]", "[other stacks]",
    "[lost]", "[asleep]", "[not started]", "[stopped by eu-stack]", "[unmapped]", "[anon]", "[unknown]", "[kernel]",
    "[timer]", "[interrupt]", "[Python function]", "[other names]", "[other locks]", "[shared memory]", "[remapped]",
    "[unknown waker]", "[still waiting]", "[another core]", "[tracer]", "[others]", "[other threads]", "[other ioctls]",
    "[other functions]", "[other files]", "[other errors]", "[other devices]", "[more Python functions]",
    "[interrupts]", "[stack not taken (shed)]",
    "",
})  # fmt: skip
"""Names in brackets, and other marks, that stand for something else than a function or a file."""
_LEFT_OUT = re.compile(r"\[[\d,]+ frames left out\]")
"""Mark for the middle of a stack that was left out, see `converters.readers.depth`."""
STATES = frozenset({*BLOCKED, *RUNNABLE_STATES, RUNNING, ENDED, UNKNOWN, "not traced", "yes", "no", ""})
VALUES = frozenset({
    "off-cpu", "on-cpu", "count", "min", "max", "wall", "calls", "samples", "time", "weight", "cpu", "bytes", "freed",
    "allocated", "segments", "period", "kernel-calls", "ioctl", "events", "critical", "blocked", "nanoseconds",
    "microseconds", "milliseconds", "seconds", "before", "after", "billionths", "cycles", "instructions", "objects",
    "alloc_objects", "alloc_space", "inuse_objects", "inuse_space", "contentions", "delay", "runnable", "runs", "",
})  # fmt: skip
"""Names and units of values."""
_TITLE = re.compile(r"Off-CPU time|On-CPU time|Wall-clock time|Blocked time by waker|Time in (?:ioctl )?calls|Events")


def library(path: str) -> str:
    """The name of a file that everybody has, of the kernel or of a known library or program; "" for another one."""
    if kind_of_module(path) == "kernel" or path in ("[vdso]", "[vsyscall]"):
        name = path.rpartition("/")[2]
        return name if _KERNEL_FILE.fullmatch(name) else ""
    name = path.removesuffix(" (deleted)").rpartition("/")[2]
    return name if _LIBRARIES.fullmatch(name) or _PROGRAMS.fullmatch(name) or _is_extension(path) else ""


def _is_extension(path: str) -> bool:
    """A module of a known package or of CPython itself, in C."""
    match = re.search(r"/(?:lib-dynload|(?:site|dist)-packages/(\w+))/(?:[\w.]+/)*[\w.-]+\.so\Z", path)
    return match is not None and (match[1] is None or match[1] in _PACKAGES)


def python_file(path: str) -> str:
    """The name of a file of CPython's library or of a known package, from there on; "" for another one."""
    if re.fullmatch(r"<frozen [\w.]+>", path):
        return path if path[8:-1].partition(".")[0] in sys.stdlib_module_names | {"zipimport"} else ""
    if (match := _DIST.match(path)) and match[2] in _PACKAGES:
        return f"site-packages/{match[1]}"
    if (match := _PYTHON_FILE.match(path)) and match[3] in sys.stdlib_module_names:
        return f"{match[1]}/{match[2]}"
    return ""


def is_function(name: str) -> bool:
    """True for a function of many programs, and for what stands for functions."""
    return name in FUNCTIONS or name in MARKS or bool(_LEFT_OUT.fullmatch(name))


def is_program(name: str) -> bool:
    return bool(_PROGRAMS.fullmatch(name) or _THREADS.fullmatch(name)) or name in MARKS


def is_package(name: str) -> bool:
    """True for a module that an interpreter runs: ``torch.distributed.run``."""
    return bool(re.fullmatch(r"[\w.]+", name)) and name.partition(".")[0] in _PACKAGES | sys.stdlib_module_names


def is_device(path: str) -> bool:
    return bool(_DEVICE.fullmatch(path))


def what_of(title: str) -> str:
    """The measured quantity that a title of ours begins with; "" for another title."""
    match = _TITLE.match(title)
    return match[0] if match else ""
