"""Pseudonyms: equal names have equal ones, numbered in the order in which they come."""

from __future__ import annotations

import re

from ..facts.frame_names import bare
from ..model import Frame, Module
from . import public

_UNRESOLVED = re.compile(r"\[[^]]*?((?:\+|!fn_)0x[0-9a-f]{1,8})\]\Z", re.DOTALL)
"""A frame without a name: what is behind the file's name is an offset in it."""
_NUMBERED = re.compile(r"(.*)(-\d+(?:#\d+)?)\Z", re.DOTALL)
_SUFFIX = re.compile(r"\.(?:py|pyx|c|cc|cpp|cxx|cu|h|hpp|rs|go|java|js|ts|jl|rb|pl|so)\Z")
_COMMAND = re.compile(r"[A-Z][A-Z0-9_]*|0x[0-9a-f]{1,16}|[A-Z_]+\([\w ,']*\)")
_NUMBERS = re.compile(r"[\d,;:./ -]{0,64}")


_CODE = ("-c", "-e", "-E", "-p", "--eval", "--print")
"""Options of interpreters behind which the program itself stands: what is told of it."""


class Pseudonyms:
    """Pseudonyms for the names of one profile. ``keep_functions``: functions of private programs keep their names."""

    def __init__(self, *, keep_functions: bool = False) -> None:
        self._keep_functions = keep_functions
        self._made: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._programs: dict[str, str] = {}
        self._modules: dict[Module, Module] = {}
        self._public: set[str] = set()

    def made(self, what: str, name: str) -> str:
        """``host-1``."""
        if (what, name) not in self._made:
            self._counts[what] = self._counts.get(what, 0) + 1
            self._made[what, name] = f"{what}-{self._counts[what]}"
        return self._made[what, name]

    def learn(self, frame: Frame) -> None:
        """Notes the name of a function that is public: parts without a module have the same name."""
        if self._is_public(frame):
            self._public.add(bare(frame.name))

    def unlearn(self, frame: Frame) -> None:
        """A private function of this name exists, too."""
        if not self._is_public(frame):
            self._public.discard(bare(frame.name))

    def _is_public(self, frame: Frame) -> bool:
        if public.is_function(frame.name):
            return True
        if frame.file.endswith(".py") or frame.file.startswith("<") or frame.kind == "python":
            return bool(public.python_file(frame.file))
        if frame.module is not None:
            return bool(public.library(frame.module.path))
        return frame.kind == "kernel" and re.fullmatch(r"\w[\w.]*", frame.name) is not None

    def frame(self, frame: Frame) -> Frame:
        """The frame without what is private. Absolute addresses, of the kernel or of generated code, go in any case."""
        module = self.module(frame.module) if frame.module else None
        is_known = self._is_public(frame)
        name = frame.name if is_known else self._private(frame)
        if frame.name.startswith("bpf_prog_"):
            name = "bpf_prog"
        address = frame.address if is_known and module is not None and frame.address < 1 << 47 else 0
        return Frame(name, frame.kind, module, address, self.file(frame.file), frame.line)

    def _private(self, frame: Frame) -> str:
        if frame.kind == "api" and frame.module is None:
            return self.command(frame.name)
        if match := _UNRESOLVED.match(frame.name):
            return f"[{self.base(frame.module.path) if frame.module else 'file'}{match[1]}]"
        if frame.kind == "waker" and frame.module is None and not frame.file:
            return self.numbered(frame.name)
        return self.function(frame.name)

    def function(self, name: str) -> str:
        """Pseudonym of a function whose file is not told."""
        if public.is_function(name) or bare(name) in self._public or self._keep_functions:
            return name
        return self.made("function", bare(name))

    def kernel_function(self, name: str) -> str:
        return name if re.fullmatch(r"[\w.]*", name) else self.function(name)

    def command(self, name: str) -> str:
        """``TUNSETQUEUE /dev/net/tun``: a command of ioctl and a device."""
        command, space, device = name.partition(" ")
        if name in public.MARKS:
            return name
        shown = command if _COMMAND.fullmatch(command) or bare(command) in self._public else self.function(command)
        return f"{shown}{space}{self.device(device)}" if space else shown

    def device(self, path: str) -> str:
        return path if path in public.MARKS or public.is_device(path) else self.made("device", path)

    def module(self, module: Module) -> Module:
        """A known library keeps its name and build-id, another file has neither."""
        if module not in self._modules:
            known = public.library(module.path)
            build_id = module.build_id if known and re.fullmatch("[0-9a-f]{0,64}", module.build_id) else ""
            self._modules[module] = Module(known or self.base(module.path), build_id, module.size if known else 0)
        return self._modules[module]

    def base(self, path: str) -> str:
        return public.library(path) or (self.made("file", path) if path else "")

    def file(self, path: str) -> str:
        """Pseudonym of a source file."""
        if not path or path in ("<string>", "<stdin>"):
            return path
        suffix = _SUFFIX.search(path)
        return public.python_file(path) or self.made("file", path) + (suffix[0] if suffix else "")

    def program(self, name: str, what: str = "thread") -> str:
        """Pseudonym of a process or thread: the main thread has its process's name, and keeps it."""
        if public.is_program(name):
            return name
        if name not in self._programs:
            self._programs[name] = self.made(what, name)
        return self._programs[name]

    def process(self, name: str) -> str:
        return self.program(name, "process")

    def numbered(self, name: str) -> str:
        """Pseudonym of a waker: ``train-4711``, ``train (loader)-4712`` or ``[timer]``."""
        if name in public.MARKS:
            return name
        match = _NUMBERED.match(name)
        stem, number = (match[1], match[2]) if match else (name, "")
        process, space, thread = stem.partition(" (")
        shown = f" ({self.program(thread.removesuffix(')'))})" if space else ""
        return f"{self.process(process)}{shown}{number}"

    def lock(self, name: str, *, of_kernel: bool) -> str:
        if name in public.MARKS or (of_kernel and re.fullmatch(r"[\w .#+()\[\]-]+", name) and "0xffff" not in name):
            return name
        return self.made("lock", name)

    def script(self, name: str) -> str:
        if name in ("", "-", *_CODE) or (name.startswith("-m ") and public.is_package(name[3:])):
            return name
        return self.made("script", name)

    def number(self, text: str) -> str:
        """A value that is one, or several."""
        return text if _NUMBERS.fullmatch(text) else self.made("value", text)

    def word(self, text: str) -> str:
        """A value that is one of ours: a kind, a direction."""
        return text if re.fullmatch(r"[A-Za-z][a-z _-]{0,40}|PI mutex|GIL|", text) else self.made("value", text)

    def error(self, text: str) -> str:
        """Pseudonym of a call's error: ``EBUSY``, ``cudaErrorNotReady``, a number; or `LEFT`."""
        known = text in public.MARKS or re.fullmatch(
            r"E[A-Z0-9]+|(?:cuda|CUDA|nccl|cu|hip)\w+|-?\d+|left without a return", text
        )
        return text if known else self.made("error", text)

    def value(self, text: str) -> str:
        """Name or unit of a value."""
        return text if text in public.VALUES else self.made("value", text)

    def state(self, text: str) -> str:
        return text if text in public.STATES else self.made("state", text)
