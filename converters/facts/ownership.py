"""Owners of functions: the traced program itself, or a library.

The own function nearest to a wait tells most: it is what an engineer knows and can change. Judged by the frame alone,
so that a stack has the same name whatever else is traced.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..model import Frame
from .frame_names import script_of

_SHARED_OBJECT = re.compile(r"\.so(\.\d[\w.]*)?$")
"""An executable has no such name."""
_SYSTEM = re.compile(
    r"/(usr|lib|lib32|lib64|libx32|bin|sbin|nix|gnu|snap)/|.*/cuda(-[\d.]+)?/(lib|lib64|targets|extras|nvvm)/"
)
"""Begins of paths of libraries that belong to the system, or to CUDA's toolkit."""
_PACKAGES = re.compile(r"/(site-packages|dist-packages|node_modules|lib-dynload|lib(32|64)?/python\d[\d.]*)(/|$)")
"""Folders of packages that interpreters install."""
_INTERPRETERS = re.compile(
    r"(lib)?python\d?[\d.]*(\.so[\w.]*)?|pypy[\d.]*|node(js)?|libnode\.so[\w.]*|bun|deno|java|libj(vm|li|ava)\.so|"
    r"perl[\d.]*|libperl\.so[\w.]*|(lib)?ruby[-\d.]*(\.so[\w.]*)?|php[\w.-]*|(ba|da|z)?sh|busybox"
)
"""Executables that run a program of somebody else, and their libraries."""
_JIT_LIBRARY = re.compile(
    r"(\S* )?L?(java|javax|jdk|sun|com[./]sun)[./]|[A-Z]\w*:(?!:)|Interpreter$|StubRoutines|[vi]table stub"
)
"""Compiled code of a runtime: Java's standard library, V8's (``Builtin:ArrayMap``), and stubs."""


def is_own(frame: Frame) -> bool:
    """Whether it is the traced program's: of its executable, a script, or a library outside of the system's folders."""
    if frame.kind == "python":
        return _is_own_script(frame.file)
    if frame.kind == "jit":
        script = script_of(frame.name)
        return _is_own_script(script.file) if script else not _JIT_LIBRARY.match(frame.name)
    return frame.module is not None and is_own_file(frame.module.path)


@lru_cache(maxsize=4096)
def is_own_file(path: str) -> bool:
    """True if all functions of this native executable or library are the program's own."""
    name = path.rpartition("/")[2]
    if not path.startswith("/") or _INTERPRETERS.fullmatch(name):
        return False
    if not _SHARED_OBJECT.search(name):
        return True
    return not _SYSTEM.match(path) and not _PACKAGES.search(path)


@lru_cache(maxsize=4096)
def _is_own_script(file: str) -> bool:
    """A script whose file is not known is the program's."""
    return not file.startswith(("node:", "<frozen")) and not _PACKAGES.search(file)
