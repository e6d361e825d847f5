"""Demangles the names of functions."""

from __future__ import annotations

import re
from dataclasses import replace

from ..model import Frame, Profile, Sample
from ..model.details import renamed
from ..names.cxx import without_arguments
from ..names.demangle import Demangler, is_mangled

LEFT = "names left mangled"
_MARK = re.compile(r"_\[[a-z]\]\Z")
_MODULE = "`"
"""Follows the module in DTrace's names."""


def demangled(profile: Profile, *, arguments: bool = True) -> Profile:
    """``profile`` with readable names of C++ and Rust functions; with their arguments, or without them as in perf.

    The same object if there is nothing to do. Names that no demangler could read are counted in ``Profile.lost``.
    """
    # By identity: samples share their frames, and hashing each frame of each stack would take longer.
    stacks = profile.scheduling.stacks if profile.scheduling else []
    frames = {id(frame): frame for sample in profile.samples for frame in sample.stack}
    frames |= {id(frame): frame for stack in stacks for frame in stack}
    mangled = {frame for frame in frames.values() if is_mangled(_bare(frame.name))}
    if not mangled:
        return profile
    demangler = Demangler()
    bare = {frame: _bare(frame.name) for frame in mangled}
    readable = demangler.demangle(bare.values())
    changed = {frame: _renamed(frame, bare[frame], readable[bare[frame]], arguments) for frame in mangled}
    by_identity = {i: changed.get(frame, frame) for i, frame in frames.items()}
    samples = [
        Sample(tuple([by_identity[id(frame)] for frame in stack]), values, labels)
        for stack, values, labels in profile.samples
    ]
    _rename_spans(profile, changed)
    scheduling = profile.scheduling
    if scheduling is not None:
        scheduling = replace(
            scheduling, stacks=[tuple([by_identity[id(frame)] for frame in stack]) for stack in stacks]
        )
    lost = {**profile.lost, LEFT: demangler.failed} if demangler.failed else profile.lost
    details = renamed(profile.details, changed) if profile.details else None
    return replace(profile, samples=samples, lost=lost, details=details, scheduling=scheduling)


def _bare(name: str) -> str:
    """Removes a module before the name and a mark after it."""
    return _MARK.sub("", name[name.rfind(_MODULE) + 1 :])


def _renamed(frame: Frame, bare: str, readable: str, arguments: bool) -> Frame:
    if not arguments and readable != bare:
        raw = readable.encode(errors="surrogateescape")
        readable = without_arguments(raw).decode(errors="surrogateescape")
    at = frame.name.rfind(_MODULE) + 1
    return frame._replace(name=frame.name[:at] + readable + frame.name[at + len(bare) :])


def _rename_spans(profile: Profile, changed: dict[Frame, Frame]) -> None:
    """Changes the spans in place: a timeline may be larger than everything else."""
    for track in profile.timeline.tracks if profile.timeline else ():
        for i, span in enumerate(track.spans):
            if (frame := changed.get(span.frame)) is not None:
                track.spans[i] = span._replace(frame=frame)
