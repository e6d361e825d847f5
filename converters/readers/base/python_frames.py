"""Shared by the readers of Python profilers: the kind of code in a file, and the roots that py-spy adds to stacks.

py-spy makes its frames for processes and threads in src/python_process_info.rs and src/stack_trace.rs.
"""

from __future__ import annotations

import re

from ...model import Kind

_SOURCES = (".py", ".pyx", ".pyw", ".ipynb")
_PROCESS = re.compile(r'process (\d{1,18}):"(.*)"\Z', re.DOTALL)
_THREAD = re.compile(r"thread \((?:(0x[0-9a-fA-F]{1,16})|(\d{1,18}))\)(?:: (.*))?\Z", re.DOTALL)


def kind_of(file: str) -> Kind:
    """ "python" for a source file and for ``<frozen importlib._bootstrap>``, ``<string>``; else "native"."""
    return "python" if file.endswith(_SOURCES) or (file[:1] == "<" and file[-1:] == ">") else "native"


def root_labels(name: str) -> dict[str, str | int]:
    """The labels given by ``process 12:"command line"`` or ``thread (13): name``; {} for any other frame.

    If the system thread id is unknown, there is only Python's, in hex: that is used as a name, not as a tid.
    """
    if name.startswith("process ") and (match := _PROCESS.match(name)):
        return {"pid": int(match[1]), **({"process": match[2]} if match[2] else {})}
    if not name.startswith("thread (") or not (match := _THREAD.match(name)):
        return {}
    labels: dict[str, str | int] = {"tid": int(match[2])} if match[2] else {}
    if thread := match[3] or match[1]:
        labels["thread"] = thread
    return labels
