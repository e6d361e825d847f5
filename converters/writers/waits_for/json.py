"""Writes the wait-for graph as JSON, in networkx's node-link form, which D3 reads, too."""

from __future__ import annotations

import json
from typing import BinaryIO

from ...base.text import json_text
from ...model import Profile
from ..base.options import WriteOptions
from .graph import picture
from .networks import network


def write(profile: Profile, file: BinaryIO, options: WriteOptions) -> None:
    """Writes the graph of ``profile``. StallscopeError if it does not tell who ended waits."""
    from networkx.readwrite.json_graph import node_link_data

    made = picture(profile, options)
    data = node_link_data(network(made), edges="links")
    data["graph"]["lost"] = {json_text(kind): number for kind, number in made.lost.items()}
    file.write(json.dumps(data, indent=1).encode() + b"\n")
