from __future__ import annotations

import pytest
from stallscope.converters.facts.hot_sites import HotSite, hot_site
from stallscope.converters.model import Frame, Module, Stack
from summary_profiles import CUDA, EXE, LIBC, user

PYTHON = Module("/usr/bin/python3.11")
START = user(LIBC, "clone3", "start_thread")


def kernel(*names: str) -> Stack:
    return tuple(Frame(name, "kernel") for name in ("entry_SYSCALL_64_after_hwframe", "do_syscall_64", *names))


@pytest.mark.parametrize(
    ("stack", "frames", "in_kernel"),
    [
        ((*START, *user(EXE, "main", "spin")), ("main", "spin"), False),
        ((*START, *user(EXE, "main"), *user(CUDA, "cuInit", "poll_status")), ("main", "cuInit", "poll_status"), False),
        ((*START, *user(EXE, "main", "copy"), *user(LIBC, "memcpy")), ("main", "copy", "memcpy"), False),
        ((*START, *user(PYTHON, "main", "_PyEval_EvalFrameDefault")), ("main", "_PyEval_EvalFrameDefault"), False),
        (
            (*START, *user(EXE, "main"), *user(LIBC, "read"), *kernel("ksys_read", "copy_to_user")),
            ("main", "read"),
            True,
        ),
        ((*user(EXE, "main"), Frame("asm_exc_page_fault", "kernel")), ("main", "page fault"), True),
        (kernel("kthread", "worker_thread"), (), True),
        ((Frame("[not sampled]", "other"),), ("[not sampled]",), False),
        ((), (), False),
    ],
)
def test_what_runs(stack: Stack, frames: tuple[str, ...], in_kernel: bool) -> None:
    assert hot_site(stack) == HotSite(frames, in_kernel)
