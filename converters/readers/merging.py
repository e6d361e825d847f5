"""Merges several profiles into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..base.errors import StallscopeError
from ..model import Profile, Sample, ValueType, parts
from ..model.details import merged as merged_details
from ..transforms.samples import add_up
from ..transforms.weight import value_name
from ..writers.base.options import WriteOptions, value_index


def merge(profiles: Sequence[Profile], value: str = "") -> Profile:
    """The samples of all profiles, equal ones added; losses added, comments joined, threads' accounts kept apart.

    If the profiles have different values, the common ones are kept, provided that ``value`` is among them (a name, or
    time or count, see `weight.value_name`; "" is the first one's default). Otherwise StallscopeError (exit code 2).
    A single profile is returned as it is.
    """
    if len(profiles) == 1:
        return profiles[0]
    if any(other.value_types != profiles[0].value_types for other in profiles[1:]):
        profiles = _comparable(profiles, value)
    first = profiles[0]
    starts = [profile.start_ns for profile in profiles if profile.start_ns]
    ends = [profile.start_ns + profile.duration_ns for profile in profiles if profile.start_ns]
    merged = Profile(
        first.value_types,
        title=_common([profile.title for profile in profiles]),
        host=_common([profile.host for profile in profiles]),
        start_ns=min(starts, default=0),
        details=merged_details(profile.details for profile in profiles),
        default_value=next((profile.default_value for profile in profiles if profile.default_value), ""),
        duration_ns=max(ends) - min(starts) if starts else max(profile.duration_ns for profile in profiles),
        **parts.merged(profiles),
    )
    for profile in profiles:
        merged.comments += [text for text in profile.comments if text not in merged.comments]
        for kind, count in profile.lost.items():
            merged.lost[kind] = merged.lost.get(kind, 0) + count
    merged.samples = add_up([sample for profile in profiles for sample in profile.samples], merged.value_types)
    return merged


def _comparable(profiles: Sequence[Profile], value: str) -> list[Profile]:
    """The profiles, reduced to their common values."""
    first = profiles[0]
    common = [kind for kind in first.value_types if all(kind in other.value_types for other in profiles)]
    names = [kind.name for kind in common]
    shown = first.value_types[value_index(first, WriteOptions(value=value_name(first, value)))].name
    if shown not in names:
        other = next(each for each in profiles if each.value_types != first.value_types)
        cause = f"the inputs measure different things: {_listed(first)}, and {_listed(other)}"
        remedy = f"choose with --value what all have: {', '.join(names)}" if names else "convert them one by one"
        raise StallscopeError(cause, remedy, exit_code=2)
    return [_only(profile, common) for profile in profiles]


def _only(profile: Profile, kinds: Sequence[ValueType]) -> Profile:
    columns = [profile.value_types.index(kind) for kind in kinds]
    samples = [Sample(stack, tuple([values[i] for i in columns]), labels) for stack, values, labels in profile.samples]
    return replace(profile, value_types=list(kinds), samples=samples)


def _common(texts: list[str]) -> str:
    return " + ".join(dict.fromkeys(filter(None, texts)))


def _listed(profile: Profile) -> str:
    return ", ".join(f"{kind.name} ({kind.unit})" for kind in profile.value_types)
