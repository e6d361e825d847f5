"""Offsets of CPython's fields that lead from an interpreter to the names of functions.

Up to 3.12 the offsets are those of CPython's headers (Include/internal/pycore_runtime.h, pycore_interp.h,
pycore_frame.h, Include/cpython/pystate.h, code.h, frameobject.h, unicodeobject.h), by offsetof() on x86-64. From 3.13
on the interpreter itself has them, in `_Py_DebugOffsets` (pycore_runtime.h; pycore_debug_offsets.h in 3.14).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from ..kernel.python import (
    ENTRY_ALWAYS,
    ENTRY_BELOW,
    ENTRY_FLAG,
    INSTRUCTION_AT,
    INSTRUCTION_BYTE,
    INSTRUCTION_WORD,
    NO_STEP,
    SPACE,
    WINDOW,
)
from ..outside.reads import Memory

Version = tuple[int, int]
OLDEST, NEWEST = (3, 8), (3, 14)
_PUBLISHED = (3, 13)
"""Version from which on the interpreter has its offsets."""
_COOKIE = b"xdebugpy"
_GIL_FIELDS = 8, 16
"""Offsets in the lock: who took it last, and whether it is held."""


class Refused(Exception):
    """Reason why the frames of an interpreter cannot be read."""


@dataclass(frozen=True)
class Layout:
    """Offsets in bytes. The names are those of struct python_space, in bpf/include/python.h."""

    version: Version
    interpreters_head: int
    """Offset in the runtime of the pointer to the first interpreter."""
    interpreter_next: int
    interpreter_threads: int
    thread_interpreter: int
    thread_next: int
    thread_id: int
    thread_frame: int
    frame_in: int
    frame_code: int
    frame_back: int
    frame_instruction: int
    frame_entry: int
    code_line: int
    code_name: int
    code_qualified: int
    """Offset of the qualified name; 0 where there is none."""
    code_file: int
    code_lines: int
    code_first: int
    code_version: int
    """NO_STEP where there is none."""
    entry: int
    instruction: int
    ascii_size: int
    """Bytes before the text of a string that is ASCII."""
    compact_size: int
    """Bytes before the text of a string that is not ASCII."""
    name_hash: int = 24
    thread_native: int = NO_STEP
    """The kernel's id of the thread; NO_STEP: only the C library has it (up to 3.10)."""
    gil: int = 0
    """The interpreter lock: in the runtime (up to 3.11). 0: in the interpreter."""
    gil_at: int = 0
    """Offset in the interpreter of the pointer to the lock; 0: not known."""
    gil_own: int = 0
    """Offset in the interpreter of the main interpreter's own lock; 0: not known."""
    thread_top: int = 0
    """Offset of the end of the memory of a thread's frames (datastack_top; from 3.12 on)."""

    def pack(self, interpreters: int, salt: int, *, counted: bool = False) -> bytes:
        """A struct python_space. ``interpreters``: address of the pointer to the first one. ``counted``: a probe counts
        the code objects that are freed."""
        thread = _bytes(self.thread_next, self.thread_id, self.thread_frame)
        frame = _bytes(self.frame_code, self.frame_back, self.frame_instruction, self.frame_entry)
        version = 0 if self.code_version == NO_STEP else self.code_version
        code = _bytes(self.code_line, self.code_name, self.code_file, self.code_lines, version)
        return SPACE.pack(
            interpreters, salt, self.interpreter_next, self.interpreter_threads,
            self.thread_next, self.thread_id, self.thread_frame, thread,
            self.frame_in, self.frame_code, self.frame_back, self.frame_instruction, self.frame_entry, frame,
            self.code_line, self.code_name, self.code_file, self.code_lines, self.code_first, code,
            self.code_version, self.name_hash, self.thread_native,
            self.entry, self.instruction, self.ascii_size, self.compact_size,
            self.gil_at, self.gil_own, int(counted), self.gil and interpreters - self.interpreters_head + self.gil,
        )  # fmt: skip


def _bytes(*offsets: int) -> int:
    """Bytes of the part of an object that has these fields."""
    return max(offsets) // 8 * 8 + 8


