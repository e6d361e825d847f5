from __future__ import annotations

import os
import time

from stallscope.tracers.images.files import HOST
from stallscope.tracers.symbols.describing import describe
from stallscope.tracers.symbols.process import Process
from stallscope.tracers.symbols.roots import Roots


def test_this_process() -> None:
    found = Process(os.getpid(), os.getpid())
    describe(found, Roots())
    with open("/proc/self/comm") as file:
        assert found.comm == file.read().rstrip("\n")
    assert (found.uid, found.nspid, found.root) == (os.geteuid(), os.getpid(), HOST)
    assert time.time_ns() - 86_400_000_000_000 < found.started_ns < time.time_ns()


def test_what_is_gone_stays_as_it_is() -> None:
    gone = Process(1 << 22, 1 << 22, uid=7)
    describe(gone, Roots())
    assert (gone.uid, gone.comm) == (7, "")
