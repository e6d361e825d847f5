"""Places that sampled stacks execute: the caller, the function, the library function or the system call."""

from __future__ import annotations

from typing import NamedTuple

from ..model import Stack
from .frame_names import function_name
from .plumbing import only_calls
from .wait_sites import Sites


class HotSite(NamedTuple):
    """Samples with equal sites show the same work, in any thread or process."""

    frames: tuple[str, ...]
    """Outermost first, as in `wait_sites.Site`; empty if only the kernel is known."""
    in_kernel: bool
    """Runs in the kernel: a system call, page fault or interrupt."""


def hot_site(stack: Stack, sites: Sites | None = None) -> HotSite:
    """Site of a stack: user, then kernel frames, outermost first. ``sites``: for many stacks."""
    in_kernel = bool(stack) and stack[-1].kind == "kernel"
    frames = (sites or Sites()).of(stack).frames
    if in_kernel or not stack:
        return HotSite(frames, in_kernel)
    leaf = stack[-1].name if stack[-1].kind == "python" else function_name(stack[-1].name)
    # As the innermost frame, an interpreter is itself what runs.
    if not frames or only_calls(leaf):
        frames = (*frames, leaf)
    return HotSite(frames, in_kernel)
