"""Profile in, profile out: what can be done to a profile between its source and its output."""

from __future__ import annotations

from dataclasses import replace

from .model import Labels, Profile

_WHO = ("pid", "tid")


def merge_processes(profile: Profile) -> Profile:
    """Without process and thread ids: processes of one name, such as the ranks of a training job, share one root."""
    merged: dict[Labels, Labels] = {}
    samples = []
    for sample in profile.samples:
        labels = merged.get(sample.labels)
        if labels is None:
            labels = merged[sample.labels] = tuple(pair for pair in sample.labels if pair[0] not in _WHO)
        samples.append(sample._replace(labels=labels))
    return replace(profile, samples=samples, timeline=None)
