"""Functions of Python whose calls are steps, as the user names them: a file or module, and the function."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

_MODULE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")
_LIBRARIES = ("so",)
"""Last parts of names of files that are no modules."""


class PythonFunction(NamedTuple):
    """``file``: ``train.py``, the end of its path, or all of it. ``name``: plain or qualified: `Model.step`."""

    file: str
    name: str

    def is_in(self, path: str) -> bool:
        """Whether a file with this path, as its code objects have it, is meant; relative ones are not resolved."""
        given, found = (os.path.normpath(each).lstrip("/").split("/") for each in (self.file, path))
        common = min(len(given), len(found))
        return given[-common:] == found[-common:]

    def is_named(self, name: str, *, is_qualified: bool) -> bool:
        """Whether the name that a code object has is meant. Up to 3.10, it is not qualified."""
        if not is_qualified:
            return name == self.name.rpartition(".")[2]
        return name == self.name or name.endswith(f".{self.name}")


def python_function(path: str, name: str) -> PythonFunction | None:
    """Python function that is meant by ``path:name``; None for a function of a library or program."""
    if path.endswith(".py"):
        return PythonFunction(path, name)
    if _MODULE.fullmatch(path) and not any(part in _LIBRARIES for part in path.split(".")) and not os.path.exists(path):
        return PythonFunction(f"{path.replace('.', '/')}.py", name)
    return None
