"""Measures of each command without options: the one list of commands."""

from __future__ import annotations

from collections.abc import Mapping

from .calls import Calls
from .ioctl import Ioctl
from .locks import Locks
from .offcpu import OffCpu
from .oncpu import OnCpu
from .protocol import Measure
from .timeline import Timeline
from .wakeup import WakeUp

OFFCPU = OffCpu()
ONCPU = OnCpu()
WALL = OffCpu(time="wall"), OnCpu(time="wall")
WAKEUP = WakeUp(depth=4), Locks()
IOCTL = Ioctl()
CUDA = Ioctl(alone=False), Calls()
FUNC = Calls()
NCCL = (
    *(OffCpu(time="wall"), OnCpu(time="wall", one_by_one=True)),
    *(WakeUp(alone=False), Locks(), Timeline(), Calls()),
)
SCAN = OffCpu(time="wall", creations=True), OnCpu(time="wall"), WakeUp(alone=False), Locks(), *CUDA

COMMANDS: Mapping[str, tuple[Measure, ...]] = {
    "trace-offcpu": (OFFCPU,),
    "trace-oncpu": (ONCPU,),
    "trace-wall": WALL,
    "trace-wakeup": WAKEUP,
    "trace-ioctl": (IOCTL,),
    "trace-cuda": CUDA,
    "trace-func": (FUNC,),
    "trace-nccl": NCCL,
    "trace-scan": SCAN,
}
"""Measures by command. Options of a command replace fields of these, and add others."""


def users(measure: Measure | type[Measure]) -> tuple[str, ...]:
    """The commands that take a measure of this class, or this very one."""
    return tuple(name for name, taken in COMMANDS.items() if measure in (*taken, *map(type, taken)))
