"""A BPF object in the kernel: its programs, their links, its global variables."""

from __future__ import annotations

import ctypes
import errno
import os
import re
from collections.abc import Iterator
from ctypes import byref
from pathlib import Path

from .bpfmap import Map
from .kernel_types import KernelTypes
from .libbpf import (
    BTF_KIND_DATASEC,
    BpfError,
    BtfType,
    BtfVarSecinfo,
    Instruction,
    OpenOptions,
    TestRunOptions,
    check,
    check_pointer,
    library,
    take_log,
)

_CALL, _PSEUDO_KFUNC_CALL = 0x85, 2
"""BPF_JMP | BPF_CALL; as the source register: not a helper, but a function of the kernel."""


class Link:
    """An attached program. Detached by `close` or when the process ends, however it ends."""

    def __init__(self, pointer: int) -> None:
        self._pointer: int | None = pointer

    def close(self) -> None:
        # Forgotten first: after a Ctrl-C in between, a second close must not free it again.
        pointer, self._pointer = self._pointer, None
        if pointer:
            library().bpf_link__destroy(pointer)

    @property
    def fd(self) -> int:
        return int(library().bpf_link__fd(self._pointer))

    def read_iterator(self) -> bytes:
        """Runs an iterator program over all its objects and returns its output."""
        fd = check(library().bpf_iter_create(self.fd), "BPF iterator")
        chunks = []
        try:
            while chunk := os.read(fd, 1 << 16):
                chunks.append(chunk)
        finally:
            os.close(fd)
        return b"".join(chunks)


class Program:
    """One BPF program of an object."""

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer
        self.name: str = library().bpf_program__name(pointer).decode()

    def set_autoload(self, wanted: bool) -> None:
        check(library().bpf_program__set_autoload(self._pointer, wanted), f"program {self.name}")

    def set_attach_type(self, number: int) -> None:
        """An enum bpf_attach_type that libbpf does not know by the program's section."""
        check(library().bpf_program__set_expected_attach_type(self._pointer, number), f"program {self.name}")

    def call_function(self, number: int, function: str) -> None:
        """Makes calls of the helper ``number``, which there is not, calls of a function of the kernel (kfunc), before
        the program is loaded. BpfError if the kernel has no such function, or nothing calls the helper."""
        with KernelTypes() as types:
            index = types.function_id(function)
        count = library().bpf_program__insn_cnt(self._pointer)
        code = (Instruction * count).from_address(library().bpf_program__insns(self._pointer))
        calls = [each for each in code if (each.code, each.registers, each.imm) == (_CALL, 0, number)]
        if not index or not calls:
            raise BpfError(f"call of {function}() in {self.name}", errno.ENOENT, [])
        for call in calls:
            call.registers, call.imm = _PSEUDO_KFUNC_CALL << 4, index

    @property
    def pointer(self) -> int:
        """libbpf's."""
        return self._pointer

    @property
    def fd(self) -> int:
        return int(library().bpf_program__fd(self._pointer))

    @property
    def is_loaded(self) -> bool:
        """Whether it is in the kernel."""
        return int(library().bpf_program__fd(self._pointer)) >= 0

    @property
    def misses(self) -> int:
        """Number of times that the kernel did not run it, because the CPU was in another program or in a map's system
        call.

        Kernels before 6.7 (dd8657894c11) do not count this for tracepoints: 0.
        """
        info = Path(f"/proc/self/fdinfo/{library().bpf_program__fd(self._pointer)}").read_text()
        found = re.search(r"^recursion_misses:\s*(\d+)$", info, re.MULTILINE)
        return int(found[1]) if found else 0

    def run_as_test(self) -> None:
        """Runs a raw tracepoint program immediately, without its tracepoint (1b4d60ec162f, 5.10)."""
        options = TestRunOptions(sz=ctypes.sizeof(TestRunOptions))
        fd = library().bpf_program__fd(self._pointer)
        check(library().bpf_prog_test_run_opts(fd, byref(options)), f"run {self.name}")

    def attach(self) -> Link:
        return Link(check_pointer(library().bpf_program__attach(self._pointer), f"attach {self.name}"))

    def attach_perf_event(self, fd: int) -> Link:
        """Runs the program at each sample of the event; the link takes over ``fd``."""
        link = library().bpf_program__attach_perf_event(self._pointer, fd)
        return Link(check_pointer(link, f"attach {self.name}"))

    def attach_iterator(self) -> Link:
        return Link(check_pointer(library().bpf_program__attach_iter(self._pointer, None), f"attach {self.name}"))


