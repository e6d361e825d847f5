"""Selects samples by label, or by the frames on the stack. Stacks and values stay unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..base.errors import StallscopeError
from ..model import Labels, Profile, Sample, ThreadTimes, parts
from ..model.processes import ProcessTimes
from .samples import ByFrame, Pattern, matching

FRAME: Final = "frame"
"""Used in place of a label for the names of functions."""

_OF_THREADS = ("pid", "process", "thread", "tid")
"""Labels that the accounts of threads have, too."""


def keep(profile: Profile, key: str, patterns: Sequence[Pattern]) -> Profile:
    """Samples with one of ``patterns`` in the label ``key`` or, for ``frame``, in the name of a function on the stack.

    Labels of processes and threads also select the accounts of the threads and the tracks of the timeline. Raises
    StallscopeError (exit code 2) when no sample has the label.
    """
    return _selected(profile, key, patterns, wanted=True)


def drop(profile: Profile, key: str, patterns: Sequence[Pattern]) -> Profile:
    """The samples that `keep` leaves out."""
    return _selected(profile, key, patterns, wanted=False)


def focus(profile: Profile, pattern: Pattern) -> Profile:
    """Keeps samples with a frame that matches, as pprof does (see `samples.matching`)."""
    return _with_frames(profile, matching(pattern), wanted=True)


def ignore(profile: Profile, pattern: Pattern) -> Profile:
    """Keeps samples without any frame that matches, as pprof does."""
    return _with_frames(profile, matching(pattern), wanted=False)


def _selected(profile: Profile, key: str, patterns: Sequence[Pattern], *, wanted: bool) -> Profile:
    if key == FRAME:
        return _with_frames(profile, ByFrame(lambda frame: _any(patterns, frame.name)), wanted=wanted)
    verdicts: dict[Labels, bool] = {}
    seen = False
    for sample in profile.samples:
        if sample.labels not in verdicts:
            value = sample.label(key)
            seen = seen or value is not None
            verdicts[sample.labels] = (value is not None and _any(patterns, str(value))) == wanted
    if verdicts and not seen:
        raise _no_label(key, verdicts)
    kept = [sample for sample in profile.samples if verdicts[sample.labels]]
    changed = _of_samples(profile, kept)
    if key in _OF_THREADS:
        changed.threads = [thread for thread in profile.threads if _any(patterns, _of_thread(thread, key)) == wanted]
        changed.processes = _with_threads(profile, changed.threads)
        changed.slices = [each for each in profile.slices if _any(patterns, str(getattr(each, key))) == wanted]
    if profile.timeline is not None:
        tracks = [track for track in profile.timeline.tracks if verdicts.get(track.labels, False)]
        changed.timeline = replace(profile.timeline, tracks=tracks)
    return changed


def _of_samples(profile: Profile, samples: list[Sample]) -> Profile:
    """The profile with some of its samples: what is not theirs alone is dropped."""
    return replace(
        profile,
        samples=samples,
        scheduling=None,
        critical=None,
        display=None,
        answered=None,
        **parts.without(parts.OF_SAMPLES),
    )


def _with_frames(profile: Profile, matched: ByFrame[bool], *, wanted: bool) -> Profile:
    verdict = matched.__getitem__
    samples = [sample for sample in profile.samples if any(map(verdict, sample.stack)) == wanted]
    return replace(_of_samples(profile, samples), timeline=None)


def _any(patterns: Sequence[Pattern], text: str) -> bool:
    return any(pattern.search(text) for pattern in patterns)


def _of_thread(thread: ThreadTimes, key: str) -> str:
    return str(getattr(thread, key))


def _with_threads(profile: Profile, threads: Sequence[ThreadTimes]) -> list[ProcessTimes]:
    """The processes of these threads. Waits for a core are known for whole processes only."""
    before, after = (Counter(thread.pid for thread in each) for each in (profile.threads, threads))
    return [
        process if before[process.pid] == after[process.pid] else replace(process, latencies=())
        for process in profile.processes
        if process.pid in after
    ]


def _no_label(key: str, known: dict[Labels, bool]) -> StallscopeError:
    there = sorted({name for labels in known for name, _ in labels})
    remedy = (
        f"choose one of: {', '.join([*there, FRAME])}" if there else f"the samples have no labels; {FRAME} is there"
    )
    return StallscopeError(f"no sample has the label {key!r}", remedy, exit_code=2)
