"""libbpf.so.1 through ctypes: the one place that knows its C interface.

Everything else sees `Object`, `Program`, `Map`, `Link` and `RingBuffer`. Signatures: libbpf.h, bpf.h and btf.h of
libbpf 1.0; the layout of BTF types: include/uapi/linux/btf.h.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import mmap
import os
from collections.abc import Callable, Iterator
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from pathlib import Path

from ...converters.errors import StallscopeError

_BTF_KIND_DATASEC = 15
_LOG_BYTES = 1 << 24
"""The longest message: the verifier's log (BPF_LOG_BUF_SIZE in libbpf)."""
_LOG_KEPT = 1 << 14

_RingCallback = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)
_PrintCallback = ctypes.CFUNCTYPE(c_int, c_int, c_char_p, c_void_p)


class _OpenOptions(ctypes.Structure):
    """struct bpf_object_open_opts up to btf_custom_path (libbpf 1.0); sz tells libbpf how much of it we know."""

    _fields_ = [
        ("sz", c_size_t),
        ("object_name", c_char_p),
        ("relaxed_maps", ctypes.c_bool),
        ("pin_root_path", c_char_p),
        ("_reserved", c_uint32),
        ("kconfig", c_char_p),
        ("btf_custom_path", c_char_p),
    ]


class _BtfType(ctypes.Structure):
    _fields_ = [("name_off", c_uint32), ("info", c_uint32), ("size_or_type", c_uint32)]


class _BtfVarSecinfo(ctypes.Structure):
    _fields_ = [("type", c_uint32), ("offset", c_uint32), ("size", c_uint32)]


_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "bpf_object__open_file": (c_void_p, [c_char_p, POINTER(_OpenOptions)]),
    "bpf_object__load": (c_int, [c_void_p]),
    "bpf_object__close": (None, [c_void_p]),
    "bpf_object__btf": (c_void_p, [c_void_p]),
    "bpf_object__find_map_by_name": (c_void_p, [c_void_p, c_char_p]),
    "bpf_object__next_program": (c_void_p, [c_void_p, c_void_p]),
    "bpf_program__name": (c_char_p, [c_void_p]),
    "bpf_program__set_autoload": (c_int, [c_void_p, ctypes.c_bool]),
    "bpf_program__attach": (c_void_p, [c_void_p]),
    "bpf_program__attach_iter": (c_void_p, [c_void_p, c_void_p]),
    "bpf_link__fd": (c_int, [c_void_p]),
    "bpf_link__destroy": (c_int, [c_void_p]),
    "bpf_iter_create": (c_int, [c_int]),
    "bpf_map__fd": (c_int, [c_void_p]),
    "bpf_map__initial_value": (c_void_p, [c_void_p, POINTER(c_size_t)]),
    "bpf_map__key_size": (c_uint32, [c_void_p]),
    "bpf_map__value_size": (c_uint32, [c_void_p]),
    "bpf_map__max_entries": (c_uint32, [c_void_p]),
    "bpf_map__set_max_entries": (c_int, [c_void_p, c_uint32]),
    "bpf_map__set_autocreate": (c_int, [c_void_p, ctypes.c_bool]),
    "bpf_map_lookup_elem": (c_int, [c_int, c_void_p, c_void_p]),
    "bpf_map_update_elem": (c_int, [c_int, c_void_p, c_void_p, ctypes.c_uint64]),
    "bpf_map_delete_elem": (c_int, [c_int, c_void_p]),
    "bpf_map_lookup_batch": (c_int, [c_int, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_uint32), c_void_p]),
    "btf__find_by_name_kind": (ctypes.c_int32, [c_void_p, c_char_p, c_uint32]),
    "btf__type_by_id": (c_void_p, [c_void_p, c_uint32]),
    "btf__name_by_offset": (c_char_p, [c_void_p, c_uint32]),
    "ring_buffer__new": (c_void_p, [c_int, _RingCallback, c_void_p, c_void_p]),
    "ring_buffer__consume": (c_int, [c_void_p]),
    "ring_buffer__free": (None, [c_void_p]),
    "libbpf_strerror": (c_int, [c_int, c_void_p, c_size_t]),
    "libbpf_version_string": (c_char_p, []),
    "libbpf_num_possible_cpus": (c_int, []),
    "libbpf_set_print": (c_void_p, [_PrintCallback]),
    "bpf_linker__new": (c_void_p, [c_char_p, c_void_p]),
    "bpf_linker__add_file": (c_int, [c_void_p, c_char_p, c_void_p]),
    "bpf_linker__finalize": (c_int, [c_void_p]),
    "bpf_linker__free": (None, [c_void_p]),
}

_log: list[str] = []


