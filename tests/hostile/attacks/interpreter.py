"""Damages its own Python 3.11 interpreter, sleeps, and says "ready PID": interpreter.py KIND.

KIND is the name of one of the functions below. Offsets: Include/cpython/object.h, code.h, frameobject.h and
Include/internal/pycore_frame.h of 3.11.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import types
from collections.abc import Callable

_DEALLOCATOR = 48
_FRAME_OF = 24
_CODE, _PREVIOUS = 32, 48
_NAME_OF_CODE = 112
_LENGTH = 16
_SECONDS = 120


def _word(address: int) -> ctypes.c_uint64:
    return ctypes.c_uint64.from_address(address)


def inside_instruction() -> None:
    """Root's breakpoint is to go into the middle of an instruction."""
    _word(id(types.CodeType) + _DEALLOCATOR).value += 1


def inside_function() -> None:
    """Root's breakpoint is to go to the function's second instruction."""
    _word(id(types.CodeType) + _DEALLOCATOR).value += 2


def circle() -> None:
    """The frame of the module calls itself."""
    frame = _word(id(sys._getframe(2)) + _FRAME_OF).value
    _word(frame + _PREVIOUS).value = frame


def huge_name() -> None:
    """A function whose name says that it has 2^40 characters."""
    code = main.__code__
    name = next(value for value in (code.co_name, code.co_qualname) if value == "main")
    _word(id(name) + _LENGTH).value = 1 << 40


def wild_code() -> None:
    """The frame of the module has its code where nothing is."""
    frame = _word(id(sys._getframe(2)) + _FRAME_OF).value
    _word(frame + _CODE).value = 0x7FFF_FFFF_F000


_SLOTS = (inside_instruction, inside_function)
_KINDS: dict[str, Callable[[], None]] = {made.__name__: made for made in (*_SLOTS, circle, huge_name, wild_code)}


def main(kind: str) -> None:
    """Does not return: nothing of the interpreter may be used afterwards."""
    libc = ctypes.PyDLL(None)
    pause = libc.usleep
    os.write(1, f"ready {os.getpid()}\n".encode())
    _KINDS[kind]()
    while _KINDS[kind] in _SLOTS:
        pause(20_000)
    pause(_SECONDS * 1_000_000)


if __name__ == "__main__":
    signal.alarm(_SECONDS)
    threading.Thread(target=lambda: ctypes.CDLL(None).usleep(_SECONDS * 1_000_000), daemon=True).start()
    main(sys.argv[1])
