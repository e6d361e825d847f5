"""Meaning of questions for an event: a USDT probe at each of its places, a tracepoint, the entry of a function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ....expressions.asked import Asked, Bound, Fault
from ....expressions.check import BUILT_IN, NO_RETURN, OF_THREADS
from ....expressions.fields import Told, named_fields
from ....expressions.nodes import OF_RETURNS, Node
from ....expressions.operands import places
from ....images.usdt import UsdtProbe

_AT_ENTRY = {name: node for name, node in BUILT_IN.items() if name not in OF_RETURNS}


def at_places(asked: Asked, probe: UsdtProbe) -> Sequence[Bound] | Fault:
    """Questions at each place of a USDT probe. What one of them lacks, the probe lacks."""
    try:
        names = places(probe.title, [site.arguments.split() for site in probe.sites])
        return [asked.bind(each, OF_THREADS) for each in names]
    except Fault as fault:
        return fault


def of_tracepoint(asked: Asked, tracepoint: str, told: Iterable[Told]) -> Bound | Fault:
    """Questions at a tracepoint with these fields."""
    try:
        return asked.bind(named_fields(tracepoint, told), OF_THREADS)
    except Fault as fault:
        return fault


def at_entry(asked: Asked, parameters: Mapping[str, Node] | None = None) -> Bound:
    """Questions at the entry of a function whose ``parameters`` have these names. Fault."""
    return asked.bind({**(parameters or {}), **NO_RETURN}, _AT_ENTRY)
