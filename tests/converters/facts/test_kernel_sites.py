from __future__ import annotations

import pytest
from stallscope.converters.facts.kernel_sites import kernel_wait_of, system_call_of
from stallscope.converters.model import Frame


@pytest.mark.parametrize(
    ("names", "system_call", "wait"),
    [
        (
            ("__x64_sys_ioctl", "rwsem_down_read", "schedule", "__schedule"),
            "ioctl",
            "rwsem_down_read",
        ),
        (("ksys_read", "vfs_read", "anon_pipe_read", "schedule", "__schedule", "bpf_any"), "read", "pipe_read"),
        (("asm_exc_page_fault", "handle_mm_fault", "io_schedule"), "page fault", "handle_mm_fault"),
        (("worker_thread",), "", "worker_thread"),
        (("schedule",), "", ""),
        ((), "", ""),
    ],
)
def test_system_call_and_wait(names: tuple[str, ...], system_call: str, wait: str) -> None:
    kernel = [Frame(name, "kernel") for name in names]
    assert (system_call_of(kernel), kernel_wait_of(kernel)) == (system_call, wait)
