"""libbpf.so.1 through ctypes: the only module that knows its C interface.

Which one is loaded: `loading.py`. Built on it: `bpfobject.py` (objects, programs, links) and `bpfmap.py` (maps, ring
buffers). Signatures: libbpf.h, bpf.h and btf.h of libbpf 1.0; the layout of BTF types: include/uapi/linux/btf.h.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint32, c_void_p

from ...converters.base.errors import StallscopeError
from .loading import Loaded, load

BTF_KIND_ENUM, BTF_KIND_DATASEC, BTF_KIND_ENUM64 = 6, 15, 19
BTF_KIND_STRUCT, BTF_KIND_FUNC = 4, 12
_LOG_BYTES = 1 << 24
"""Size of the longest message: the verifier's log (BPF_LOG_BUF_SIZE in libbpf)."""
_LOG_KEPT = 1 << 14

_PrintCallback = ctypes.CFUNCTYPE(c_int, c_int, c_char_p, c_void_p)


class OpenOptions(ctypes.Structure):
    """struct bpf_object_open_opts up to btf_custom_path (libbpf 1.0); sz is the size of the part that we define."""

    _fields_ = [
        ("sz", c_size_t),
        ("object_name", c_char_p),
        ("relaxed_maps", ctypes.c_bool),
        ("pin_root_path", c_char_p),
        ("_reserved", c_uint32),
        ("kconfig", c_char_p),
        ("btf_custom_path", c_char_p),
    ]


class MapOptions(ctypes.Structure):
    """struct bpf_map_create_opts up to map_flags (libbpf 1.0)."""

    _fields_ = [
        ("sz", c_size_t),
        ("btf_fd", c_uint32),
        ("btf_key_type_id", c_uint32),
        ("btf_value_type_id", c_uint32),
        ("btf_vmlinux_value_type_id", c_uint32),
        ("inner_map_fd", c_uint32),
        ("map_flags", c_uint32),
    ]


class TestRunOptions(ctypes.Structure):
    """struct bpf_test_run_opts (libbpf 1.0)."""

    _fields_ = [
        ("sz", c_size_t),
        ("data_in", c_void_p),
        ("data_out", c_void_p),
        ("data_size_in", c_uint32),
        ("data_size_out", c_uint32),
        ("ctx_in", c_void_p),
        ("ctx_out", c_void_p),
        ("ctx_size_in", c_uint32),
        ("ctx_size_out", c_uint32),
        ("retval", c_uint32),
        ("repeat", c_int),
        ("duration", c_uint32),
        ("flags", c_uint32),
        ("cpu", c_uint32),
        ("batch_size", c_uint32),
    ]


class UprobeOptions(ctypes.Structure):
    """struct bpf_uprobe_opts up to retprobe (libbpf 1.0)."""

    _fields_ = [
        ("sz", c_size_t),
        ("ref_ctr_offset", c_size_t),
        ("bpf_cookie", ctypes.c_uint64),
        ("retprobe", ctypes.c_bool),
    ]


class PerfEventOptions(ctypes.Structure):
    """struct bpf_perf_event_opts (libbpf 1.0)."""

    _fields_ = [("sz", c_size_t), ("bpf_cookie", ctypes.c_uint64)]


class KprobeOptions(ctypes.Structure):
    """struct bpf_kprobe_opts up to retprobe (libbpf 1.0)."""

    _fields_ = [
        ("sz", c_size_t),
        ("bpf_cookie", ctypes.c_uint64),
        ("offset", c_size_t),
        ("retprobe", ctypes.c_bool),
    ]


class BtfType(ctypes.Structure):
    """struct btf_type."""

    _fields_ = [("name_off", c_uint32), ("info", c_uint32), ("size_or_type", c_uint32)]


class Instruction(ctypes.Structure):
    """struct bpf_insn; ``registers``: the destination in the low four bits, the source in the high ones."""

    _fields_ = [
        ("code", ctypes.c_uint8),
        ("registers", ctypes.c_uint8),
        ("off", ctypes.c_int16),
        ("imm", ctypes.c_int32),
    ]


class BtfMember(ctypes.Structure):
    """struct btf_member."""

    _fields_ = [("name_off", c_uint32), ("type", c_uint32), ("offset", c_uint32)]


class BtfArray(ctypes.Structure):
    """struct btf_array."""

    _fields_ = [("type", c_uint32), ("index_type", c_uint32), ("nelems", c_uint32)]


class BtfVarSecinfo(ctypes.Structure):
    """struct btf_var_secinfo."""

    _fields_ = [("type", c_uint32), ("offset", c_uint32), ("size", c_uint32)]


