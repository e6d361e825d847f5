"""Waits for memory, by the kernel's functions on the stack: for that of a control group at its limit, or swap."""

from __future__ import annotations

from collections.abc import Container

from ..model import Stack
from ..model.wait_objects import LIMIT, RECLAIM, SWAP, WaitObject
from .kernel_sites import PAGE_FAULT, is_system_call

_SWAPS, _AT_LIMIT, _RECLAIMS = -1, -2, -3
_KINDS = {_SWAPS: SWAP, _AT_LIMIT: LIMIT, _RECLAIMS: RECLAIM}
OF_MEMORY = {number: WaitObject(number, kind) for number, kind in _KINDS.items()}
"""Objects of such waits, by numbers that no recorded one has."""
_FUNCTIONS = {
    "do_swap_page": _SWAPS,  # mm/memory.c
    "shmem_swapin_folio": _SWAPS,  # mm/shmem.c
    "try_to_free_mem_cgroup_pages": _AT_LIMIT,  # mm/vmscan.c
    "mem_cgroup_handle_over_high": _AT_LIMIT,  # mm/memcontrol.c
    "__mem_cgroup_handle_over_high": _AT_LIMIT,  # since 84b2ef6ad4c7 (6.16)
    "mem_cgroup_oom_synchronize": _AT_LIMIT,  # mm/memcontrol-v1.c: version 1, with the OOM killer off
    "mem_cgroup_out_of_memory": _AT_LIMIT,
    "try_to_free_pages": _RECLAIMS,  # mm/vmscan.c
    "__alloc_pages_direct_reclaim": _RECLAIMS,  # mm/page_alloc.c
}
"""Functions in which, and below which, the kernel waits for memory."""


def waits_on(stack: Stack, number: int, mapped: Container[int] = ()) -> int:
    """The number of what a wait is on. ``number``: that of its system call's descriptor or its page fault; 0: unknown.
    ``mapped``: numbers of what page faults were on.

    In a page fault of the kernel itself, on memory that a program has passed to a system call, the descriptor is not
    what is waited for; and what was mapped where a fault was is nothing for which the system call waits later.
    """
    kernel = [frame.name for frame in stack if frame.kind == "kernel"]
    for name in reversed(kernel):
        if name in _FUNCTIONS:
            return _FUNCTIONS[name]
    if not number or not kernel:
        return number
    if PAGE_FAULT.isdisjoint(kernel):
        return 0 if number in mapped else number
    return 0 if number not in mapped and any(map(is_system_call, kernel)) else number
