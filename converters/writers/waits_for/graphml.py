"""Writes the wait-for graph as GraphML: http://graphml.graphdrawing.org, for Gephi, yEd, networkx and others."""

from __future__ import annotations

from typing import BinaryIO

from ...model import Profile
from ..base.options import WriteOptions
from .graph import picture
from .networks import network


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes the graph of ``profile``. StallscopeError if it does not tell who ended waits."""
    from networkx.readwrite.graphml import GraphMLWriter

    # Not write_graphml(): with lxml, which may be installed, it writes through a file of its own.
    GraphMLWriter(graph=network(picture(profile, options)), encoding="utf-8", prettyprint=True).dump(file)
