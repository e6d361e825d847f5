from __future__ import annotations

import io
from dataclasses import asdict
from typing import Any

import pytest
from slice_profiles import slices, two_phases
from stallscope.converters import pprof
from stallscope.converters.model.slices import SliceSpent, ThreadSlices
from stallscope.converters.pprof.slices import decoded

HOSTILE = ThreadSlices(
    "a\x1b\udcff", "<t>", 1, 2, 10**9, 3, [SliceSpent("io", (1, 2), ("f\n",), "k", 1 << 62)], pid_life=2, tid_life=3
)


def test_slices_are_kept() -> None:
    profile = two_phases()
    profile.slices.append(HOSTILE)
    file = io.BytesIO()
    pprof.save(profile, file)
    file.seek(0)
    assert pprof.load(file).slices == profile.slices


def test_a_capture_without_slices_is_read() -> None:
    profile = two_phases()
    profile.slices = []
    file = io.BytesIO()
    pprof.save(profile, file)
    file.seek(0)
    assert pprof.load(file).slices == []


@pytest.mark.parametrize(
    "change",
    [
        {"length": 0},
        {"first": -1},
        {"first": 1 << 40},
        {"first": 65},
        {"pid": True},
        {"process": 7},
        {"spent": None},
        {"spent": [{}]},
        {"more": 1},
        {"spent": [asdict(SliceSpent("io", (1, 2))), asdict(SliceSpent("cpu", (1,)))]},
        {"spent": [asdict(SliceSpent("io", (1,))) | {"times": [-1]}]},
        {"spent": [asdict(SliceSpent("io", (1,))) | {"times": ["1"]}]},
        {"spent": [asdict(SliceSpent("io", (1,))) | {"times": [1] * 2000}]},
        {"spent": [asdict(SliceSpent("io", (1,))) | {"frames": [1]}]},
    ],
)
def test_malformed(change: dict[str, Any]) -> None:
    entry = asdict(slices({"io": [1]}))
    assert decoded(entry) == slices({"io": [1]})
    with pytest.raises(ValueError):
        decoded(entry | change)


@pytest.mark.parametrize("entry", [None, [], "x", {}])
def test_no_object(entry: object) -> None:
    with pytest.raises(ValueError):
        decoded(entry)
