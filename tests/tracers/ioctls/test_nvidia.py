"""The RM's own numbers, as the headers of the driver have them. Its commands: test_commands.py."""

from __future__ import annotations

import pytest
from stallscope.tracers.ioctls import nvidia


@pytest.mark.parametrize(
    ("code", "called"),
    [(0, "NV_OK"), (0xFFFF, "NV_ERR_GENERIC"), (2, "NV_ERR_BUFFER_TOO_SMALL"), (0xABCDEF, "NV_STATUS 0xabcdef")],
)
def test_status(code: int, called: str) -> None:
    assert nvidia.status(code) == called


def test_escapes_behind_which_there_is_more() -> None:
    assert nvidia.escape(nvidia.RM_CONTROL, 0) == "NV_ESC_RM_CONTROL"
    assert nvidia.escape(nvidia.RM_ALLOC, 0x80) == "NV_ESC_RM_ALLOC NV01_DEVICE_0"


@pytest.mark.parametrize(
    ("number", "taken"),
    [
        (0x201, "API lock read, no GPU"),
        (0x12B, "API lock read, all GPUs"),
        (0x20800102, "API lock read, one GPU"),
        (0x801110, "API lock write, all GPUs"),
        (0x2080012F, "API lock read, one GPU, GSP"),
        (0x2080200B, "API lock write, all GPUs, GSP"),
        (0xFFFFFFFF, ""),
    ],
)
def test_locks_of_controls(number: int, taken: str) -> None:
    assert nvidia.locks(nvidia.RM_CONTROL, number) == taken
    assert not nvidia.locks(nvidia.RM_ALLOC, number)


@pytest.mark.parametrize("number", [0x201, 0x205, 0x214, 0x12B, 0x13A, 0x801110, 0x2080012F, 0x2080200B])
def test_controls_that_are_asked_at_start(number: int) -> None:
    assert nvidia.escape(nvidia.RM_CONTROL, number).startswith(f"NV{number >> 16:04X}_CTRL_CMD_")