def _collect_log(level: int, fmt: bytes, arguments: int) -> int:
    """libbpf's own messages: kept, and shown only where they explain an error."""
    if level > 1 or len(_log) > 200:  # LIBBPF_WARN 0, LIBBPF_INFO 1, LIBBPF_DEBUG 2
        return 0
    memory = mmap.mmap(-1, _LOG_BYTES)  # only what is written to takes memory
    text = (ctypes.c_char * _LOG_BYTES).from_buffer(memory)
    # A va_list parameter is passed as a pointer on x86-64 and arm64 alike.
    size = ctypes.CDLL(None).vsnprintf(text, c_size_t(_LOG_BYTES), c_char_p(fmt), c_void_p(arguments))
    end = min(size, _LOG_BYTES - 1)
    # The verifier says why at the end.
    _log.append(memory[max(end - _LOG_KEPT, 0) : end].decode(errors="replace").rstrip())
    return 0


_PRINT = _PrintCallback(_collect_log)
"""libbpf keeps a pointer to it: it must live as long as the library."""


_library: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """The library, loaded at the first use. StallscopeError when it is missing or too old."""
    global _library
    if _library is None:
        try:
            loaded = ctypes.CDLL("libbpf.so.1", use_errno=True)
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(loaded, name)
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError) as error:
            remedy = "install it: apt-get install libbpf1 (version 1.0 or newer)"
            raise StallscopeError(f"libbpf.so.1 cannot be used: {error}", remedy) from None
        loaded.libbpf_set_print(_PRINT)
        _library = loaded
    return _library


def version() -> str:
    """libbpf's version, ``v1.1``."""
    return str(library().libbpf_version_string().decode())


class BpfError(StallscopeError):
    """A refusal by the kernel or by libbpf: ``number`` is the errno, ``log`` what the verifier or libbpf said."""

    def __init__(self, what: str, number: int, log: list[str]) -> None:
        super().__init__(f"{what}: {_describe(number)}")
        self.number = number
        self.log = log


def _describe(number: int) -> str:
    """An errno, or one of libbpf's own numbers from 4000 on, in words."""
    if not number:
        return "unknown error"
    text = ctypes.create_string_buffer(256)
    library().libbpf_strerror(number, text, len(text))
    return text.value.decode(errors="replace") if number else "unknown error"


def check(result: int, what: str) -> int:
    """``result``, or BpfError when it is a negative errno."""
    if result < 0:
        raise BpfError(what, -result, _take_log())
    return result


def check_pointer(result: int | None, what: str) -> int:
    """``result``, or BpfError when it is NULL."""
    if not result:
        raise BpfError(what, ctypes.get_errno(), _take_log())
    return result


def _take_log() -> list[str]:
    lines, _log[:] = list(_log), []
    return lines


class Link:
    """An attached program. Detached by `close` or by the end of the process, whatever ends it."""

    def __init__(self, pointer: int) -> None:
        self._pointer: int | None = pointer

    def close(self) -> None:
        if self._pointer:
            library().bpf_link__destroy(self._pointer)
        self._pointer = None

    def read_iterator(self) -> bytes:
        """Runs an iterator program over everything and returns what it wrote."""
        fd = check(library().bpf_iter_create(library().bpf_link__fd(self._pointer)), "BPF iterator")
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

    def attach(self) -> Link:
        return Link(check_pointer(library().bpf_program__attach(self._pointer), f"attach {self.name}"))

    def attach_iterator(self) -> Link:
        return Link(check_pointer(library().bpf_program__attach_iter(self._pointer, None), f"attach {self.name}"))


class Map:
    """One BPF map; keys and values are bytes."""

    def __init__(self, pointer: int, name: str) -> None:
        self._pointer = pointer
        self.name = name
        self.key_size: int = library().bpf_map__key_size(pointer)
        self.value_size: int = library().bpf_map__value_size(pointer)

    @property
    def fd(self) -> int:
        return int(library().bpf_map__fd(self._pointer))

    @property
    def max_entries(self) -> int:
        return int(library().bpf_map__max_entries(self._pointer))

    def set_max_entries(self, count: int) -> None:
        check(library().bpf_map__set_max_entries(self._pointer, count), f"map {self.name}")

    def set_autocreate(self, wanted: bool) -> None:
        check(library().bpf_map__set_autocreate(self._pointer, wanted), f"map {self.name}")

    def memory(self) -> ctypes.Array[ctypes.c_char]:
        """The initial value of a global-data map (.rodata, .bss)."""
        size = c_size_t()
        address = library().bpf_map__initial_value(self._pointer, byref(size))
        return (ctypes.c_char * size.value).from_address(check_pointer(address, f"memory of {self.name}"))

    def update(self, key: bytes, value: bytes) -> None:
        check(library().bpf_map_update_elem(self.fd, key, value, 0), f"map {self.name}")

    def delete(self, key: bytes) -> None:
        """No error when it is not there."""
        error = library().bpf_map_delete_elem(self.fd, key)
        if error != -errno.ENOENT:
            check(error, f"map {self.name}")

    def lookup(self, key: bytes) -> bytes | None:
        """The value, or None. Not for per-CPU maps."""
        value = ctypes.create_string_buffer(self.value_size)
        return value.raw if library().bpf_map_lookup_elem(self.fd, key, value) == 0 else None

    def lookup_percpu_u64(self, index: int) -> int:
        """Sum over the CPUs of entry ``index`` of a per-CPU array of u64."""
        values = ctypes.create_string_buffer(8 * int(library().libbpf_num_possible_cpus()))
        check(library().bpf_map_lookup_elem(self.fd, index.to_bytes(4, "little"), values), f"map {self.name}")
        return sum(memoryview(values.raw).cast("Q"))

    def items(self, batch: int = 4096) -> Iterator[tuple[bytes, bytes]]:
        """All (key, value) of a hash that nobody changes meanwhile."""
        batch = min(batch, self.max_entries)
        while (found := self._read_batches(batch)) is None:
            batch *= 2
        yield from found

    def _read_batches(self, batch: int) -> list[tuple[bytes, bytes]] | None:
        """None: one of the kernel's hash buckets holds more than ``batch`` entries."""
        keys = ctypes.create_string_buffer(self.key_size * batch)
        values = ctypes.create_string_buffer(self.value_size * batch)
        cursor = ctypes.create_string_buffer(max(self.key_size, 8))
        found: list[tuple[bytes, bytes]] = []
        error = 0
        while not error:
            count = c_uint32(batch)
            begin = cursor if found else None
            error = library().bpf_map_lookup_batch(self.fd, begin, cursor, keys, values, byref(count), None)
            if error == -errno.ENOSPC:
                return None
            if error != -errno.ENOENT:  # that was the last batch
                check(error, f"map {self.name}")
            pairs = zip(_cut(keys.raw, self.key_size), _cut(values.raw, self.value_size), strict=True)
            found.extend(itertools.islice(pairs, count.value))
        return found


