"""Readable names for C++ and Rust symbols.

C++ names are passed to the C++ library's own demangler (package cxxfilt), in a separate process: a
symbol of 235 bytes can expand to 280 MB (each argument made of the last one twice), and a
mangled name is under the control of the program's owner. The process has no rights, and limits on memory
and CPU time; a name that crashes it stays mangled. So do names beyond `MOST_BYTES`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..base import helpers
from .rust import demangle_rust, finish_rust

MAX_NAME = 8192
"""Maximum length of a readable name in characters; longer ones are cut and end in ``…``."""

MOST_BYTES = 64 << 20
"""Limit in bytes for the C++ names that are demangled, and for their answers; a large program's trace has a few MiB."""
_MAX_MANGLED = 1 << 15
_TIMEOUT = 30
_MAX_RESTARTS = 3
_WORKER = f"{__package__}.demangle_worker"


_MANGLED = re.compile(r"_{1,2}[ZR]|.*(?:\$(?:LT|RF|BP|u20|u7b)\$|::h[0-9a-f]{16}(?:\.llvm\.\d+)?\Z)", re.DOTALL)


def is_mangled(name: str) -> bool:
    """Whether a name looks like one that `Demangler` can make readable."""
    return _MANGLED.match(name) is not None


class Demangler:
    """Demangles names, and caches the results."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self.failed = 0
        """C++ names left mangled because the demangler crashed on them or could not run, or they were too many."""
        self._left = MOST_BYTES
        """Bytes of names and answers that are still taken."""

    def demangle(self, names: Iterable[str]) -> dict[str, str]:
        """Each of ``names`` with its readable form, which is the name itself if there is none."""
        wanted = set(names)
        cpp = []
        for name in wanted - self._known.keys():
            self._known[name] = name
            if not is_mangled(name) or len(name) > _MAX_MANGLED:
                continue
            rust = demangle_rust(name) if name.startswith("_") else None
            rust = rust or finish_rust(name)
            if rust is not None:
                self._known[name] = _bounded(rust)
            elif name.startswith("_Z") and not any(c <= " " or c == "\x7f" for c in name):
                cpp.append(name)
        if cpp:
            self._demangle_cpp(sorted(cpp))
        return {name: self._known[name] for name in wanted}

    def _demangle_cpp(self, names: list[str]) -> None:
        names = self._affordable(names)
        for _ in range(1 + _MAX_RESTARTS):
            answers = _run_worker(names, self._left) if self._left > 0 else []
            for name, answer in zip(names, answers, strict=False):
                if answer:
                    self._known[name] = _bounded(answer)
                    self._left -= len(answer)
            if len(answers) >= len(names):
                return
            self.failed += 1  # the name after the last answer
            names = names[len(answers) + 1 :]
            if not names:
                return
        self.failed += len(names)

    def _affordable(self, names: list[str]) -> list[str]:
        """Names for which there is room, from the first on; the others have failed."""
        for i, name in enumerate(names):
            if len(name) > self._left:
                self.failed += len(names) - i
                return names[:i]
            self._left -= len(name)
        return names


def _bounded(name: str) -> str:
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"


def _run_worker(names: list[str], most: int = MOST_BYTES) -> list[str]:
    """Answers in the order of ``names``, fewer if the worker crashed; an empty one leaves the name as it is. ``most``:
    bytes of all answers."""
    request = "\n".join(names).encode("utf-8", "backslashreplace")
    try:
        command = helpers.python_module(_WORKER, str(MAX_NAME + 1))
        output = helpers.run(command, seconds=_TIMEOUT, most=most, data=request).output
    except OSError:
        return []
    # Without its newline the last line is incomplete.
    return output.decode("utf-8", "backslashreplace").split("\n")[:-1]
