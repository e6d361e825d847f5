"""The stacks in the lines of the scripts: from the texts of frames to frames."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ...model import Frame, Module, Stack
from ...names.demangle import Demangler
from .text import unescaped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OTHER_STACKS = "[other stacks]"
"""A frame that stands for a stack for which there was no room."""
_NAMED = re.compile(r"(.+)\+0x([0-9a-f]+)/0x([0-9a-f]+)(?: \[(.*)\])?\Z", re.DOTALL)
_IN_MODULE = re.compile(r"(?:0x)?[0-9a-f]+ \[(.*)\+0x([0-9a-f]+)/0x[0-9a-f]+\]\Z", re.DOTALL)
_ADDRESS = re.compile(r"0x([0-9a-f]{1,16})\b")
_OURS = ("[stallscope_", "[stap_")
"""How the names of the modules that trace begin."""
_INTERNAL = "__GI_"
"""How glibc's names for its own use of a function begin."""
_SYMBOL_VERSION = re.compile(r"@+[A-Za-z_][\w.]*\Z")


class KernelNames(Protocol):
    """Names the kernel's functions, as /proc/kallsyms does."""

    def find(self, addresses: NDArray[np.uint64], /) -> Sequence[tuple[str, Module] | None]:
        """Function and module of each address; None: not known."""
        ...


class Stacks:
    """Stacks of kernel and user numbers."""

    def __init__(self, frames: dict[int, dict[int, bytes]], kernel: set[int], kallsyms: KernelNames | None) -> None:
        self._frames, self._kernel_stacks = frames, kernel
        self._kernel_names = _kernel_names(frames, kernel, kallsyms)
        user = {text for number, stack in frames.items() if number not in kernel for text in stack.values()}
        self._user_frames = _user_frames(user)
        self._whole: dict[int, Stack] = {}

    def of(self, kernel: int, user: int) -> Stack:
        """Outermost frame first; empty without any."""
        return self._one(user) + self._one(kernel)

    def _one(self, number: int) -> Stack:
        if number == 0:
            return ()
        if number not in self._whole:
            self._whole[number] = self._make(number)
        return self._whole[number]

    def _make(self, number: int) -> Stack:
        frames = self._frames.get(number)
        if not frames:  # no room for it, or its lines are lost
            return (Frame(OTHER_STACKS, "other"),)
        texts = [frames[key] for key in sorted(frames, reverse=True)]
        if number in self._kernel_stacks:
            return _without_tracer(tuple(self._kernel_names[text] for text in texts))
        return tuple(self._user_frames[text] for text in texts)


def _user_frames(texts: set[bytes]) -> dict[bytes, Frame]:
    made = {text: _user_frame(unescaped(text)) for text in texts}
    names = Demangler().demangle({frame.name for frame in made.values()})
    return {text: frame._replace(name=names.get(frame.name, frame.name)) for text, frame in made.items()}


def _user_frame(text: str) -> Frame:
    """``name+0x1/0x2 [module]``, ``0xADDR [module+0x1/0x2]`` or ``0xADDR``."""
    if match := _NAMED.match(text):
        name, module = _SYMBOL_VERSION.sub("", match[1]).removeprefix(_INTERNAL), match[4] or ""
        offset, size = int(match[2], 16), int(match[3], 16)
        if not size or offset <= size:  # a return address may be just behind its function
            return Frame(name, "native", Module(module) if module else None)
        return Frame(f"[{module.rpartition('/')[2] or 'unknown'}]", "native", Module(module) if module else None)
    if match := _IN_MODULE.match(text):
        return Frame(f"[{match[1].rpartition('/')[2]}+0x{match[2]}]", "native", Module(match[1]))
    return Frame("[unknown]", "native")


def _kernel_names(
    frames: dict[int, dict[int, bytes]], kernel: set[int], kallsyms: KernelNames | None
) -> dict[bytes, Frame | None]:
    """By text; None: a frame of the module that traces."""
    import numpy as np

    texts = sorted({text for number in kernel for text in frames[number].values()})
    plain = [unescaped(text) for text in texts]
    addresses = [int(match[1], 16) if (match := _ADDRESS.match(text)) else 0 for text in plain]
    found = kallsyms.find(np.array(addresses, np.uint64) - np.uint64(1)) if kallsyms and texts else [None] * len(texts)
    return {
        text: _kernel_frame(each, name, address)
        for text, each, name, address in zip(texts, plain, found, addresses, strict=True)
    }


def _kernel_frame(text: str, found: tuple[str, Module] | None, address: int) -> Frame | None:
    if any(name in text for name in _OURS):
        return None
    if found:
        return None if found[1].path.startswith(_OURS) else Frame(found[0], "kernel", found[1], address)
    if match := _NAMED.match(text):
        return Frame(match[1], "kernel", Module(f"[{match[4]}]") if match[4] else None, address)
    return Frame("[kernel]", "kernel", None, address)


def _without_tracer(frames: tuple[Frame | None, ...]) -> Stack:
    """Without the probe's own frames, which are innermost."""
    kept = list(frames)
    for position, frame in enumerate(frames):
        if frame is None:
            kept = kept[:position]
            break
    while kept and kept[-1] is not None and kept[-1].name.startswith(("__traceiter_", "__bpf_trace_", "trace_event_")):
        kept.pop()
    # A tracepoint returns to two places of the function that it is in.
    while len(kept) > 1 and kept[-1] is not None and kept[-2] is not None and kept[-1].name == kept[-2].name:
        kept.pop()
    return tuple(frame for frame in kept if frame is not None)
