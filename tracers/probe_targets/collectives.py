"""Functions of communication libraries whose calls are kept with their arguments: what the probes are told of them."""

from __future__ import annotations

from ...converters.collectives.signatures import MAKES, signature_of

_ARGUMENTS, _MADE_FIRST, _MADE_FOURTH = 1 << 34, 1 << 35, 1 << 36
"""COOKIE_ARGUMENTS, COOKIE_MADE_FIRST and COOKIE_MADE_FOURTH of bpf/include/call_cookie.h."""


def cookie(name: str) -> int:
    """Number for a probe's cookie; 0 for other functions."""
    of = signature_of(name)
    if not of:
        return 0
    made = {0: _MADE_FIRST, 3: _MADE_FOURTH}.get(of.made, 0) if of.kind == MAKES else 0
    return _ARGUMENTS | made
