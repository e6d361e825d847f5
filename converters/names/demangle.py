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
_CONSTRAINT = "Q"
"""Begins the constraint of a template or of a function of C++20 (Itanium C++ ABI, section 5.1.5)."""
_CONSTRAINTS = 4
"""Places in a name at which one is looked for."""
_TOKEN = re.compile(r"L[a-z]n?[0-9]+E|A[0-9]+_|[ST][0-9A-Z]*_|(?P<length>[0-9]{1,5})|Q")
"""Parts of a mangled name with a number that is none of an identifier's length; a length; the begin of a constraint."""
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
            self._demangle_constrained([name for name in cpp if self._known[name] == name])
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

    def _demangle_constrained(self, names: list[str]) -> None:
        """Demangles names without their constraints, which older demanglers do not know, and what follows these."""
        shorter = {name: tuple(_without_constraint(name)) for name in names if _CONSTRAINT in name}
        if not shorter:
            return
        self._demangle_cpp(sorted({each for some in shorter.values() for each in some}))
        for name, some in shorter.items():
            self._known[name] = next((self._known[each] for each in some if self._known.get(each, each) != each), name)

    def _affordable(self, names: list[str]) -> list[str]:
        """Names for which there is room, from the first on; the others have failed."""
        for i, name in enumerate(names):
            if len(name) > self._left:
                self.failed += len(names) - i
                return names[:i]
            self._left -= len(name)
        return names


def _without_constraint(name: str) -> Iterable[str]:
    """``name`` as far as it may be complete without a constraint: that of a function stands at its end, and that of a
    template's argument within a template and a nested name, both of which end with an E."""
    found = at = 0
    while found < _CONSTRAINTS and (token := _TOKEN.search(name, at)):
        at = token.end() + int(token["length"] or 0)
        if token[0] == _CONSTRAINT:
            found += 1
            yield name[: token.start()]
            yield name[: token.start()] + "EE"


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