_3_9 = Layout(
    (3, 9), interpreters_head=32, interpreter_next=0, interpreter_threads=8,
    thread_interpreter=16, thread_next=8, thread_id=176, thread_frame=24, frame_in=NO_STEP,
    frame_code=32, frame_back=24, frame_instruction=104, frame_entry=0,
    code_line=40, code_name=112, code_qualified=0, code_file=104, code_lines=120, code_first=0,
    code_version=NO_STEP,
    entry=ENTRY_ALWAYS, instruction=INSTRUCTION_BYTE, ascii_size=48, compact_size=72, gil=352,
)  # fmt: skip
_3_11 = Layout(
    (3, 11), interpreters_head=40, interpreter_next=0, interpreter_threads=16,
    thread_interpreter=16, thread_next=8, thread_id=152, thread_frame=56, frame_in=8,
    frame_code=32, frame_back=48, frame_instruction=56, frame_entry=68,
    code_line=72, code_name=120, code_qualified=128, code_file=112, code_lines=136, code_first=184,
    code_version=NO_STEP,
    entry=ENTRY_FLAG, instruction=INSTRUCTION_AT, ascii_size=48, compact_size=72, gil=360,
    thread_native=160, thread_top=304,
)  # fmt: skip
_3_12 = replace(
    _3_11, version=(3, 12), interpreter_threads=72, thread_id=136, frame_in=0,
    frame_code=0, frame_back=8, frame_entry=70, code_line=68, code_first=192, code_version=92,
    entry=ENTRY_BELOW, ascii_size=40, compact_size=56, gil=0, gil_at=384, gil_own=1040,
    thread_native=144, thread_top=240,
)  # fmt: skip
_TABLES = {
    (3, 8): replace(_3_9, version=(3, 8), gil=1152),
    (3, 9): _3_9,
    (3, 10): replace(_3_9, version=(3, 10), frame_instruction=96, instruction=INSTRUCTION_WORD),
    (3, 11): _3_11,
    (3, 12): _3_12,
}
_MEMBERS = {
    (3, 13): {
        "runtime": "size finalizing interpreters_head",
        "interpreter": "size id next threads_head gc imports_modules sysdict builtins ceval_gil gil gil_enabled"
        " gil_locked gil_holder",
        "thread": "size prev next interp current_frame thread_id native_thread_id datastack_chunk status",
        "frame": "size previous executable instr_ptr localsplus owner",
        "code": "size filename name qualname linetable firstlineno argcount names kinds code",
    },
    (3, 14): {
        "runtime": "size finalizing interpreters_head",
        "interpreter": "size id next threads_head threads_main gc imports_modules sysdict builtins ceval_gil gil"
        " gil_enabled gil_locked gil_holder code_generation tlbc_generation",
        "thread": "size prev next interp current_frame thread_id native_thread_id datastack_chunk status",
        "frame": "size previous executable instr_ptr localsplus owner stackpointer tlbc_index",
        "code": "size filename name qualname linetable firstlineno argcount names kinds code tlbc",
    },
}
"""The first parts of `_Py_DebugOffsets`, all members of which have 8 bytes, after cookie, version and free_threaded."""


def layout_of(version: Version, runtime: int, memory: Memory) -> Layout:
    """The layout of an interpreter whose `_PyRuntime` is at this address. Refused, and OSError if it cannot be read."""
    if version in _TABLES:
        return _TABLES[version]
    if version not in _MEMBERS:
        raise Refused(f"its version is neither {OLDEST[0]}.{OLDEST[1]} nor one up to {NEWEST[0]}.{NEWEST[1]}")
    return _published(version, runtime, memory)


def _published(version: Version, runtime: int, memory: Memory) -> Layout:
    parts = {part: names.split() for part, names in _MEMBERS[version].items()}
    head = struct.Struct("<8sQQ")
    count = sum(map(len, parts.values()))
    data = memory.read(runtime, head.size + 8 * count)
    cookie, number, free_threaded = head.unpack_from(data)
    if cookie != _COOKIE or (number >> 24, number >> 16 & 0xFF) != version:
        raise Refused("it does not have the offsets of its version")
    if free_threaded:
        raise Refused("it is built without the global lock (free-threaded)")
    values = iter(struct.unpack_from(f"<{count}Q", data, head.size))
    found = {part: {name: next(values) for name in names} for part, names in parts.items()}
    gil_at, gil_own = _gil(found["interpreter"])
    runtimes, interpreter, thread = found["runtime"], found["interpreter"], found["thread"]
    frame, code = found["frame"], found["code"]
    layout = replace(
        _3_12, version=version, interpreters_head=runtimes["interpreters_head"],
        interpreter_next=interpreter["next"], interpreter_threads=interpreter["threads_head"],
        thread_interpreter=thread["interp"], thread_next=thread["next"], thread_id=thread["thread_id"],
        thread_frame=thread["current_frame"], frame_in=NO_STEP,
        frame_code=frame["executable"], frame_back=frame["previous"], frame_instruction=frame["instr_ptr"],
        frame_entry=frame["owner"], code_line=code["firstlineno"], code_name=code["name"],
        code_qualified=code["qualname"], code_file=code["filename"], code_lines=code["linetable"],
        code_first=code["code"], code_version=code["names"] - 4,
        gil_at=gil_at, gil_own=gil_own,
        thread_native=thread["native_thread_id"], thread_top=thread["datastack_chunk"] + 8,
    )  # fmt: skip
    in_windows = (
        *(thread[name] for name in ("next", "thread_id", "native_thread_id", "interp", "current_frame")),
        *list(frame.values())[1:6],
        code["firstlineno"], code["name"], code["qualname"], code["filename"], code["linetable"], code["names"],
        code["code"],
    )  # fmt: skip
    # An interpreter has its threads' list near its beginning, behind some tables.
    far = max(layout.interpreter_next, layout.interpreter_threads) >= 1 << 24
    if far or max(in_windows) > WINDOW - 8 or layout.code_version < 0:
        raise Refused("its offsets are absurd")
    return layout


def _gil(interpreter: dict[str, int]) -> tuple[int, int]:
    """Offsets of the interpreter's pointer to its lock, and of its own lock; zeros if the probes would not understand
    it. They expect its fields in the order that they have always had."""
    own = interpreter["gil"]
    fields = interpreter["gil_holder"] - own, interpreter["gil_locked"] - own
    if fields != _GIL_FIELDS or max(own, interpreter["ceval_gil"]) >= 1 << 24:
        return 0, 0
    return interpreter["ceval_gil"], own


def check_threads(layout: Layout, runtime: int, memory: Memory) -> None:
    """Refused if the first thread does not belong to the first interpreter; nothing if there is none yet."""
    interpreter = memory.word(runtime + layout.interpreters_head)
    thread = interpreter and memory.word(interpreter + layout.interpreter_threads)
    if thread and memory.word(thread + layout.thread_interpreter) != interpreter:
        raise Refused("its data are not where its version has them")
