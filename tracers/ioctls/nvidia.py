"""Names of the commands of NVIDIA's driver, of what is behind them, and of the RM's status codes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from .table import read

MAJOR = 195
"""Major number of its devices."""
RM_CONTROL, RM_ALLOC = 0x2A, 0x2B
"""Escapes whose argument holds what is wanted: a control's number, an object's class."""
_FILE = Path(__file__).with_name("nvidia.tsv")


def escape(command: int, detail: int) -> str:
    """The name on nvidiactl or nvidiaN, which look only at `_IOC_NR`. ``detail``: see `commands.name`."""
    number = command & 0xFF
    called = _names().get(("escape", number), f"{command:#x}")
    if number == RM_CONTROL and detail:
        return _names().get(("control", detail), f"{called} {detail:#x}")
    if number == RM_ALLOC and detail:
        return f"{called} {_names().get(('class', detail), f'{detail:#x}')}"
    return called


def locks(command: int, detail: int) -> str:
    """The locks that a control takes by its flags: of the API, which is one for all GPUs and processes, and of GPUs;
    and whether the GPU's firmware (GSP) is asked. "" if that is not known."""
    return _names().get(("locks", detail), "") if command & 0xFF == RM_CONTROL else ""


def uvm(command: int) -> str:
    """The name on nvidia-uvm, whose commands are plain numbers."""
    return _names().get(("uvm", command), f"{command:#x}")


def status(code: int) -> str:
    """The name of a status that the RM returns in the argument: NV_ERR_…; ``NV_STATUS 0x…`` if it is not known."""
    return _names().get(("status", code), f"NV_STATUS {code:#x}")


@lru_cache(maxsize=1)
def _names() -> dict[tuple[str, int], str]:
    return read(_FILE)
