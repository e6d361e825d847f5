"""The CPython interpreters that this machine has, and ones that stand still while they are looked at."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from runner import SYSTEM_PYTHON
from stallscope.tracers.cpython.functions import Inside
from stallscope.tracers.cpython.layouts import Layout, layout_of
from stallscope.tracers.cpython.memory import Memory
from stallscope.tracers.cpython.runtime import Runtime, address_of, find_runtime, may_be_interpreter
from stallscope.tracers.images.elf import ElfFile, FileSource
from stallscope.tracers.images.maps import Mapping, read_maps

OLDEST, NEWEST = (3, 8), (3, 14)
_PLACES = ("~/.pyenv/versions/*/bin/python3", "/opt/python*/bin/python3", "/usr/bin/python3.[0-9]*")


def _candidates() -> Iterator[list[str]]:
    """Commands that run an interpreter: those in $STALLSCOPE_PYTHONS, separated by `;`, and those in usual places."""
    yield [SYSTEM_PYTHON]
    yield from (shlex.split(command) for command in os.environ.get("STALLSCOPE_PYTHONS", "").split(";") if command)
    for place in _PLACES:
        path = Path(place).expanduser()
        anchor = Path(path.anchor)
        yield from ([str(found)] for found in sorted(anchor.glob(str(path.relative_to(anchor)))))


@lru_cache
def interpreters() -> dict[str, tuple[str, ...]]:
    """One command for each version, by its number; the system's own besides."""
    found: dict[str, tuple[str, ...]] = {}
    for command in _candidates():
        ask = [*command, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"]
        try:
            said = subprocess.run(ask, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            continue
        if re.fullmatch(r"3\.\d+\.\d+", said) and OLDEST <= tuple(map(int, said.split(".")))[:2] <= NEWEST:
            found.setdefault(said, tuple(command))
    return dict(sorted(found.items(), key=lambda item: [int(part) for part in item[0].split(".")]))


@contextmanager
def running(command: tuple[str, ...], script: str) -> Iterator[tuple[int, Any]]:
    """The pid of an interpreter that runs a script and then waits, and the JSON text that the script printed."""
    text = f"import os, json\n{script}\nprint(os.getpid(), flush=True)\nos.read(0, 1)"
    with subprocess.Popen([*command, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            said = json.loads(process.stdout.readline())
            yield int(process.stdout.readline()), said
        finally:
            process.kill()


def runtime_in(pid: int) -> tuple[Mapping, Runtime, int]:
    """A process's interpreter: its file's mapping, what is in the file, and where its runtime is."""
    for mapping in filter(may_be_interpreter, read_maps(pid)):
        fd = os.open(mapping.path, os.O_RDONLY)
        try:
            elf = ElfFile(FileSource(fd))
            if runtime := find_runtime(elf, mapping.path):
                address = address_of(elf, mapping, runtime.vaddr)
                assert address is not None
                return mapping, runtime, address
        finally:
            os.close(fd)
    raise AssertionError(f"{pid} has no interpreter")


def layout_in(pid: int, memory: Memory) -> Layout:
    """Layout of a process's interpreter."""
    _, runtime, address = runtime_in(pid)
    return layout_of(runtime.version, address, memory)


def inside_of(pid: int, memory: Memory, salt: int) -> Inside:
    """Knowledge with which functions are read."""
    _, runtime, address = runtime_in(pid)
    bias = address - runtime.vaddr
    return Inside(layout_in(pid, memory), bias + runtime.code_type, bias + runtime.text_type, salt)
