"""The C text of the programs: ``programs.c`` behind numbers that depend on the kernel and on the user's choice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from ...kernel.tracepoint_format import Format
from ..protocol import EngineUnavailable
from .layouts import ENDED, FRAMES, LOST_STACK, NEW, OTHER, PREEMPTED, SAMPLED, STATES, Counter, Phase

_TEXT = Path(__file__).with_name("programs.c")
_CLONE_THREAD = 0x10000
"""include/uapi/linux/sched.h."""


class MapNumber(IntEnum):
    """Numbers that stand for descriptors of maps; those that come in pairs end in the number of the table."""

    CONTROL = 1
    COUNTERS = 2
    THREADS = 3
    SCRATCH = 4
    WAITS_0 = 5
    WAITS_1 = 6
    SAMPLES_0 = 7
    SAMPLES_1 = 8
    STACKS_0 = 9
    STACKS_1 = 10
    ENDED_0 = 11
    ENDED_1 = 12


TRACEPOINTS = {
    "on_switch": "sched:sched_switch",
    "on_wakeup": "sched:sched_wakeup",
    "on_new_task": "task:task_newtask",
    "on_exec": "sched:sched_process_exec",
}
"""Tracepoint to which each program is attached."""
SAMPLE = "on_sample"
_FIELDS = {
    "PREV_PID": ("sched:sched_switch", "prev_pid", 4),
    "NEXT_PID": ("sched:sched_switch", "next_pid", 4),
    "PREV_STATE": ("sched:sched_switch", "prev_state", 8),
    "WAKEUP_PID": ("sched:sched_wakeup", "pid", 4),
    "NEW_PID": ("task:task_newtask", "pid", 4),
    "NEW_FLAGS": ("task:task_newtask", "clone_flags", 8),
    "EXEC_PID": ("sched:sched_process_exec", "pid", 4),
    "EXEC_OLD_PID": ("sched:sched_process_exec", "old_pid", 4),
}
"""Fields of tracepoints by their name in the text: tracepoint, field, bytes."""


_WAITS = {"S", "D"}
_OTHERS = "use --engine stap or --engine perf, or --engine libbpf with a file for --btf"


@dataclass(frozen=True)
class Choice:
    """Choice of what the programs do. Times in ns."""

    waits: bool = True
    samples: bool = False
    user_stacks: bool = True
    kernel_stacks: bool = True
    everything: bool = False
    children: bool = True
    shortest: int = 0
    longest: int = (1 << 64) - 1


def source(choice: Choice, formats: dict[str, Format], self_pid: int) -> str:
    """The whole text. StallscopeError if a tracepoint lacks a field, or has it in another size.

    EngineUnavailable if it is not known which bits of prev_state are those of a wait: it would pass for a preemption.
    """
    letters = formats["sched:sched_switch"].flags()
    if _WAITS - set(letters.values()):
        raise EngineUnavailable("the tracepoint sched:sched_switch does not say which states are waits", _OTHERS)
    defines: dict[str, str | int] = {
        name: formats[tracepoint].offset(field, size) for name, (tracepoint, field, size) in _FIELDS.items()
    }
    defines |= {
        "STATE_BITS": sum(letters),
        "ENDED_BITS": sum(bit for bit, letter in letters.items() if letter in ENDED),
        "CLONE_THREAD": _CLONE_THREAD,
        "SELF": self_pid,
        "EVERYTHING": int(choice.everything),
        "CHILDREN": int(choice.children),
        "WAITS": int(choice.waits),
        "USER_STACKS": int(choice.user_stacks),
        "KERNEL_STACKS": int(choice.kernel_stacks),
        "SHORTEST": f"{choice.shortest}ULL",
        "LONGEST": f"{choice.longest}ULL",
        "STATES": STATES,
        "PREEMPTED": PREEMPTED,
        "OTHER": OTHER,
        "NEW": NEW,
        "SAMPLED": SAMPLED,
        "FRAMES": FRAMES,
        "LOST_STACK": f"{LOST_STACK}ULL",
        **{f"MAP_{each.name}": each.value for each in MapNumber},
        **{each.name: each.value for each in Counter},
        **{each.name: each.value for each in Phase},
    }
    return "\n".join([*(f"#define {name} {value}" for name, value in defines.items()), _TEXT.read_text()])
