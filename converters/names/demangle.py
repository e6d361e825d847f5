"""Readable names for C++ and Rust symbols.

C++ names go through the C++ library's own demangler (package cxxfilt), in a process of its own: a
symbol of 235 bytes can unfold to 280 MB (each argument made of the last one twice), and a
mangled name is whatever the owner of the program wrote into it. The process has limits on memory
and CPU time; the name on which it dies stays mangled.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from .rust import demangle_rust

MAX_NAME = 8192
"""Characters of a readable name; more is cut and ends in ``…``."""

_MAX_MANGLED = 1 << 15
_TIMEOUT = 30
_MAX_RESTARTS = 3
_WORKER = os.path.join(os.path.dirname(__file__), "demangle_worker.py")


class Demangler:
    """Remembers what it demangled."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self.failed = 0
        """C++ names left mangled because the demangler died on them or could not run."""

    def demangle(self, names: Iterable[str]) -> dict[str, str]:
        """Each of ``names`` with its readable form, which is the name itself where there is none."""
        wanted = set(names)
        cpp = []
        for name in wanted - self._known.keys():
            self._known[name] = name
            if not name.startswith(("_Z", "__Z", "_R", "__R")) or len(name) > _MAX_MANGLED:
                continue
            rust = demangle_rust(name)
            if rust is not None:
                self._known[name] = _bounded(rust)
            elif name.startswith("_Z") and not any(c <= " " or c == "\x7f" for c in name):
                cpp.append(name)
        if cpp:
            self._demangle_cpp(sorted(cpp))
        return {name: self._known[name] for name in wanted}

    def _demangle_cpp(self, names: list[str]) -> None:
        for _ in range(1 + _MAX_RESTARTS):
            answers = _run_worker(names)
            for name, answer in zip(names, answers, strict=False):
                if answer:
                    self._known[name] = _bounded(answer)
            if len(answers) >= len(names):
                return
            self.failed += 1  # the one after the last answer
            names = names[len(answers) + 1 :]
            if not names:
                return
        self.failed += len(names)


def _bounded(name: str) -> str:
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"


def _run_worker(names: list[str]) -> list[str]:
    """Answers in the order of ``names``, fewer when the worker died; an empty one leaves the name as it is."""
    import subprocess

    command = [sys.executable, "-I", _WORKER, str(MAX_NAME + 1)]
    request = "\n".join(names).encode("utf-8", "backslashreplace")
    try:
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/"
        ) as worker:
            try:
                output, _ = worker.communicate(request, _TIMEOUT)
            except subprocess.TimeoutExpired:
                worker.kill()
                output, _ = worker.communicate()
    except OSError:
        return []
    # Without its newline the last line was not finished.
    return output.decode("utf-8", "backslashreplace").split("\n")[:-1]
