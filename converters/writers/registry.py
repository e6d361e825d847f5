"""All outputs, and what the rest of the package has to know of them: the one list of them."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple, cast

from .base.protocol import Writer


class Entry(NamedTuple):
    """An output."""

    module: str | Writer
    """A module of this package is imported when it is needed."""
    suffix: str = ""
    """Suffix of paths that are written in this format; "": it is only named."""
    is_packed: bool = False
    """Viewers also read it compressed, as ``SUFFIX.gz``: its repetitive text shrinks to a tenth."""
    is_graph: bool = False
    """Whether it is the wait-for graph."""
    has_times: bool = False
    """Whether it shows when something happened, if that was recorded."""

    def load(self) -> Writer:
        """The writer itself."""
        if not isinstance(self.module, str):
            return self.module
        return cast(Writer, import_module(f"{__package__}.{self.module}"))


WRITERS: dict[str, Entry] = {
    "folded": Entry("folded", ".folded", is_packed=True),
    "svg": Entry("svg.writer", ".svg"),
    "html": Entry("html.writer", ".html"),
    "speedscope": Entry("speedscope", ".speedscope.json", is_packed=True, has_times=True),
    "chrome": Entry("chrome", ".trace.json", is_packed=True, has_times=True),
    "perfetto": Entry("perfetto.writer", ".pftrace", has_times=True),
    "pprof": Entry("pprof", ".pb.gz"),
    "markdown": Entry("table.markdown", ".md"),
    "dot": Entry("waits_for.dot", ".dot", is_graph=True),
    "graphml": Entry("waits_for.graphml", ".graphml", is_graph=True),
    "graph": Entry("waits_for.json", ".graph.json", is_graph=True),
    "table": Entry("table.plain"),
}
"""Outputs by the name of the format."""
