"""Names of functions that Cython has compiled to C.

``__pyx_pf_`` and ``__pyx_pw_`` (Cython/Compiler/Naming.py: a Python function, and what Python calls) or ``__pyx_f_`` (a
C function); the parts of the module's name and the classes, each with its length (``Scope.scope_prefix`` in
Cython/Compiler/Symtab.py); the function, with a number before it if it is one of Python's.
"""

from __future__ import annotations

import re

_PREFIX = re.compile(r"__pyx_(pf|pw|f)_")
_LENGTH = re.compile(r"[1-9][0-9]{0,2}(?=\D)")
_NUMBER = re.compile(r"[0-9]+(?=[^\W\d])")


def cython_name(name: str) -> str:
    """``Splitter.find_node_split`` for ``__pyx_pf_7sklearn_9splitting_8Splitter_4find_node_split``: the function with
    the class, or else the part of the module's name, before it; "" if it is none of Cython's. What a C compiler adds
    (``._omp_fn.0``) stays."""
    if not name.startswith("__pyx_"):
        return ""
    stem, dot, added = name.partition(".")
    found = _PREFIX.match(stem)
    if found is None:
        return ""
    owner, at = "", found.end()
    while length := _LENGTH.match(stem, at):
        end = length.end() + int(length[0])
        # A number may also count functions, as nearly all of Python's have it.
        if stem[end : end + 1] != "_" or not _may_follow(stem[end + 1 :], found[1]):
            break
        owner, at = stem[length.end() : end], end + 1
    function = stem[at:]
    if found[1] != "f" and (number := _NUMBER.match(function)):
        function = function[number.end() :]
    return f"{owner}.{function}{dot}{added}" if owner and function and not function[0].isdigit() else ""


def _may_follow(rest: str, prefix: str) -> bool:
    """Whether ``rest`` may come after a part with a length. Of Python's functions only the first one of a class or
    a module has no number; mostly it is a special method."""
    if prefix == "f":
        return bool(rest)
    return rest[:1].isdigit() or (prefix == "pf" and rest.startswith("__"))
