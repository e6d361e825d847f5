"""The stacks in the lines of the scripts: from the texts of frames to frames."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...model import Frame, Module, Stack
from ...names.demangle import Demangler
from .text import unescaped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OTHER_STACKS = "[other stacks]"
"""A frame that stands for a stack for which there was no room."""
_NAMED = re.compile(r"(.+)\+0x([0-9a-f]+)/0x([0-9a-f]+)(?: \[(.*)\])?\Z", re.DOTALL)
_IN_MODULE = re.compile(r"(?:0x)?[0-9a-f]+ \[(.*)\+0x([0-9a-f]+)/0x([0-9a-f]+)\]\Z", re.DOTALL)
_ADDRESS = re.compile(r"0x([0-9a-f]{1,16})\b")
_OURS = ("[stallscope_", "[stap_")
"""Begins of the names of the modules that trace."""
_INTERNAL = "__GI_"
"""Begin of glibc's names for its own use of a function."""
_SYMBOL_VERSION = re.compile(r"@+[A-Za-z_][\w.]*\Z")


class KernelNames(Protocol):
    """Names the kernel's functions, as /proc/kallsyms does."""

    def places(self, addresses: NDArray[np.uint64], back: int, /) -> Sequence[tuple[str, Module, int]]:
        """Function, module and the address to be shown of each address, whose name is looked up ``back`` bytes earlier;
        a name in brackets: not known."""
        ...


class UserPlace(NamedTuple):
    """Place of a user frame, as SystemTap tells it."""

    symbol: str
    """The nearest one below that SystemTap knows, which may end long before; "": the module has none of the file."""
    offset: int
    """Bytes from the symbol, or from where the file is mapped."""
    size: int
    """Bytes from the symbol to the next one that SystemTap knows, 0 after the last; or of the mapping."""
    path: str
    """Path of the file, "" where it is not known."""


class UserNames(Protocol):
    """Names users' functions by the symbols of the files themselves."""

    def frames(self, stacks: Sequence[Sequence[UserPlace]], /) -> Sequence[Sequence[Frame | None]]:
        """The frames of each stack, in its order: innermost first. None: not known."""
        ...


class Stacks:
    """Stacks of kernel and user numbers."""

    def __init__(
        self,
        frames: dict[int, dict[int, bytes]],
        kernel: set[int],
        kallsyms: KernelNames | None,
        names: UserNames | None = None,
    ) -> None:
        self._frames, self._kernel_stacks = frames, kernel
        self._kernel_names = _kernel_names(frames, kernel, kallsyms)
        user = {number: stack for number, stack in frames.items() if number not in kernel}
        places = {
            text: _place(unescaped(text)) for text in {text for stack in user.values() for text in stack.values()}
        }
        self.without_tables = _without_tables(user.values(), places)
        """Files whose tables the module lacks: a walk ends at the first frame of such a file."""
        self.has_nearest_names = not names and any(place.symbol for place in places.values())
        """User functions have the names that SystemTap knows, and nothing shows where these functions end."""
        self._user_frames = _user_frames(places)
        self._named = _named(user, places, names) if names else {}
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
        told = tuple(self._user_frames[text] for text in texts)
        return tuple(map(_or, self._named[number], told)) if number in self._named else told


def _or(named: Frame | None, told: Frame) -> Frame:
    return named or told


def _place(text: str) -> UserPlace:
    """``name+0x1/0x2 [file]``, ``0xADDR [file+0x1/0x2]`` or ``0xADDR``."""
    if match := _NAMED.match(text):
        return UserPlace(match[1], int(match[2], 16), int(match[3], 16), match[4] or "")
    if match := _IN_MODULE.match(text):
        return UserPlace("", int(match[2], 16), int(match[3], 16), match[1])
    return UserPlace("", 0, 0, "")


def _without_tables(stacks: Iterable[dict[int, bytes]], places: dict[bytes, UserPlace]) -> set[str]:
    """Files of frames without a symbol, beyond which no stack goes on."""
    nameless = {place.path for place in places.values() if place.path.startswith("/") and not place.symbol}
    walked = {place.path for place in places.values() if place.symbol}
    for stack in stacks:
        outermost = max(stack)
        walked.update(places[text].path for number, text in stack.items() if number != outermost)
    return nameless - walked


def _named(
    stacks: dict[int, dict[int, bytes]], places: dict[bytes, UserPlace], names: UserNames
) -> dict[int, tuple[Frame | None, ...]]:
    """Frames by number, the outermost first."""
    whole = [[places[stack[key]] for key in sorted(stack)] for stack in stacks.values()]
    return {number: tuple(reversed(found)) for number, found in zip(stacks, names.frames(whole), strict=True)}


def _user_frames(places: dict[bytes, UserPlace]) -> dict[bytes, Frame]:
    """Frames by text, from what SystemTap tells alone."""
    made = {text: _user_frame(place) for text, place in places.items()}
    names = Demangler().demangle({frame.name for frame in made.values()})
    return {text: frame._replace(name=names.get(frame.name, frame.name)) for text, frame in made.items()}


def _user_frame(place: UserPlace) -> Frame:
    module = Module(place.path) if place.path else None
    base = place.path.rpartition("/")[2]
    if place.symbol and place.size and place.offset > place.size:  # a return address may be just behind its function
        return Frame(f"[{base or 'unknown'}]", "native", module)
    if place.symbol:
        name = _SYMBOL_VERSION.sub("", place.symbol).removeprefix(_INTERNAL)
        return Frame(name or place.symbol, "native", module)
    return Frame(f"[{base}+{place.offset:#x}]" if place.path else "[unknown]", "native", module)


def _kernel_names(
    frames: dict[int, dict[int, bytes]], kernel: set[int], kallsyms: KernelNames | None
) -> dict[bytes, Frame | None]:
    """Frames by text; None: a frame of the module that traces."""
    import numpy as np

    texts = sorted({text for number in kernel for text in frames[number].values()})
    plain = [unescaped(text) for text in texts]
    addresses = [int(match[1], 16) if (match := _ADDRESS.match(text)) else 0 for text in plain]
    found: Sequence[tuple[str, Module, int] | None] = [None] * len(texts)
    if kallsyms and texts:
        found = kallsyms.places(np.array(addresses, np.uint64), 1)
    return {text: _kernel_frame(each, place) for text, each, place in zip(texts, plain, found, strict=True)}


def _kernel_frame(text: str, found: tuple[str, Module, int] | None) -> Frame | None:
    if any(name in text for name in _OURS):
        return None
    if found and not found[0].startswith("["):
        return None if found[1].path.startswith(_OURS) else Frame(found[0], "kernel", *found[1:])
    if match := _NAMED.match(text):
        return Frame(match[1], "kernel", Module(f"[{match[4]}]") if match[4] else None)
    return Frame("[kernel]", "kernel")


def _without_tracer(frames: tuple[Frame | None, ...]) -> Stack:
    """The stack without the probe's own frames, which are innermost."""
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
