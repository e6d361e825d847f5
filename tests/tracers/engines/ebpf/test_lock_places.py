"""Addresses that are one lock, and functions of the kernel that take one."""

from __future__ import annotations

import pytest
from stallscope.converters.model import Frame
from stallscope.converters.model.locks import CONDITION, FUTEX, GIL, MUTEX
from stallscope.tracers.engines.ebpf.lock_places import joined, taken_in


def test_both_words_of_a_condition_variable() -> None:
    waits = [(7, 0x1028, CONDITION), (7, 0x102C, CONDITION), (8, 0x102C, CONDITION)]
    assert joined(waits) == {(7, 0x102C): 0x1028, (8, 0x102C): 0x1028}
    assert joined([(7, 0x1028, MUTEX), (7, 0x102C, MUTEX), (7, 0x102C, FUTEX)]) == {}, "these are two"


def test_mutex_and_condition_variable_of_pythons_lock() -> None:
    waits = [(7, 0x1B4, GIL), (7, 0x1B0, GIL), (7, 0x1D8, GIL), (7, 0x1B0 + 160, GIL), (8, 0x1D8, GIL)]
    assert joined(waits) == {(7, 0x1B4): 0x1B0, (7, 0x1D8): 0x1B0}
    assert joined([]) == {}


def test_parts_of_it_that_nothing_tells() -> None:
    """Debian's Python has no names: where it waits for the condition variable is known, for the mutexes is not."""
    waits = [(7, 0x1B0, GIL), (7, 0x1B8, MUTEX), (7, 0x20C, CONDITION), (7, 0x210, MUTEX), (7, 0x188, MUTEX)]
    assert joined(waits) == {(7, address): 0x1B0 for address in (0x1B8, 0x20C, 0x210, 0x188)}
    assert joined([(7, 0x1B0, GIL), (8, 0x1B8, MUTEX), (7, 0x1B8, FUTEX), (7, 0x300, MUTEX), (7, 0x100, MUTEX)]) == {}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("do_syscall_64 __x64_sys_ioctl tun_chr_ioctl __mutex_lock __schedule", "tun_chr_ioctl"),
        ("vfs_write down_write rwsem_down_write_slowpath schedule_preempt_disabled schedule", "vfs_write"),
        ("close_fd _raw_spin_lock native_queued_spin_lock_slowpath", "close_fd"),
        ("cgroup_procs_write percpu_down_write percpu_rwsem_wait", "cgroup_procs_write"),
        ("uart_write rt_mutex_lock __rt_mutex_slowlock_locked", "uart_write"),
        ("downgrade_page bpf_trace_run2", "downgrade_page"),
        ("mutex_lock __mutex_lock", ""),
        ("device_lock [unknown]", "device_lock"),
        ("", ""),
    ],
)
def test_function_that_takes_it(names: str, expected: str) -> None:
    assert taken_in((Frame("mutex_lock_of_mine"), *(Frame(name, "kernel") for name in names.split()))) == expected
