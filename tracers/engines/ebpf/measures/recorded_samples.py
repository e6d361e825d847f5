"""Samples of what threads run, one by one, beside the scheduler's events; and how equal places are told."""

from __future__ import annotations

import numpy as np

from .....converters.model.scheduling import NO_STACK, SAMPLE, Array, Threads
from ....kernel.records import RUNNING, Origin
from ...rows import Row
from .protocol import Ended

SAMPLE_EVENT = np.dtype([("time", "<i8"), ("tid", "<i4"), ("life", "<u4"), ("ustack", "<u8"), ("kstack", "<u8")])
"""Layout like model.SAMPLE, with the ids of stacks, and the life of the thread."""


def sampled_in(events: Array, threads: Array, numbers: Array, where: list[Row], ended: Ended) -> Array:
    """Samples of traced threads in the form of the model; their places are added to ``where``.

    ``events``: rows of `SAMPLE_EVENT`. ``numbers``: of each thread's process."""
    rows = Threads(threads).rows(events["tid"], events["time"])
    events, rows = events[rows >= 0], rows[rows >= 0]
    tgids, lives = numbers[rows], alike(events["life"], ended)
    ids = events["ustack"] * np.uint64(0x9E3779B97F4A7C15) ^ events["kstack"] * np.uint64(0xC2B2AE3D27D4EB4F)
    _, first, which = np.unique(mixed(ids, tgids, lives), return_index=True, return_inverse=True)
    places = np.full(len(first), NO_STACK, np.int32)
    for i, place in enumerate(first.tolist()):
        ustack, kstack = int(events["ustack"][place]), int(events["kstack"][place])
        if ustack or kstack:
            places[i] = len(where)
            where.append(Row(Origin(ustack, kstack, 0, 0, int(tgids[place]), int(lives[place]), RUNNING), "", ()))
    samples = np.zeros(len(events), SAMPLE)
    samples["time"], samples["tid"], samples["stack"] = events["time"], events["tid"], places[which]
    return samples


def alike(lives: Array, ended: Ended) -> Array:
    """One life of the same address space for each life, so that equal stacks are of one place."""
    distinct, which = np.unique(lives, return_inverse=True)
    first = ended.alike()
    found: Array = np.array([first.get(life, life) for life in distinct.tolist()], np.uint32)[which]
    return found


def mixed(ids: Array, tgids: Array, lives: Array) -> Array:
    """Hashes of places in programs: of processes, and of lives as `alike` gives them."""
    who = tgids.astype(np.uint64) | lives.astype(np.uint64) << np.uint64(32)
    hashes: Array = (ids ^ who * np.uint64(0xC2B2AE3D27D4EB4F)) * np.uint64(0x9E3779B97F4A7C15)
    return hashes
