"""Several profiles as one."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import StallscopeError
from ..model import Profile
from ..transforms.samples import add_up


def merge(profiles: Sequence[Profile]) -> Profile:
    """The samples of all, equal ones added up; losses added, comments joined. Threads' accounts are kept side by side.

    StallscopeError (exit code 2) when they do not measure the same. One profile is returned as it is.
    """
    first = profiles[0]
    if len(profiles) == 1:
        return first
    for other in profiles[1:]:
        if other.value_types != first.value_types:
            raise StallscopeError(
                f"the inputs measure different things: {_listed(first)}, and {_listed(other)}",
                "convert them one by one",
                exit_code=2,
            )
    starts = [profile.start_ns for profile in profiles if profile.start_ns]
    ends = [profile.start_ns + profile.duration_ns for profile in profiles if profile.start_ns]
    merged = Profile(
        first.value_types,
        title=_common([profile.title for profile in profiles]),
        host=_common([profile.host for profile in profiles]),
        start_ns=min(starts, default=0),
        duration_ns=max(ends) - min(starts) if starts else max(profile.duration_ns for profile in profiles),
    )
    for profile in profiles:
        merged.threads += profile.threads
        merged.comments += [text for text in profile.comments if text not in merged.comments]
        for kind, count in profile.lost.items():
            merged.lost[kind] = merged.lost.get(kind, 0) + count
    merged.samples = add_up([sample for profile in profiles for sample in profile.samples], merged.value_types)
    return merged


def _common(texts: list[str]) -> str:
    return " + ".join(dict.fromkeys(filter(None, texts)))


def _listed(profile: Profile) -> str:
    return ", ".join(f"{kind.name} ({kind.unit})" for kind in profile.value_types)