class Object:
    """A BPF object file: opened, configured, then loaded.

    ``btf``: an external BTF file, for kernels without BTF of their own.
    """

    def __init__(self, path: Path, btf: Path | None = None) -> None:
        take_log()
        options = OpenOptions(sz=ctypes.sizeof(OpenOptions), object_name=b"stallscope")
        if btf is not None:
            options.btf_custom_path = os.fsencode(btf)
        opened = library().bpf_object__open_file(os.fsencode(path), byref(options))
        self._pointer: int | None = check_pointer(opened, f"open {path.name}")
        self._loaded = False
        self._iterators: dict[str, Link] = {}
        self.programs = {program.name: program for program in self._each_program()}
        self._variables = {**self._section(".rodata"), **self._section(".bss")}

    def _each_program(self) -> Iterator[Program]:
        pointer = None
        while pointer := library().bpf_object__next_program(self._pointer, pointer):
            yield Program(pointer)

    def _section(self, section: str) -> dict[str, tuple[str, int, int]]:
        """Variable name → (section, offset, size), from the object's BTF."""
        btf = library().bpf_object__btf(self._pointer)
        if (index := library().btf__find_by_name_kind(btf, section.encode(), BTF_KIND_DATASEC)) < 0:
            return {}
        address = library().btf__type_by_id(btf, index)
        count = BtfType.from_address(address).info & 0xFFFF
        infos = (BtfVarSecinfo * count).from_address(address + ctypes.sizeof(BtfType))
        variables = {}
        for info in infos:
            variable = BtfType.from_address(library().btf__type_by_id(btf, info.type))
            variables[library().btf__name_by_offset(btf, variable.name_off).decode()] = (
                section,
                info.offset,
                info.size,
            )
        return variables

    def find_map(self, name: str) -> Map:
        pointer = library().bpf_object__find_map_by_name(self._pointer, name.encode())
        return Map(check_pointer(pointer, f"map {name}"), name)

    def set_variable(self, name: str, value: int) -> None:
        """Sets a global variable: a knob (`const volatile`) before load, others at any time. KeyError: unknown name."""
        section, offset, size = self._variables[name]
        memory = self.find_map(section).memory()
        ctypes.memmove(ctypes.addressof(memory) + offset, value.to_bytes(size, "little"), size)
        if self._loaded:  # the mapped memory was only the initial value
            self.find_map(section).update(bytes(4), memory.raw)

    def select(self, names: set[str]) -> None:
        """Selects the programs to load. KeyError: no such program."""
        if missing := names - self.programs.keys():
            raise KeyError(*sorted(missing))
        for name, program in self.programs.items():
            program.set_autoload(name in names)

    def load(self) -> None:
        """Creates the maps and loads the selected programs. BpfError with the log when the kernel refuses."""
        error = library().bpf_object__load(self._pointer)
        if error < 0:
            raise BpfError("the kernel refuses the BPF programs", -error, take_log())
        self._loaded = True
        take_log()

    def iterator(self, name: str) -> int | None:
        """The descriptor of a link of an iterator's program, which stays open; None if it was not loaded. BpfError."""
        if not self.programs[name].is_loaded:
            return None
        if name not in self._iterators:
            self._iterators[name] = self.programs[name].attach_iterator()
        return self._iterators[name].fd

    def close(self) -> None:
        while self._iterators:
            self._iterators.popitem()[1].close()
        # Forgotten first: after a Ctrl-C in between, a second close must not free it again.
        pointer, self._pointer = self._pointer, None
        if pointer:
            library().bpf_object__close(pointer)
