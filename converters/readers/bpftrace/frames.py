"""Frames as bpftrace prints them, and whether they are the kernel's."""

from __future__ import annotations

import re

from ...model import Frame, Module
from ...model.kinds import kind_of_module

_PERF = re.compile(rb"([0-9a-f]{1,16}) (\S.*) \(([^()]+)\)\Z", re.DOTALL)
"""A frame of kstack(perf) or ustack(perf)."""
_PERF_KERNEL = re.compile(rb"(f{4}[0-9a-f]{12}) (\S.*)\Z", re.DOTALL)
_ADDRESS = re.compile(rb"(?:0x|(?=[0-9a-f]{8}))([0-9a-f]{1,16})\Z")
_OFFSET = re.compile(rb"\+\d{1,18}(?=@|\Z)")
_PLACE = re.compile(rb"@([^@]+):(\d{1,9})\Z", re.DOTALL)
_MAX_FRAME = 1 << 14
_ENTRIES = frozenset(
    {
        "entry_SYSCALL_64_after_hwframe",
        "entry_SYSCALL_64",
        "entry_SYSENTER_compat_after_hwframe",
        "entry_INT80_compat",
        "ret_from_fork_asm",
        "ret_from_fork",
        "kthread",
        "start_secondary",
        "secondary_startup_64",
        "secondary_startup_64_no_verify",
        "x86_64_start_kernel",
        "x86_64_start_reservations",
        "start_kernel",
        "common_startup_64",
        "el0t_64_sync",
        "el0t_64_irq",
        "el0t_32_sync",
        "el0_sync",
        "el0_irq",
        "el1h_64_irq",
        "el1h_64_sync",
        "el1_irq",
        "__primary_switched",
        "__secondary_switched",
        "system_call_common",
        "system_call_vectored_common",
        "page_fault",
        "common_interrupt",
        "apic_timer_interrupt",
        "do_syscall_64",
    }
)
"""Outermost functions of kernel stacks, on x86-64, arm64 and ppc64."""
_ENTRY_PREFIXES = ("asm_exc_", "asm_sysvec_", "asm_common_interrupt", "entry_SYSCALL_", "irq_entries_start")


def parse_frame(line: bytes, addrs: bool) -> tuple[Frame, ...] | None:
    """The frame of one line, () for a blank one, None if the line is too long."""
    text = line.strip()
    if not text:
        return ()
    if len(text) > _MAX_FRAME:
        return None
    address = module = file = number = b""
    if match := _ADDRESS.match(text):
        address, text = match[1], b""
    elif match := _PERF.match(text):
        address, text, module = match[1], match[2], match[3]
        module = b"" if module == b"[unknown]" else module
        if raw := _ADDRESS.match(text):
            address, text = raw[1], b""
    elif match := _PERF_KERNEL.match(text):
        address, text = match[1], match[2]
    inlined = text.startswith(b"[inlined] ") or module == b"inlined"
    text = text.removeprefix(b"[inlined] ")
    if place := _PLACE.search(text):
        file, number, text = place[1], place[2], text[: place.start()]
    text = _OFFSET.sub(b"", text)
    if not text:
        shown = module.rpartition(b"/")[2] or b"unknown"
        text = b"[%b <%b>]" % (shown, address) if addrs and address else b"[%b]" % shown
    if inlined:
        text, module = text + b"_[i]", b""
    name, path, origin = (each.decode(errors="surrogateescape") for each in (text, file, module))
    kernel = address.startswith(b"ffff") and len(address) == 16
    home = Module(origin) if module else None
    return (Frame(name, "kernel" if kernel else kind_of_module(origin), home, 0, path, int(number or 0)),)


def is_kernel(outermost: Frame) -> bool:
    """Whether a stack with this outermost frame is a kernel stack."""
    name = outermost.name
    return outermost.kind == "kernel" or name in _ENTRIES or name.startswith(_ENTRY_PREFIXES)
