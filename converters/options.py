"""What a caller may ask of a writer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import StallscopeError

if TYPE_CHECKING:
    from .model import Profile


@dataclass(frozen=True)
class WriteOptions:
    """Choices that every writer understands (or ignores where its format has no use for them)."""

    value: str = ""
    """Name of the `ValueType` to show; "" is the first one that can be added up."""
    per_thread: bool = False
    """One root (or profile) per thread instead of one per process."""
    title: str = ""
    """Replaces ``Profile.title``; "" keeps it."""


def value_index(profile: Profile, options: WriteOptions) -> int:
    """Index of the value type that ``options`` asks for.

    Only sums make a flame graph: a parent's width is what its children add up to. Raises
    StallscopeError (exit code 2) for an unknown name and for a minimum or maximum.
    """
    summable = [value_type.name for value_type in profile.value_types if value_type.aggregate == "sum"]
    if not summable:
        raise StallscopeError("the profile has no value that can be added up", "record it again", exit_code=2)
    wanted = options.value or summable[0]
    if wanted not in summable:
        raise StallscopeError(
            f"the profile has no value called {wanted!r} that can be added up",
            f"choose one of: {', '.join(summable)}",
            exit_code=2,
        )
    return next(i for i, v in enumerate(profile.value_types) if v.name == wanted and v.aggregate == "sum")
