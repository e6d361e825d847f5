"""Figures of the running kernel's verifier for each program: instructions looked at, and the deepest stack.

The log tells the stack of each function that is left; which calls which follows from the instructions as the verifier
has left them (linux/bpf.h: struct bpf_insn; the jit_subprogs() of kernel/bpf/verifier.c keeps the distance of a call).
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf import probes
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions
from stallscope.tracers.kernel.bpfobject import Object, Program
from stallscope.tracers.kernel.libbpf import library
from stallscope.tracers.kernel.shapes import Shape
from stallscope.tracers.measures.calls import Calls
from stallscope.tracers.measures.ioctl import Ioctl
from stallscope.tracers.measures.locks import Gil, Locks
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.timeline import Timeline
from stallscope.tracers.measures.wakeup import MAX_DEPTH, WakeUp

MOST_STACK = 512
"""MAX_BPF_STACK of linux/filter.h: for all frames of a chain of calls together."""
MOST_INSTRUCTIONS = 1_000_000
"""BPF_COMPLEXITY_LIMIT_INSNS of linux/bpf_verifier.h."""
_ROUNDED = 32
"""Each frame counts in steps of so many bytes, on the kernels that are strictest."""
_STATISTICS = 4
"""BPF_LOG_STATS: a level of the log."""
_CALL, _LOAD_ADDRESS = 0x85, 0x18
_PSEUDO_CALL, _PSEUDO_FUNCTION = 1, 4


@dataclass(frozen=True)
class Verified:
    """A program that was taken. ``stack``: bytes of the deepest chain of calls; ``instructions``: looked at."""

    name: str
    instructions: int
    stack: int


class _Logs:
    """Buffers for the verifier's log, one a program."""

    def __init__(self, loaded: Object) -> None:
        self._of = {}
        for program in loaded.programs.values():
            buffer = ctypes.create_string_buffer(1 << 16)
            library().bpf_program__set_log_buf(program._pointer, buffer, len(buffer))
            library().bpf_program__set_log_level(program._pointer, _STATISTICS)
            self._of[program.name] = buffer

    def __getitem__(self, name: str) -> str:
        return self._of[name].value.decode(errors="replace")


def programs(shape: Shape) -> list[Verified]:
    """The programs of the shape, loaded. BpfError when the kernel refuses one."""
    kept: list[_Logs] = []
    load = Object.load

    def load_with_logs(self: Object) -> None:
        kept.append(_Logs(self))
        load(self)

    Object.load = load_with_logs  # type: ignore[method-assign]
    try:
        # With slices and intervals, which no trace has together.
        measures = (
            OffCpu(slice=1),
            OnCpu(one_by_one=True),
            Timeline(),
            Ioctl(),
            Calls(),
            WakeUp(MAX_DEPTH),
            Locks(),
            Gil(),
        )
        loaded = probes.load_shape(
            ProbeOptions(Scope(everything=True), collectors(measures), python=True, intervals=True), shape
        )
    finally:
        Object.load = load  # type: ignore[method-assign]
    try:
        names = [name for name in loaded.programs if kept[0][name]]
        found = [_verified(loaded.programs[name], kept[0][name]) for name in names]
    finally:
        loaded.close()
    assert found, "the verifier said nothing"
    return found


def _verified(program: Program, log: str) -> Verified:
    processed = re.search(r"processed (\d+) insns", log)
    depths = re.search(r"stack depth ([\d+]+)", log)
    assert processed and depths, f"{program.name}: no statistics in the verifier's log: {log[-500:]}"
    return Verified(program.name, int(processed[1]), _deepest(program, [int(depth) for depth in depths[1].split("+")]))


def _deepest(program: Program, depths: Sequence[int]) -> int:
    """The sum of the frames along the deepest chain of calls."""
    calls: list[tuple[int, int]] = []  # (instruction, first instruction of the function that it calls)
    for i, word in enumerate(_instructions(program)):
        code, source = word & 0xFF, word >> 12 & 0xF
        if (code, source) == (_CALL, _PSEUDO_CALL):
            calls.append((i, i + 1 + ctypes.c_int16(word >> 16 & 0xFFFF).value))
        elif (code, source) == (_LOAD_ADDRESS, _PSEUDO_FUNCTION):
            calls.append((i, i + 1 + ctypes.c_int32(word >> 32).value))
    starts = _functions(program)
    assert len(starts) == len(depths), f"{program.name}: {len(starts)} functions, but {len(depths)} frames"
    callees: dict[int, set[int]] = {start: set() for start in starts}
    for i, target in calls:
        callees[max(start for start in starts if start <= i)].add(target)
    frame = {start: max(-(-depth // _ROUNDED), 1) * _ROUNDED for start, depth in zip(starts, depths, strict=True)}

    def deepest(start: int) -> int:
        return frame[start] + max((deepest(callee) for callee in callees[start]), default=0)

    return deepest(0)


def _instructions(program: Program) -> list[int]:
    """Instructions of struct bpf_prog_info: xlated_prog_len at 20, xlated_prog_insns at 32."""
    length = ctypes.c_uint32.from_buffer(_info(program, {}), 20).value
    words = (ctypes.c_uint64 * (length // 8))()
    _info(program, {20: length, 32: ctypes.addressof(words)})
    return list(words)


def _functions(program: Program) -> list[int]:
    """First instructions of a program's functions: func_info_rec_size at 132, func_info at 136, nr_func_info at 144."""
    count = ctypes.c_uint32.from_buffer(_info(program, {}), 144).value
    records = (ctypes.c_uint32 * (2 * count))()  # struct bpf_func_info
    _info(program, {132: 8, 136: ctypes.addressof(records), 144: count})
    return list(records)[::2]


def _info(program: Program, wanted: dict[int, int]) -> ctypes.Array[ctypes.c_char]:
    """struct bpf_prog_info, with these fields set before the kernel fills it."""
    get_info = library().bpf_obj_get_info_by_fd
    get_info.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32)]
    info, size = ctypes.create_string_buffer(256), ctypes.c_uint32(256)
    for offset, value in wanted.items():
        kind = ctypes.c_uint64 if offset in (32, 136) else ctypes.c_uint32
        kind.from_buffer(info, offset).value = value
    assert get_info(library().bpf_program__fd(program._pointer), info, ctypes.byref(size)) == 0
    return info
