"""Makes one profile of several inputs: labels each sample with its input, and adds comments on the sum."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from ..model import Labels, Profile, Sample
from ..model.remarks import Comment, InputsAddedUp, TracksAddedUp
from ..transforms.labels import root_name
from .base.source import STDIN
from .merging import merge
from .registry import READERS

INPUT: Final = "input"
"""The label that names a sample's input; added on request."""
_STDIN_NAME = "stdin"
_MOST_NAMED = 3


def joined(
    paths: Sequence[str],
    found: Sequence[tuple[str, Profile]],
    value: str = "",
    *,
    label: bool = False,
    meant: bool = False,
) -> Profile:
    """All inputs as one profile (see `merging.merge`), each sample with its ``input`` if ``label``.

    The title names the inputs if they have no titles. Comments report processes of several inputs that look like one,
    unless that is ``meant``, and times that are sums over several threads. Raises StallscopeError like `merging.merge`.
    """
    profiles = [profile for _, profile in found]
    if label:
        profiles = [_labelled(profile, name) for profile, name in zip(profiles, names(paths), strict=True)]
    tracks = 0
    for name, profile in found:
        if READERS[name].is_timed and ("wall", "nanoseconds") in [each[:2] for each in profile.value_types]:
            tracks += len({sample.labels for sample in profile.samples})
    merged = merge(profiles, value)
    if not any(profile.title for name, profile in found if READERS[name].is_titled):
        merged = replace(merged, title=_title(merged.title, paths))
    notes = [*([] if label or meant else _shared(profiles)), *_tracks(tracks, merged.duration_ns, len(paths))]
    return replace(merged, comments=[*merged.comments, *notes]) if notes else merged


def names(paths: Sequence[str]) -> list[str]:
    """The name of each input: its file name, preceded by as many folders as distinguish it from the others."""
    parts = [(_STDIN_NAME,) if path == STDIN else PurePath(path).parts or (path,) for path in paths]
    found = []
    for each in parts:
        others = {other for other in parts if other != each}
        size = 1
        while size < len(each) and any(other[-size:] == each[-size:] for other in others):
            size += 1
        found.append(str(PurePath(*each[-size:])))
    return found


def _title(what: str, paths: Sequence[str]) -> str:
    """``trace of rank0.json``; standard input has no name."""
    called = [name for name, path in zip(names(paths), paths, strict=True) if path != STDIN]
    return f"{what} of {_listed(called)}" if what and called else what or _listed(called)


def _listed(called: Sequence[str]) -> str:
    more = f" and {len(called) - _MOST_NAMED} more" if len(called) > _MOST_NAMED else ""
    return ", ".join(called[:_MOST_NAMED]) + more


def _labelled(profile: Profile, name: str) -> Profile:
    known: dict[Labels, Labels] = {}

    def labels_of(labels: Labels) -> Labels:
        if labels not in known:
            known[labels] = tuple(sorted({**dict(labels), INPUT: name}.items()))
        return known[labels]

    changed = replace(profile, samples=[Sample(s.stack, s.values, labels_of(s.labels)) for s in profile.samples])
    if profile.timeline is not None:
        tracks = [replace(track, labels=labels_of(track.labels)) for track in profile.timeline.tracks]
        changed.timeline = replace(profile.timeline, tracks=tracks)
    return changed


def _shared(profiles: Sequence[Profile]) -> Iterable[Comment]:
    """A comment on processes with the same name and id in several inputs, for example ranks in containers."""
    inputs: defaultdict[str, set[int]] = defaultdict(set)
    for i, profile in enumerate(profiles):
        for labels in {sample.labels for sample in profile.samples}:
            if any(key == "pid" for key, _ in labels):
                inputs[root_name(labels, "process")].add(i)
    shared = sorted(name for name, where in inputs.items() if len(where) > 1)
    if shared:
        yield InputsAddedUp(tuple(shared[:_MOST_NAMED]), max(len(shared) - _MOST_NAMED, 0), INPUT)


def _tracks(count: int, length: int, inputs: int) -> Iterable[Comment]:
    if count > 1:
        yield TracksAddedUp(count, inputs, length)
