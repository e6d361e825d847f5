"""Scripts, modules or classes that interpreters run, from their command lines.

The options are those of the interpreters' own manuals. A command line is what the process shows (hostile input); of a
script only the last part of its path is kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

_MOST = 64
"""Longest name of a script, in bytes; the rest is left out."""


class _Options(NamedTuple):
    """Options before the script. Those that are not named here have no argument of their own."""

    with_argument: frozenset[str]
    code: frozenset[str] = frozenset()
    """The argument is the program itself, which is not told."""
    module: frozenset[str] = frozenset()
    """The argument is what runs."""
    joined: bool = True
    """Options of one letter can be joined, and their argument too: ``-Bum module``, ``-Idir``."""


def _options(with_argument: str, code: str = "", module: str = "", *, joined: bool = True) -> _Options:
    return _Options(frozenset(with_argument.split()), frozenset(code.split()), frozenset(module.split()), joined)


_JAVA = "-cp -classpath --class-path -p --module-path --upgrade-module-path --add-modules --add-opens --add-exports"
_INTERPRETERS = (
    (r"(python|pypy)[\d.]*", _options("-X -W --check-hash-based-pycs", code="-c", module="-m")),
    (r"node|nodejs", _options("-r --require --import --loader --experimental-loader -C --conditions",
                              code="-e --eval -p --print", joined=False)),
    (r"java", _options(f"{_JAVA} --add-reads --patch-module", module="-jar -m --module", joined=False)),
    (r"perl[\d.]*", _options("-I", code="-e -E")),
    (r"ruby[\d.]*", _options("-r -I -C -E", code="-e")),
    (r"(ba|da|z|k|a|)sh", _options("-o -O +O --rcfile --init-file", code="-c")),
)  # fmt: skip


def script_of(arguments: Sequence[bytes]) -> str:
    """``train.py``, ``-m package.module``, ``-c``, ``-e``, ``app.jar``, ``com.example.Main``; "" if it is no known
    interpreter, or if it runs nothing that the command line shows."""
    if not arguments:
        return ""
    # A login shell has a dash before its name.
    program = os.fsdecode(os.path.basename(arguments[0])).removeprefix("-")
    options = next((found for name, found in _INTERPRETERS if re.fullmatch(name, program)), None)
    rest = [os.fsdecode(argument) for argument in arguments[1:]]
    return _short(_what_runs(rest, options)) if options else ""


def _what_runs(arguments: Sequence[str], options: _Options) -> str:
    i = 0
    while i < len(arguments):
        given = arguments[i]
        following = arguments[i + 1] if i + 1 < len(arguments) else ""
        if given == "--":
            return os.path.basename(following)
        if given[:1] not in ("-", "+") or given == "-":
            return os.path.basename(given)
        option, argument = _split(given, options)
        if option in options.code:
            return option
        if option in options.module:
            name = argument or following
            return os.path.basename(name) if option == "-jar" else f"-m {name}"
        i += 2 if option in options.with_argument and not argument else 1
    return ""


def _split(given: str, options: _Options) -> tuple[str, str]:
    """The option that matters, and the argument that is joined to it: ``-Bum`` is ``-m``."""
    if given.startswith("--") or not options.joined:
        option, _, argument = given.partition("=")
        return option, argument
    known = options.with_argument | options.code | options.module
    for i, letter in enumerate(given[1:], 1):
        if f"{given[0]}{letter}" in known:
            return f"{given[0]}{letter}", given[i + 1 :]
    return given, ""


def _short(name: str) -> str:
    return os.fsdecode(os.fsencode(name)[:_MOST])
