from __future__ import annotations

import pytest
from scheduling_traces import HOSTILE
from stallscope.converters.base.text import printable
from stallscope.converters.model import Frame
from stallscope.converters.model.scheduling import NO_STACK, Scheduling
from stallscope.converters.writers.base.wait_names import state_name, wait_name

KERNEL = [Frame(name, "kernel") for name in ("__x64_sys_ioctl", "rwsem_down_read_slowpath", "schedule")]


@pytest.mark.parametrize(
    ("frames", "name"),
    [
        ([Frame("topk"), *KERNEL], "ioctl: rwsem_down_read_slowpath"),
        ([Frame("topk")], "topk"),
        ([Frame("schedule", "kernel")], "schedule"),
        ([], "traced"),
        ([Frame(HOSTILE, "python")], printable(HOSTILE)),
    ],
)
def test_a_wait_is_called_by_what_is_waited_in(frames: list[Frame], name: str) -> None:
    assert wait_name(Scheduling(1, stacks=[tuple(frames)]), 0, "traced") == name


def test_without_a_stack_it_is_the_state() -> None:
    assert wait_name(Scheduling(1), NO_STACK, "interruptible") == "interruptible"


@pytest.mark.parametrize(
    ("bits", "name"), [(0, "runnable-preempted"), (2, "uninterruptible"), (0x82, "uninterruptible"), (0x800, "unknown")]
)
def test_states_by_the_kernels_bits(bits: int, name: str) -> None:
    assert state_name(bits) == name