_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "bpf_object__open_file": (c_void_p, [c_char_p, POINTER(OpenOptions)]),
    "bpf_object__load": (c_int, [c_void_p]),
    "bpf_object__close": (None, [c_void_p]),
    "bpf_object__btf": (c_void_p, [c_void_p]),
    "bpf_object__find_map_by_name": (c_void_p, [c_void_p, c_char_p]),
    "bpf_object__next_program": (c_void_p, [c_void_p, c_void_p]),
    "bpf_program__name": (c_char_p, [c_void_p]),
    "bpf_program__set_autoload": (c_int, [c_void_p, ctypes.c_bool]),
    "bpf_program__fd": (c_int, [c_void_p]),
    "bpf_program__set_log_buf": (c_int, [c_void_p, c_void_p, c_size_t]),
    "bpf_program__set_log_level": (c_int, [c_void_p, c_uint32]),
    "bpf_program__insns": (c_void_p, [c_void_p]),
    "bpf_program__insn_cnt": (c_size_t, [c_void_p]),
    "bpf_prog_test_run_opts": (c_int, [c_int, POINTER(TestRunOptions)]),
    "bpf_program__attach": (c_void_p, [c_void_p]),
    "bpf_program__attach_perf_event": (c_void_p, [c_void_p, c_int]),
    "bpf_program__attach_uprobe_opts": (c_void_p, [c_void_p, c_int, c_char_p, c_size_t, POINTER(UprobeOptions)]),
    "bpf_program__attach_perf_event_opts": (c_void_p, [c_void_p, c_int, POINTER(PerfEventOptions)]),
    "bpf_program__attach_kprobe_opts": (c_void_p, [c_void_p, c_char_p, POINTER(KprobeOptions)]),
    "bpf_program__set_expected_attach_type": (c_int, [c_void_p, c_int]),
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
    "bpf_map_create": (c_int, [c_int, c_char_p, c_uint32, c_uint32, c_uint32, POINTER(MapOptions)]),
    "bpf_map_lookup_elem": (c_int, [c_int, c_void_p, c_void_p]),
    "bpf_map_update_elem": (c_int, [c_int, c_void_p, c_void_p, ctypes.c_uint64]),
    "bpf_map_delete_elem": (c_int, [c_int, c_void_p]),
    "bpf_map_get_next_key": (c_int, [c_int, c_void_p, c_void_p]),
    "bpf_map_lookup_batch": (c_int, [c_int, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_uint32), c_void_p]),
    "bpf_map_lookup_and_delete_batch": (
        c_int,
        [c_int, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_uint32), c_void_p],
    ),
    "btf__load_vmlinux_btf": (c_void_p, []),
    "btf__free": (None, [c_void_p]),
    "btf__find_by_name_kind": (ctypes.c_int32, [c_void_p, c_char_p, c_uint32]),
    "btf__type_by_id": (c_void_p, [c_void_p, c_uint32]),
    "btf__name_by_offset": (c_char_p, [c_void_p, c_uint32]),
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
    """Collects libbpf's own messages, which are shown only where they explain an error."""
    if level > 1 or len(_log) > 200:  # LIBBPF_WARN 0, LIBBPF_INFO 1, LIBBPF_DEBUG 2
        return 0
    memory = mmap.mmap(-1, _LOG_BYTES)  # only pages that are written take memory
    text = (ctypes.c_char * _LOG_BYTES).from_buffer(memory)
    # A va_list parameter is passed as a pointer on x86-64 and arm64 alike.
    size = ctypes.CDLL(None).vsnprintf(text, c_size_t(_LOG_BYTES), c_char_p(fmt), c_void_p(arguments))
    end = min(size, _LOG_BYTES - 1)
    # The reason is at the end of the verifier's log.
    _log.append(memory[max(end - _LOG_KEPT, 0) : end].decode(errors="replace").rstrip())
    return 0


_PRINT = _PrintCallback(_collect_log)
"""libbpf keeps a pointer to it, so it must live as long as the library."""


_loaded: Loaded | None = None


def library() -> ctypes.CDLL:
    """The library, loaded at the first use. StallscopeError when it is missing or too old."""
    return loaded().library


def loaded() -> Loaded:
    """The library, and where it is from."""
    global _loaded
    if _loaded is None:
        found = load(_bind)
        found.library.libbpf_set_print(_PRINT)
        _loaded = found
    return _loaded


def _bind(library: ctypes.CDLL) -> None:
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


def version() -> str:
    """libbpf's version, ``v1.1``."""
    return str(library().libbpf_version_string().decode())


class BpfError(StallscopeError):
    """A refusal by the kernel or by libbpf: ``number`` is the errno, ``log`` the verifier's or libbpf's messages."""

    def __init__(self, what: str, number: int, log: list[str]) -> None:
        super().__init__(f"{what}: {_describe(number)}")
        self.number = number
        self.log = log
        self.program = _refused_program(log)
        """The name of the program that the verifier rejected; empty for other errors."""


def _refused_program(log: list[str]) -> str:
    for entry in log:
        if found := re.search(r"^libbpf: prog '([^']+)': BPF program load failed", entry, re.MULTILINE):
            return found[1]
    return ""


def _describe(number: int) -> str:
    """Description of an errno, or of one of libbpf's own numbers from 4000 on."""
    if not number:
        return "unknown error"
    text = ctypes.create_string_buffer(256)
    library().libbpf_strerror(number, text, len(text))
    return text.value.decode(errors="replace") if number else "unknown error"


def check(result: int, what: str) -> int:
    """``result``, or BpfError when it is a negative errno."""
    if result < 0:
        raise BpfError(what, -result, take_log())
    return result


def check_pointer(result: int | None, what: str) -> int:
    """``result``, or BpfError when it is NULL."""
    if not result:
        raise BpfError(what, ctypes.get_errno(), take_log())
    return result


def take_log() -> list[str]:
    """Returns and clears the collected messages of libbpf."""
    lines, _log[:] = list(_log), []
    return lines
