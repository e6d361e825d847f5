"""All readers, and what the rest of the package has to know of their formats: the one list of them."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple, cast

from .base.protocol import Reader


class Entry(NamedTuple):
    """A reader."""

    module: str | Reader
    """A module of this package is imported when it is needed."""
    has_events: bool = False
    """`ReadOptions.event` selects part of the data."""
    is_unmarked: bool = False
    """Whether its folded text is that of FlameGraph's scripts: kernel and JIT functions are marked on request only."""
    is_bare: bool = False
    """The reader leaves out the arguments of functions."""
    is_timed: bool = False
    """Values are the time of each thread."""
    is_titled: bool = False
    """Files may have a title of their own."""

    def load(self) -> Reader:
        """The reader itself."""
        if not isinstance(self.module, str):
            return self.module
        return cast(Reader, import_module(f"{__package__}.{self.module}"))


READERS: dict[str, Entry] = {
    "pprof": Entry("pprof", is_titled=True),
    "mojo": Entry("python.mojo"),
    "pstats": Entry("python.pstats"),
    "chrome": Entry("chrome.reader", has_events=True, is_timed=True),
    "cpuprofile": Entry("chrome.cpuprofile", is_timed=True),
    "speedscope": Entry("speedscope.reader", is_titled=True),
    "vtune": Entry("vtune.reader"),
    "bpftrace": Entry("bpftrace.reader", has_events=True, is_unmarked=True),
    "gdb": Entry("gdb"),
    "stap_lines": Entry("stap.traced"),
    "stap": Entry("stap.backtraces", is_unmarked=True),
    "dtrace": Entry("dtrace", is_unmarked=True, is_bare=True),
    "bcc": Entry("bcc.reader"),
    "perf_sched": Entry("perf.sched"),
    "faulthandler": Entry("python.faulthandler"),
    "austin": Entry("python.austin"),
    "pyspy": Entry("python.pyspy"),
    "perf": Entry("perf.script", has_events=True, is_unmarked=True, is_bare=True),
    "folded": Entry("folded.reader"),
}
"""Readers by the name of the format; the strictest test comes first."""
