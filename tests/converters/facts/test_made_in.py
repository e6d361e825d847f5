"""Places where threads are created."""

from __future__ import annotations

import pytest
from stallscope.converters.facts.made_in import Creators
from stallscope.converters.model import Frame, Module, Stack

LIBC, GOMP = Module("/lib/x86_64-linux-gnu/libc.so.6"), Module("/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0")
PROGRAM, PYTHON = Module("/opt/train/train"), Module("/usr/bin/python3.11")
START = (Frame("_start", module=PROGRAM), Frame("__libc_start_main@@GLIBC_2.34", module=LIBC))
CREATE = (Frame("pthread_create@@GLIBC_2.34", module=LIBC), Frame("create_thread", module=LIBC))


def native(*names: str, module: Module = PROGRAM) -> Stack:
    return tuple(Frame(name, module=module) for name in names)


def python(*places: tuple[str, str]) -> Stack:
    return tuple(Frame(name, "python", file=file, line=7) for file, name in places)


SUBMITTED = python(
    ("/home/me/train.py", "main"),
    ("/home/me/train.py", "load_batches"),
    ("/usr/lib/python3.11/concurrent/futures/thread.py", "ThreadPoolExecutor.submit"),
    ("/usr/lib/python3.11/concurrent/futures/thread.py", "ThreadPoolExecutor._adjust_thread_count"),
    ("/usr/lib/python3.11/threading.py", "Thread.start"),
)


@pytest.mark.parametrize(
    ("stack", "place"),
    [
        (START + native("main", "next_epoch", "start_thread") + CREATE, ("next_epoch", "start_thread")),
        (START + native("main", "conv2d") + native("GOMP_parallel", "gomp_team_start", module=GOMP) + CREATE,
         ("main", "conv2d", "GOMP_parallel")),
        (START + native("conv2d") + native("GOMP_parallel", "gomp_team_start", module=GOMP) + CREATE,
         ("conv2d", "GOMP_parallel", "gomp_team_start")),
        (SUBMITTED + CREATE, ("main", "train.py:7 load_batches", "ThreadPoolExecutor.submit")),
        (START + native("\x1b[2J") + CREATE, ("\x1b[2J",)),
        # Of these it is not known which function of the program it was.
        (START + CREATE, ()),
        (CREATE, ()),
        ((), ()),
        ((Frame("[stack lost]", "other"),), ()),
    ],
)  # fmt: skip
def test_the_programs_function_and_what_it_calls(stack: Stack, place: tuple[str, ...]) -> None:
    assert Creators().of(stack) == place
