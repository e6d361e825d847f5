"""Calls that a picture of a comparison cannot draw, because they have no value on the drawn side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from ..base.text import printable, shortened
from ..model import Profile
from ..transforms.diff import BEFORE, is_differential
from ..writers.base.options import WriteOptions
from .tree import build

_LEAST = 0.001
"""Share of the larger side that a call must have had to be named."""
_MOST = 5
_NAME = 60
"""Maximum length of a name."""


def undrawn(profile: Profile, options: WriteOptions, write: Callable[[int], str]) -> str:
    """``gone: decode_jpeg -2,000, resize -300``, the largest first; where before is drawn, ``new: …+2,000``.

    Names the outermost call without a width, once for all calls of one name; "" if there is none, or without a
    comparison. Raises like `build`.
    """
    if not is_differential(profile):
        return ""
    tree = build(profile, replace(options, both=True), minimum=_LEAST)
    new = tree.value_type.name == BEFORE
    sizes: Counter[str] = Counter()
    inside = tree.levels
    """Depth of a named call, whose callees are skipped."""
    for node in tree.nodes:
        if node.depth > inside:
            continue
        inside = tree.levels
        if node.depth and node.total == (node.delta if new else -node.delta):
            sizes[node.key.name] += node.total
            inside = node.depth
    found = sorted(((size, name) for name, size in sizes.items()), key=lambda each: (-each[0], each[1]))
    named = [f"{shortened(printable(name), _NAME)} {'+' if new else '-'}{write(size)}" for size, name in found[:_MOST]]
    if len(found) > _MOST:
        named.append(f"{len(found) - _MOST:,} more of at least {100 * _LEAST:g} %")
    return f"{'new' if new else 'gone'}: {', '.join(named)}" if named else ""
