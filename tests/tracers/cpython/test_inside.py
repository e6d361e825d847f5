from __future__ import annotations

import os

from pythons import running, runtime_in
from stallscope.tracers.cpython.functions import function_at
from stallscope.tracers.cpython.inside import inside_of
from stallscope.tracers.cpython.memory import memory_of
from stallscope.tracers.images.elf import ElfFile, FileSource
from stallscope.tracers.images.maps import read_maps

TELL = "def f(): pass\nprint(id(f.__code__))"


def test_functions_are_read_with_it(python: tuple[str, ...]) -> None:
    with running(python, TELL) as (pid, code):
        mapping, _, _ = runtime_in(pid)
        fd = os.open(mapping.path, os.O_RDONLY)
        try:
            inside = inside_of(pid, mapping, ElfFile(FileSource(fd)))
        finally:
            os.close(fd)
        assert inside
        with memory_of(pid) as memory:
            function = function_at(memory, inside, code)
            assert function_at(memory, inside, code + 16) is None
    assert function
    assert (function.name, function.file) == ("f", "<string>")


def test_other_files(python: tuple[str, ...]) -> None:
    with running(python, TELL) as (pid, _):
        libc = next(mapping for mapping in read_maps(pid) if "libc.so" in mapping.path)
        fd = os.open(libc.path, os.O_RDONLY)
        try:
            assert inside_of(pid, libc, ElfFile(FileSource(fd))) is None
        finally:
            os.close(fd)
