"""Form of an answer, in a saved profile."""

from __future__ import annotations

import io
from typing import Any

import pytest
from next_steps import step_of
from stallscope.converters import pprof
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.display import CallsView, Display
from stallscope.converters.model.next_step import NextStep, Whom
from stallscope.converters.pprof.display import decoded, encoded

STEP = step_of("trace-wakeup -n 'a b' -d 5 -- make -j4", "who ends these waits")
FULL = Display(CallsView("p99", "thread", 7, 0, places=True), shows_idle=True, next_step=STEP)
HOSTILE = Display(
    next_step=NextStep("trace-func", Whom(("-n", "\udcff\x1b[2J")), ("-d", "5"), "path", ("x y",), sudo=True)
)


@pytest.mark.parametrize("display", [None, Display(), FULL, HOSTILE])
def test_it_survives(display: Display | None) -> None:
    file = io.BytesIO()
    pprof.save(Profile([ValueType("off-cpu", "nanoseconds")], display=display), file)
    file.seek(0)
    assert pprof.load(file).display == display


@pytest.mark.parametrize(
    "changed",
    [
        {"more": 1},
        {"shows_idle": 1},
        {"view": None},
        {"view": {**encoded(FULL)["view"], "by": "host"}},
        {"view": {**encoded(FULL)["view"], "sort": 4}},
        {"view": {**encoded(FULL)["view"], "rows": -1}},
        {"view": {**encoded(FULL)["view"], "rows": True}},
        {"view": {**encoded(FULL)["view"], "places": "yes"}},
        {"next_step": "trace-wall"},
        {"next_step": {**encoded(FULL)["next_step"], "tool": None}},
        {"next_step": {**encoded(FULL)["next_step"], "options": "-d 5"}},
        {"next_step": {**encoded(FULL)["next_step"], "options": ["x"] * 65}},
        {"next_step": {**encoded(FULL)["next_step"], "tells": "x" * 4097}},
        {"next_step": {**encoded(FULL)["next_step"], "whom": ["-a"]}},
        {"next_step": {**encoded(FULL)["next_step"], "whom": {"options": ["-a"]}}},
    ],
)
def test_anything_else_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="how the answer was shown"):
        decoded({**encoded(FULL), **changed})
