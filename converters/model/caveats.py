"""Comments of a profile that have to be read before all else: its summary begins with them."""

from __future__ import annotations

from collections.abc import Sequence

_BEGIN = "Careful: "
TOO_SLOW = "took longer than -F allows"
"""In a comment of an engine that cannot sample more often."""


def caveat(text: str) -> str:
    """A comment that stands at the beginning of the answer. ``text`` is a sentence without its end."""
    return f"{_BEGIN}{text}"


def without_caveats(comments: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sentences for the beginning of the answer, and the other comments."""
    first = tuple(f"{comment}." for comment in comments if comment.startswith(_BEGIN))
    return first, tuple(comment for comment in comments if not comment.startswith(_BEGIN))