def _cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[i : i + size] for i in range(0, len(data), size))


class RingBuffer:
    """A ring buffer whose records go to ``callback`` when `consume` is called."""

    def __init__(self, source: Map, callback: Callable[[bytes], None]) -> None:
        self._failure: BaseException | None = None

        def on_record(_context: int, data: int, size: int) -> int:
            try:
                callback(ctypes.string_at(data, size))
            except BaseException as error:  # must not cross C frames; raised again by consume()
                self._failure = error
                return -1
            return 0

        self._callback = _RingCallback(on_record)
        self._pointer: int | None = check_pointer(
            library().ring_buffer__new(source.fd, self._callback, None, None), "ring buffer"
        )

    def consume(self) -> int:
        """Delivers the records that are there; returns how many."""
        count = int(library().ring_buffer__consume(self._pointer))
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return check(count, "ring buffer")

    def close(self) -> None:
        if self._pointer:
            library().ring_buffer__free(self._pointer)
        self._pointer = None


class Object:
    """A BPF object file: opened, configured, then loaded.

    ``btf``: an external BTF file of the kernel, for kernels that carry none.
    """

    def __init__(self, path: Path, btf: Path | None = None) -> None:
        _log.clear()
        options = _OpenOptions(sz=ctypes.sizeof(_OpenOptions), object_name=b"stallscope")
        if btf is not None:
            options.btf_custom_path = os.fsencode(btf)
        opened = library().bpf_object__open_file(os.fsencode(path), byref(options))
        self._pointer: int | None = check_pointer(opened, f"open {path.name}")
        self._loaded = False
        self.programs = {program.name: program for program in self._each_program()}
        self._variables = {**self._section(".rodata"), **self._section(".bss")}

    def _each_program(self) -> Iterator[Program]:
        pointer = None
        while pointer := library().bpf_object__next_program(self._pointer, pointer):
            yield Program(pointer)

    def _section(self, section: str) -> dict[str, tuple[str, int, int]]:
        """Variable name → (section, offset, size), from the object's BTF."""
        btf = library().bpf_object__btf(self._pointer)
        if (index := library().btf__find_by_name_kind(btf, section.encode(), _BTF_KIND_DATASEC)) < 0:
            return {}
        address = library().btf__type_by_id(btf, index)
        count = _BtfType.from_address(address).info & 0xFFFF
        infos = (_BtfVarSecinfo * count).from_address(address + ctypes.sizeof(_BtfType))
        variables = {}
        for info in infos:
            variable = _BtfType.from_address(library().btf__type_by_id(btf, info.type))
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
        """Sets a global variable: a knob (`const volatile`) before load, others at any time. KeyError: no such one."""
        section, offset, size = self._variables[name]
        memory = self.find_map(section).memory()
        ctypes.memmove(ctypes.addressof(memory) + offset, value.to_bytes(size, "little"), size)
        if self._loaded:  # the mapped memory only ever was the initial value
            self.find_map(section).update(bytes(4), memory.raw)

    def select(self, names: set[str]) -> None:
        """Loads these programs and no others. KeyError: no such program."""
        if missing := names - self.programs.keys():
            raise KeyError(*sorted(missing))
        for name, program in self.programs.items():
            program.set_autoload(name in names)

    def load(self) -> None:
        """Creates the maps and loads the selected programs. BpfError with the log when the kernel refuses."""
        error = library().bpf_object__load(self._pointer)
        if error < 0:
            raise BpfError("the kernel refuses the BPF programs", -error, _take_log())
        self._loaded = True
        _log.clear()

    def close(self) -> None:
        if self._pointer:
            library().bpf_object__close(self._pointer)
        self._pointer = None
