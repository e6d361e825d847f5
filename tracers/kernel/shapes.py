"""The ways in which the probes can use a kernel, and how to find out what a kernel lacks for each.

The right one is found by loading, best first. Only when none loads, the helper functions listed in the kernel's type
information decide which of them should have worked.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...converters.base.errors import StallscopeError
from ..base import descriptors
from .libbpf import BTF_KIND_ENUM, BTF_KIND_ENUM64, BpfError, BtfType, library

OLDEST = "Linux 5.13 or newer"
"""Required by the oldest of the shapes: global functions with pointers (e5069b9c23b3, 5.12) and task storage for
tracing programs (a10787e6d58c, 5.13)."""
WITHOUT_BPF = "without BPF: perf sched record -g -- sleep 10; perf sched script | trace-convert -o waits.svg"
"""An alternative that works on every kernel with perf."""
_DETAILS = 60
"""Lines of the verifier's log that -v prints: the reason is at its end."""


@dataclass(frozen=True)
class Shape:
    """One way of using the kernel. ``raw``: raw tracepoints and a hash by tid, not BTF-typed ones and task storage.

    ``seed`` and ``dump`` name the iterator programs; without them user space fills and reads the hash.
    ``sleepers``: the iterator that lists sleeping threads for user space to walk. ``locked``: the one that lists locked
    address spaces; it is loaded where there are probes on files.
    ``needs``: the helper functions that a kernel has on which it should load.
    """

    name: str
    raw: bool
    knobs: Mapping[str, int]
    seed: str = ""
    dump: str = ""
    sleepers: str = ""
    locked: str = ""
    needs: tuple[str, ...] = ()

    @property
    def iterators(self) -> set[str]:
        """The iterator programs, which are loaded in addition to the probes."""
        walk = "scope_walk" if self.sleepers else ""
        return {name for name in (self.seed, self.dump, self.sleepers, walk) if name}


SHAPES = (
    # sched_switch with prev_state (9c2136be0878) came with 5.18, as bpf_copy_from_user_task() did, which is not called.
    Shape(
        "task storage, state of switches",
        raw=False,
        knobs={"use_storage": 1, "switch_has_state": 1, "task_regs": 1},
        seed="scope_seed",
        dump="scope_dump",
        sleepers="scope_sleepers",
        locked="scope_locked",
        needs=("task_storage_get", "task_pt_regs", "copy_from_user_task"),
    ),
    # bpf_task_pt_regs() (dd6e10fbd9fb, 5.15): kernel stacks are recognised.
    Shape(
        "task storage, registers of tasks",
        raw=False,
        knobs={"use_storage": 1, "switch_has_state": 0, "task_regs": 1},
        seed="scope_seed",
        dump="scope_dump",
        sleepers="scope_sleepers",
        locked="scope_locked",
        needs=("task_storage_get", "task_pt_regs"),
    ),
    # Task storage for tracing programs (a10787e6d58c, 5.13).
    Shape(
        "task storage, computed registers",
        raw=False,
        knobs={"use_storage": 1, "switch_has_state": 0, "task_regs": 0},
        seed="scope_seed",
        dump="scope_dump",
        sleepers="scope_sleepers",
        locked="scope_locked",
        needs=("task_storage_get",),
    ),
    # With --btf: a kernel without its own BTF has no BTF-typed programs and no iterators.
    Shape("raw tracepoints, hash by thread id", raw=True, knobs={}),
)
BTF_SHAPES, RAW_SHAPES = SHAPES[:3], SHAPES[3:]


def kernel_helpers() -> frozenset[str]:
    """The helper functions that the running kernel has, without ``BPF_FUNC_``; empty if its BTF does not list them."""
    btf = library().btf__load_vmlinux_btf()
    if not btf:
        return frozenset()
    try:
        return frozenset(
            name.removeprefix("BPF_FUNC_") for name in _enumerators(btf, "bpf_func_id") if name.startswith("BPF_FUNC_")
        )
    finally:
        library().btf__free(btf)


def _enumerators(btf: int, enum: str) -> Iterable[str]:
    for kind, size in ((BTF_KIND_ENUM, 8), (BTF_KIND_ENUM64, 12)):  # struct btf_enum, struct btf_enum64
        if (index := library().btf__find_by_name_kind(btf, enum.encode(), kind)) > 0:
            address = library().btf__type_by_id(btf, index)
            first = address + ctypes.sizeof(BtfType)
            for i in range(BtfType.from_address(address).info & 0xFFFF):
                offset = ctypes.c_uint32.from_address(first + i * size).value
                yield library().btf__name_by_offset(btf, offset).decode()


def refusal(
    failures: list[tuple[Shape, BpfError]],
    helpers: frozenset[str],
    *,
    release: str,
    root: bool,
    own_btf: bool = False,
) -> StallscopeError:
    """The error to raise when no shape loads: the failure of the first shape for which the kernel has the helpers.

    ``own_btf``: the user passed the type information.
    """
    able = [(shape, error) for shape, error in failures if helpers.issuperset(shape.needs)]
    if helpers and not able:
        lacks = ", ".join(f"bpf_{name}()" for name in failures[-1][0].needs if name not in helpers)
        cause = f"this kernel ({release}) is too old for the probes: it lacks {lacks}; they need {OLDEST}"
        return StallscopeError(cause, WITHOUT_BPF)
    shape, error = (able or failures)[0]
    if error.number == errno.EMFILE:
        return descriptors.exhausted()
    details = "\n".join("\n".join(error.log).splitlines()[-_DETAILS:])
    if error.number in (errno.EPERM, errno.EACCES) and not root:
        remedy = "run as root on the host; in a container with --privileged --pid=host"
    elif own_btf:
        remedy = f"give --btf the BTF file of the running kernel ({release})"
    elif error.program:
        remedy = f"run it again with -v and report what the verifier says, with `uname -r`; {WITHOUT_BPF}"
    else:
        remedy = f"`trace-doctor` says what this kernel lacks; {WITHOUT_BPF}"
    where = f"{error.program}, " if error.program else ""
    return StallscopeError(f"{error.cause} ({where}{shape.name}: {reason(error.log)})", remedy, details=details)


def reason(log: list[str]) -> str:
    """The line of the verifier's log that gives the reason."""
    lines = [line for entry in log for line in entry.splitlines()]
    useful = [
        line.strip()
        for line in lines
        if line and not line.startswith(("libbpf: ", "processed ", "; ", "-- ")) and not line[:1].isdigit()
    ]
    if useful:
        return useful[-1]
    return next((line.removeprefix("libbpf: ") for line in lines if line), "no reason given")
