"""Shared by the readers of Python profilers: the kind of code in a file, and the roots that py-spy adds to stacks.

py-spy makes its frames for processes and threads in src/python_process_info.rs and src/stack_trace.rs.
"""

from __future__ import annotations

import re

from ...model import Frame, Kind, Module

_SOURCES = (".py", ".pyx", ".pyw", ".ipynb")
_LINE_NUMBER = re.compile(r":(\d{1,18})\Z")
_ADDRESS = re.compile(r"0x[0-9a-f]{1,16}\Z")
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


def py_spy_frame(field: str, addrs: bool) -> Frame:
    """The frame of ``function (file.py:12)``, ``function (library)`` or ``0xADDR (library)``."""
    name, separator, place = field.rpartition(" (")
    if not separator or not name or place[-1:] != ")" or len(place) == 1:
        return Frame(field or "[unknown]")
    file = place[:-1]
    line = 0
    if match := _LINE_NUMBER.search(file):
        file, line = file[: match.start()], int(match[1])
    kind = kind_of(file)
    if kind == "python" or line:
        return Frame(name, kind, file=file, line=line)
    if _ADDRESS.match(name):
        name = f"[{file} <{name[2:]}>]" if addrs else f"[{file}]"
    return Frame(name, "native", Module(file))
